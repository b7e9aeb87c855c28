// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_page.h"

namespace tilewright::cli {

// Text from the data is inserted as text nodes only.
const char* const kPageHtml = R"page(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>Profile</title>
<style>
:root{--bg:#f7f8fa;--card:#fff;--ink:#1b2330;--soft:#5d6878;--line:#d9dee6;--bar:#3b74c9;--roof:#d1601f;--sel:#ffe9a8;--edge:#9aa6b5;--heat:59,116,201}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1b212a;--ink:#e4e9f0;--soft:#98a4b5;--line:#2f3844;--bar:#6ea3f0;--roof:#f0995c;--sel:#54480f;--edge:#66748a;--heat:110,163,240}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:14px/1.45 system-ui,"DejaVu Sans",sans-serif}
main{max-width:1500px;margin:auto;padding:16px;display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:14px}
header,section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 14px;min-width:0}
header,.wide{grid-column:1/-1}h1{font-size:19px;margin:0 0 2px;overflow-wrap:anywhere}h2{font-size:14px;margin:0 0 8px}
.soft{color:var(--soft)}.facts{display:flex;flex-wrap:wrap;gap:6px 26px;margin-top:8px}.facts b{font-size:17px;font-weight:600;display:block}
.scroll{overflow:auto;max-height:560px}table{border-collapse:collapse;width:100%}th{position:sticky;top:0;background:var(--card);text-align:left;font-weight:500;color:var(--soft);cursor:pointer;white-space:nowrap;z-index:1}
th,td{padding:3px 8px 3px 0;border-bottom:1px solid var(--line);vertical-align:top}td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}th.n{text-align:right}
tbody tr{cursor:pointer}tr.on td{background:var(--sel)}.op{overflow-wrap:anywhere}.src{font-size:12px;overflow-wrap:anywhere}
.bar{position:relative;height:12px;min-width:90px;margin-top:4px;background:color-mix(in srgb,var(--line) 55%,transparent);border-radius:2px}
.bar i{position:absolute;left:0;top:0;bottom:0;background:var(--bar);border-radius:2px}.bar u{position:absolute;top:-2px;bottom:-2px;width:2px;background:var(--roof)}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 12px;margin:0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
svg{display:block}svg text{fill:var(--ink);font:11px system-ui,"DejaVu Sans",sans-serif}svg .soft{fill:var(--soft)}
.node{cursor:pointer}.node rect{stroke:var(--edge)}.node.on rect{stroke:var(--roof);stroke-width:2.5}.edge{fill:none;stroke:var(--edge)}.edge.on{stroke:var(--roof);stroke-width:2}
.life{stroke:var(--card);stroke-width:.6;cursor:pointer}.life.on{stroke:var(--roof);stroke-width:2}.legend{font-size:12px;margin-top:6px}
.legend span{display:inline-block;width:12px;height:10px;margin:0 4px 0 12px}
@media (max-width:820px){th{white-space:normal}th,td{padding-right:5px}main{grid-template-columns:minmax(0,1fr);padding:8px;gap:8px}.scroll{max-height:420px}th.opt,td.opt{display:none}.bar{min-width:44px}}
</style></head><body><main id="page"></main>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const D=JSON.parse(document.getElementById("data").textContent),S=D.steps,page=document.getElementById("page");
const NS="http://www.w3.org/2000/svg";
function el(tag,cls,text){const e=document.createElement(tag);if(cls)e.className=cls;if(text!==undefined)e.textContent=text;return e}
function sv(tag,attrs,text){const e=document.createElementNS(NS,tag);for(const k in attrs)e.setAttribute(k,attrs[k]);if(text!==undefined)e.textContent=text;return e}
function us(v){return v>=1000?(v/1000).toFixed(v>=1e5?0:2)+" ms":v>=10?v.toFixed(1)+" µs":v.toFixed(2)+" µs"}
function bytes(v){const u=["B","KiB","MiB","GiB"];let i=0;while(v>=1024&&i<3){v/=1024;i++}return (i&&v<100?v.toFixed(1):v.toFixed(0))+" "+u[i]}
function card(title,cls){const s=el("section",cls);s.append(el("h2","",title));page.append(s);return s}
const total=S.reduce((a,s)=>a+s.mean_us,0),roof=S.reduce((a,s)=>a+s.roofline_us,0),least=S.reduce((a,s)=>a+s.min_us,0),flops=S.reduce((a,s)=>a+s.flops,0);
document.title=(D.model||"model")+" – profile";
{const h=el("header");h.append(el("h1","",D.model||"model"),el("div","soft",D.target+(D.compiler?" · Tilewright "+D.compiler:"")));
 const f=el("div","facts");for(const [v,what] of [[us(total),"sum of "+S.length+" steps"],[D.threads+"",D.threads==1?"thread":"threads"],[total>0?(flops/total/1000).toFixed(1)+" GFLOP/s":"–","of "+D.peak_gflops.toFixed(0)+" attainable"],[least>0?(100*roof/least).toFixed(0)+" %":"–","of the roofline"],[bytes(D.arenas.reduce((a,b)=>a+b,0)),"working memory"],[bytes(D.weights_bytes),"weights"]]){const d=el("div");d.append(el("b","",v),el("span","soft",what));f.append(d)}
 h.append(f);page.append(h)}
