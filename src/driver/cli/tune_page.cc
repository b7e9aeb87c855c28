// SPDX-License-Identifier: Apache-2.0
#include "driver/cli/tune_page.h"

#include "base/version.h"

namespace tilewright::driver {
namespace {
using nlohmann::json;

// Text from the data is inserted as text nodes only.
constexpr const char* kTuningHtml = R"page(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>Tuning</title>
<style>
:root{--bg:#f7f8fa;--card:#fff;--ink:#1b2330;--soft:#5d6878;--line:#d9dee6;--bar:#3b74c9;--best:#d1601f;--sel:#ffe9a8}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1b212a;--ink:#e4e9f0;--soft:#98a4b5;--line:#2f3844;--bar:#6ea3f0;--best:#f0995c;--sel:#54480f}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:14px/1.45 system-ui,"DejaVu Sans",sans-serif}
main{max-width:1500px;margin:auto;padding:16px;display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:14px}
header,section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 14px;min-width:0}
header,.wide{grid-column:1/-1}h1{font-size:19px;margin:0 0 2px;overflow-wrap:anywhere}h2{font-size:14px;margin:0 0 8px}
.soft{color:var(--soft)}.facts{display:flex;flex-wrap:wrap;gap:6px 26px;margin-top:8px}.facts b{font-size:17px;font-weight:600;display:block}
.scroll{overflow:auto;max-height:640px}table{border-collapse:collapse;width:100%}th{position:sticky;top:0;background:var(--card);text-align:left;font-weight:500;color:var(--soft);cursor:pointer;white-space:nowrap}
th,td{padding:3px 8px 3px 0;border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
tbody tr{cursor:pointer}tr.on td{background:var(--sel)}.name{overflow-wrap:anywhere}.src{font-size:12px;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 12px;margin:10px 0 0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
svg{display:block;max-width:100%;height:auto}svg text{fill:var(--soft);font:11px system-ui,"DejaVu Sans",sans-serif}
.curve{fill:none;stroke:var(--bar);stroke-width:2}.base{stroke:var(--best);stroke-dasharray:4 3}.grid{stroke:var(--line)}.dot{fill:var(--best)}
@media (max-width:820px){main{grid-template-columns:minmax(0,1fr);padding:8px;gap:8px}th{white-space:normal}th.opt,td.opt{display:none}}
</style></head><body><main id="page"></main>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const D=JSON.parse(document.getElementById("data").textContent),T=D.tasks,page=document.getElementById("page"),NS="http://www.w3.org/2000/svg";
function el(tag,cls,text){const e=document.createElement(tag);if(cls)e.className=cls;if(text!==undefined)e.textContent=text;return e}
function sv(tag,attrs,text){const e=document.createElementNS(NS,tag);for(const k in attrs)e.setAttribute(k,attrs[k]);if(text!==undefined)e.textContent=text;return e}
function us(v){return !(v>0)?"–":v>=1000?(v/1000).toFixed(v>=1e5?0:2)+" ms":v>=10?v.toFixed(1)+" µs":v.toFixed(2)+" µs"}
function gain(t){return t.best_us>0&&t.default_us>0?t.default_us/t.best_us:1}
function shapes(t){return t.args.filter(a=>Array.isArray(a)&&a[0]=="TENSOR").map(a=>a[1].join("x")).join("  ")}
document.title=D.model+" – tuning";
{const h=el("header");h.append(el("h1","",D.model),el("div","soft",D.target+" · Tilewright "+D.compiler+(D.interrupted?" · interrupted":"")));
 const f=el("div","facts"),all=D.tuned_seconds>0?D.default_seconds/D.tuned_seconds:1;
 for(const [v,what] of [[us(D.default_seconds*1e6)+" → "+us(D.tuned_seconds*1e6),"tuned kernels of a run"],[all.toFixed(2)+"x","gain"],[D.trials+"","trials"],[D.seconds>0?(D.trials/D.seconds).toFixed(1):"–","trials a second"],[D.seconds.toFixed(0)+" s","of measuring"],[T.length+"","tasks"]]){const d=el("div");d.append(el("b","",v),el("span","soft",what));f.append(d)}
 h.append(f,el("div","soft src","records: "+D.log));page.append(h)}
const list=el("section"),scroll=el("div","scroll"),table=el("table"),head=el("tr"),body=el("tbody"),rows=[];
list.append(el("h2","","Tasks"));
const columns=[["#",(a,b)=>a-b,"n"],["task",(a,b)=>T[a].name<T[b].name?-1:1,""],["calls",(a,b)=>T[b].calls-T[a].calls,"n opt"],["trials",(a,b)=>T[b].trials-T[a].trials,"n"],["failed",(a,b)=>T[b].failed-T[a].failed,"n opt"],["default",(a,b)=>T[b].default_us-T[a].default_us,"n"],["best",(a,b)=>T[b].best_us-T[a].best_us,"n"],["gain",(a,b)=>gain(T[b])-gain(T[a]),"n"]];
for(const [name,order,cls] of columns){const th=el("th",cls,name);th.title="sort";th.onclick=()=>sort(order);head.append(th)}
const thead=el("thead");thead.append(head);table.append(thead,body);scroll.append(table);list.append(scroll);page.append(list);
T.forEach((t,i)=>{const r=el("tr"),name=el("td");name.append(el("div","name",t.name),el("div","src soft",shapes(t)));
 r.append(el("td","n",i+""),name,el("td","n opt",t.calls+"x"),el("td","n",t.trials+""),el("td","n opt",t.failed+""),el("td","n",us(t.default_us)),el("td","n",us(t.best_us)),el("td","n",gain(t).toFixed(2)+"x"));r.onclick=()=>choose(i);rows.push(r)});
function sort(order){[...T.keys()].sort(order).forEach(i=>body.append(rows[i]))}
sort((a,b)=>a-b);
const detail=el("section"),title=el("h2"),drawing=el("div"),facts=el("dl");detail.append(title,drawing,facts);page.append(detail);
function curve(t,W,H,labels){const L=labels?58:4,B=labels?34:4,g=sv("svg",{viewBox:`0 0 ${W} ${H}`,width:W,height:H}),c=t.curve.map((v,i)=>[i+1,v]).filter(p=>p[1]>0);
 if(!c.length){g.append(sv("text",{x:8,y:20},"nothing could be measured"));return g}
 const n=Math.max(t.curve.length,2),most=Math.max(...c.map(p=>p[1]),t.default_us)*1.04,least=Math.min(...c.map(p=>p[1]),t.default_us||1e30)*0.94;
 const X=v=>L+(W-L-8)*(v-1)/(n-1),Y=v=>8+(H-B-12)*(1-(v-least)/Math.max(most-least,1e-9));
 if(labels)for(let k=0;k<=3;k++){const v=least+(most-least)*k/3;g.append(sv("line",{class:"grid",x1:L,x2:W-8,y1:Y(v),y2:Y(v)}),sv("text",{x:L-6,y:Y(v)+4,"text-anchor":"end"},us(v)))}
 if(t.default_us>0)g.append(sv("line",{class:"base",x1:L,x2:W-8,y1:Y(t.default_us),y2:Y(t.default_us)}));
 let d=`M${X(c[0][0])} ${Y(c[0][1])}`;for(const [i,v] of c.slice(1))d+=`H${X(i)}V${Y(v)}`;g.append(sv("path",{class:"curve",d}));
 const last=c[c.length-1];g.append(sv("circle",{class:"dot",cx:X(last[0]),cy:Y(last[1]),r:3}));
 if(labels)g.append(sv("text",{x:L,y:H-8},"trial 1"),sv("text",{x:W-8,y:H-8,"text-anchor":"end"},t.curve.length+" trials"),sv("text",{x:(L+W)/2,y:H-8,"text-anchor":"middle"},"best time so far; dashed: the cost model's choice"));
 return g}
function choose(i){rows.forEach((r,k)=>r.classList.toggle("on",k==i));const t=T[i];title.textContent=i+": "+t.name;drawing.textContent="";drawing.append(curve(t,560,300,true));
 facts.textContent="";for(const [k,v] of [["shapes",shapes(t)],["arguments",JSON.stringify(t.args)],["space",t.space+" configurations"],["best",us(t.best_us)+", "+gain(t).toFixed(2)+"x of the default's "+us(t.default_us)],["implementation",t.implementation],["configuration",t.configuration]])facts.append(el("dt","",k),el("dd","",v))}
{const box=el("section","wide"),area=el("div","facts");box.append(el("h2","","Curves of all tasks"));
 T.forEach((t,i)=>{const d=el("div");d.style.cursor="pointer";d.append(curve(t,150,70,false),el("div","soft src",i+": "+gain(t).toFixed(2)+"x"));d.onclick=()=>choose(i);area.append(d)});box.append(area);page.append(box)}
if(T.length)choose(T.reduce((b,t,i)=>gain(t)>gain(T[b])?i:b,0));
document.body.dataset.ready=T.length+"";
</script></body></html>
)page";

}  // namespace

json tuning_report(const tune::Tuning& tuning, const std::string& log, bool interrupted, bool curves) {
  json out{{"log", log},
           {"seconds", tuning.seconds()},
           {"trials", tuning.trials()},
           {"interrupted", interrupted},
           {"default_seconds", tuning.total_seconds(false)},
           {"tuned_seconds", tuning.total_seconds(true)},
           {"tasks", json::array()}};
  for (const tune::TaskState& state : tuning.states()) {
    json task{{"name", state.task->workload.name},
              {"args", state.task->workload.args},
              {"calls", state.task->calls},
              {"space", state.task->space.size()},
              {"trials", state.trials},
              {"failed", state.failed},
              {"default_us", state.default_seconds * 1e6},
              {"best_us", state.best_seconds * 1e6},
              {"implementation", state.best.implementation->name},
              {"configuration", state.best.text}};
    if (curves) {
      task["curve"] = json::array();
      for (const double seconds : state.curve) task["curve"].push_back(seconds * 1e6);
    }
    out["tasks"].push_back(std::move(task));
  }
  return out;
}

std::string tuning_page(const std::string& model, const std::string& target, const json& report) {
  json data = report;
  data["model"] = model, data["target"] = target, data["compiler"] = version();
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) text.replace(at, 1, "\\u003c");
  std::string page = kTuningHtml;
  const std::string place = "@DATA@";
  page.replace(page.find(place), place.size(), text);
  return page;
}

}  // namespace tilewright::driver