let chosen=-1;const rows=[],nodes=[],lives=[],edges=[];
// ---- kernels ----
const list=card("Kernels: time, roofline, the model's nodes"),scroll=el("div","scroll"),table=el("table"),head=el("tr"),body=el("tbody");
const longest=Math.max(...S.map(s=>Math.max(s.min_us,s.roofline_us)),1e-9);
const columns=[["#",(a,b)=>a-b,"n"],["time",(a,b)=>S[b].min_us-S[a].min_us,"n"],["%",(a,b)=>S[b].min_us-S[a].min_us,"n opt"],["roofline",(a,b)=>S[b].roofline_us/S[b].min_us-S[a].roofline_us/S[a].min_us,"n"],["time and roofline",(a,b)=>S[b].min_us-S[a].min_us,""],["operators and nodes",(a,b)=>S[a].name<S[b].name?-1:1,""]];
for(const [name,order,cls] of columns){const th=el("th",cls,name);th.title="sort";th.onclick=()=>sort(order);head.append(th)}
const thead=el("thead");thead.append(head);table.append(thead,body);scroll.append(table);list.append(scroll);
S.forEach((s,i)=>{const r=el("tr");r.append(el("td","n",i+""),el("td","n",us(s.min_us)),el("td","n opt",(least>0?100*s.min_us/least:0).toFixed(1)),el("td","n",s.min_us>0&&s.roofline_us>0?(100*s.roofline_us/s.min_us).toFixed(0)+" %":"–"));
 const t=el("td"),bar=el("div","bar"),i1=el("i"),u=el("u");i1.style.width=100*s.min_us/longest+"%";u.style.left="calc("+100*s.roofline_us/longest+"% - 1px)";bar.append(i1,u);bar.title="measured "+us(s.min_us)+", roofline "+us(s.roofline_us)+" ("+s.bound+")";t.append(bar);r.append(t);
 const o=el("td");o.append(el("div","op",s.name),el("div","src soft",s.nodes));r.append(o);r.onclick=()=>choose(i);rows.push(r)});
function sort(order){[...S.keys()].sort(order).forEach(i=>body.append(rows[i]))}
sort((a,b)=>a-b);
{const l=el("div","legend soft"),a=el("span"),b=el("span");a.style.background="var(--bar)";b.style.background="var(--roof)";b.style.width="3px";l.append(a,"fastest of the runs",b,"roofline: no kernel can be faster than the arithmetic peak and the memory allow");list.append(l)}
// ---- details ----
const detail=card("Step"),facts=el("dl");detail.append(facts);
function show(i){facts.textContent="";const s=S[i],add=(k,v)=>{if(v===""||v===undefined)return;facts.append(el("dt","",k),el("dd","",v))};
 add("step",i+" of "+S.length+(s.kind=="kernel"?"":" ("+s.kind+")"));add("operators",s.name);add("nodes",s.nodes);add("kernel",s.kernel);add("implementation",s.implementation);
 add("time",us(s.min_us)+" at best, "+us(s.median_us)+" median");add("roofline",s.roofline_us>0?us(s.roofline_us)+", bound by "+(s.bound=="fma"?"arithmetic":s.bound):"");add("predicted",s.predicted_us>0?us(s.predicted_us)+" on one thread":"");
 add("work",s.flops>0?(s.flops/1e6).toFixed(3)+" MFLOP, "+(s.min_us>0?(s.flops/s.min_us/1000).toFixed(1):"0")+" GFLOP/s":"");add("traffic",bytes(s.bytes)+", "+(s.min_us>0?(s.bytes/s.min_us/1000).toFixed(1):"0")+" GB/s");
 add("threads",s.parallel?"all":"one");const scratch=s.buffers.filter(b=>b.space=="scratch"),real=s.buffers.filter(b=>b.space!="scratch"),cut=real.length-s.outputs;
 real.forEach((b,k)=>add(k<cut?"reads":"writes",b.dtype+" "+b.shape+(b.layout?" "+b.layout:"")+" "+b.name+" ("+b.space+", "+bytes(b.bytes)+")"));scratch.forEach(b=>add("scratch",bytes(b.bytes)))}
// ---- graph: a layer for each depth ----
{const box=card("Graph of fused kernels","wide"),area=el("div","scroll"),W=168,H=34,GX=14,GY=26;
 const depth=S.map(()=>0);S.forEach((s,i)=>{for(const f of s.from)if(f[0]=="s")depth[i]=Math.max(depth[i],depth[+f.slice(1)]+1);else depth[i]=Math.max(depth[i],1)});
 const layers=[];D.inputs.forEach((t,k)=>(layers[0]=layers[0]||[]).push("i"+k));S.forEach((s,i)=>(layers[depth[i]]=layers[depth[i]]||[]).push("s"+i));
 const at={};let y=8;const widest=Math.max(...layers.map(l=>l?l.length:0)),width=widest*(W+GX)+GX+60;
 for(const layer of layers){if(!layer)continue;let x=(width-layer.length*(W+GX)+GX)/2;for(const n of layer){at[n]=[x,y];x+=W+GX}y+=H+GY}
 const g=sv("svg",{width,height:y,viewBox:"0 0 "+width+" "+y,style:"margin:auto"});
 S.forEach((s,i)=>{for(const f of s.from){const a=at[f],b=at["s"+i];if(!a)continue;const x1=a[0]+W/2,y1=a[1]+H,x2=b[0]+W/2,y2=b[1],m=(y1+y2)/2;const far=y2-y1>GY+2,side=W/2+34;const p=sv("path",{class:"edge",d:far?`M${x1} ${y1}C${x1+side} ${y1+GY} ${x2+side} ${y2-GY} ${x2} ${y2}`:`M${x1} ${y1}C${x1} ${m} ${x2} ${m} ${x2} ${y2}`});p.dataset.from=f;p.dataset.to="s"+i;edges.push(p);g.append(p)}});
 const cut=(t,n)=>t.length>n?t.slice(0,n-1)+"…":t;
 D.inputs.forEach((t,k)=>{const [x,yy]=at["i"+k],n=sv("g",{});n.append(sv("rect",{x,y:yy,width:W,height:H,rx:16,fill:"none",stroke:"var(--edge)"}),sv("text",{x:x+12,y:yy+14},cut(t.name,20)),sv("text",{x:x+12,y:yy+27,class:"soft"},cut(t.dtype+" "+t.shape,22)));g.append(n)});
 S.forEach((s,i)=>{const [x,yy]=at["s"+i],n=sv("g",{class:"node"});const share=least>0?s.min_us/least:0;
  n.append(sv("rect",{x,y:yy,width:W,height:H,rx:5,fill:"rgba(var(--heat),"+(0.08+0.8*Math.min(1,Math.sqrt(share))).toFixed(3)+")"}),sv("text",{x:x+7,y:yy+14},cut(s.name.replace(/nn\.|contrib_/g,""),22)),sv("text",{x:x+7,y:yy+27,class:"soft"},"#"+i+"  "+us(s.min_us)),sv("title",{},s.name+"\n"+s.nodes));n.onclick=()=>choose(i);nodes.push(n);g.append(n)});
 area.append(g);box.append(area);area.scrollLeft=0;const l=el("div","legend soft","darker: more of the time; the numbers are the steps in their order");box.append(l);requestAnimationFrame(()=>{area.scrollLeft=(width-area.clientWidth)/2})}
// ---- memory ----
D.arenas.forEach((size,device)=>{const m=D.memory.filter(b=>b.device==device);if(!m.length&&device)return;
 const box=card("Memory plan over the steps"+(D.arenas.length>1?", device "+device:"")+": "+bytes(size),"wide"),area=el("div","scroll"),L=64,W=Math.max(page.clientWidth-140,Math.min(2400,S.length*9)),H=300,top=6;
 const g=sv("svg",{viewBox:"0 0 "+(L+W+8)+" "+(H+30),width:L+W+8}),Y=v=>top+H-H*v/Math.max(size,1),X=v=>L+W*v/Math.max(S.length,1);
 for(let k=0;k<=4;k++){const v=size*k/4;g.append(sv("line",{x1:L,x2:L+W,y1:Y(v),y2:Y(v),stroke:"var(--line)"}),sv("text",{x:L-6,y:Y(v)+4,"text-anchor":"end",class:"soft"},bytes(v)))}
 m.forEach((b,k)=>{const r=sv("rect",{class:"life",x:X(b.first),width:Math.max(X(b.last+1)-X(b.first),1),y:Y(b.offset+b.bytes),height:Math.max(Y(b.offset)-Y(b.offset+b.bytes),1),fill:`hsl(${(k*67)%360} 52% 55%)`,"fill-opacity":.72});r.append(sv("title",{},b.name+"\n"+b.dtype+" "+b.shape+", "+bytes(b.bytes)+" at "+b.offset+"\nsteps "+b.first+" to "+b.last));r.onclick=()=>choose(b.first);lives.push([b,r]);g.append(r)});
 const every=Math.max(1,Math.ceil(S.length/16));for(let i=0;i<S.length;i+=every)g.append(sv("text",{x:X(i),y:top+H+16,class:"soft"},i+""));
 g.append(sv("text",{x:L+W,y:top+H+28,"text-anchor":"end",class:"soft"},"step"));area.append(g);box.append(area)});
function choose(i){chosen=i;rows.forEach((r,k)=>r.classList.toggle("on",k==i));nodes.forEach((n,k)=>n.classList.toggle("on",k==i));
 edges.forEach(e=>e.classList.toggle("on",e.dataset.from=="s"+i||e.dataset.to=="s"+i));lives.forEach(([b,r])=>r.classList.toggle("on",b.first<=i&&i<=b.last));show(i)}
if(S.length)choose(S.reduce((best,s,i)=>s.min_us>S[best].min_us?i:best,0));
document.body.dataset.ready=S.length+"";
</script></body></html>
)page";

}  // namespace tilewright::cli
