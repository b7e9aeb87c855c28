# SPDX-License-Identifier: Apache-2.0
"""Turns the figures of bench/run.py into a Markdown table, a bar chart (SVG), a page, and docs/performance.md."""
import html as html_escape
import os
import re

TITLES = {"ours": "Tilewright", "ort": "onnxruntime", "openvino": "OpenVINO", "mnn": "MNN", "ncnn": "ncnn"}
# Chosen to stay apart in greyscale and for colour-blind readers.
COLOURS = {"ours": "#0b5cad", "ort": "#e69f00", "openvino": "#56b4e9", "mnn": "#9aa5a1", "ncnn": "#cc79a7"}
START, END = "<!-- bench:begin {} -->", "<!-- bench:end {} -->"


def engines_of(results):
    seen = {engine for model in results["models"] for entry in model["threads"].values() for engine in entry}
    return [engine for engine in TITLES if engine in seen]


def threads_of(results):
    return sorted({int(threads) for model in results["models"] for threads in model["threads"]})


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def time_cell(entry):
    if entry is None:
        return ""
    if "failed" in entry:
        return "-"
    # An engine that answers wrongly gets no credit for its speed: mark it.
    return number(entry["median_ms"]) + (f" (off {entry['error']:.0f}x)" if entry["error"] > 1 else "")


def label_of(model):
    dims = ["x".join(map(str, dims)) for dims in model["shapes"].values()]
    return model["model"] + (f" {dims[0]}" if dims else "")


def markdown(results):
    """One table per thread count: median milliseconds, and our time as a share of each peer's."""
    lines = []
    for threads in threads_of(results):
        engines = engines_of(results)
        peers = [engine for engine in engines if engine != "ours"]
        lines += [f"**{threads} thread{'s' if threads > 1 else ''}**, median ms of one inference; ratio below 1: Tilewright is faster", ""]
        lines.append("| model | " + " | ".join(TITLES[e] for e in engines) + " | " + " | ".join(f"ratio to {TITLES[p]}" for p in peers) + " |")
        lines.append("|---|" + "---:|" * (len(engines) + len(peers)))
        for model in results["models"]:
            entry = model["threads"].get(str(threads))
            if not entry:
                continue
            ratios = [entry["ratios"].get(peer) for peer in peers]
            cells = [time_cell(entry.get(e)) for e in engines] + ["" if r is None else f"{r:.2f}" for r in ratios]
            lines.append(f"| {label_of(model)} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += compile_table(results)
    machine = results["machine"]
    versions = sorted({f"{TITLES[engine]} {entry[engine]['version']}" for model in results["models"]
                       for entry in model["threads"].values() for engine in entry
                       if engine in TITLES and entry[engine].get("version")})
    lines.append(f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; float32, batch 1; "
                 f"{results['rounds']} rounds of {results['seconds']:g} s, a fresh process each; {results['when'][:10]}"
                 + (f"; {', '.join(versions)}" if versions else "")
                 + ". \"-\": the engine cannot run the model; \"off 3x\": its output is 3 times further from "
                 "onnxruntime's than allowed.")
    return "\n".join(lines)


def compile_table(results):
    rows = []
    for model in results["models"]:
        facts = model["compile"]
        if "failed" in facts:
            if facts["failed"] != "not asked for":
                rows.append(f"| {label_of(model)} | {facts['failed'].replace('|', '/')} | | | | |")
            continue
        ours = [entry["ours"] for entry in model["threads"].values() if "failed" not in entry["ours"]]
        load, first = (min((o[key] for o in ours), default=0) for key in ("load_ms", "first_ms"))
        memory = max((o["peak_rss_bytes"] for o in ours), default=0)
        rows.append(f"| {label_of(model)} | {facts['compile_s']:.2f} | {facts['compile_peak_rss_bytes'] / 2**20:.0f} | "
                    f"{facts['artifact_bytes'] / 2**20:.1f} | {load:.1f} + {first:.1f} | {memory / 2**20:.0f} |")
    if not rows:
        return []
    return ["| model | compile s | compile peak MiB | artifact MiB | load + first run ms | run peak MiB |",
            "|---|---:|---:|---:|---:|---:|", *rows, ""]


def svg(results, threads):
    """Horizontal bars, one group per model, each scaled to the slowest engine of its group."""
    engines = engines_of(results)
    bar, gap, left, width, right = 15, 16, 190, 460, 90
    y, parts = 34, []
    for x, engine in zip(range(left, 4000, 110), engines):
        parts.append(f'<rect x="{x}" y="8" width="12" height="12" fill="{COLOURS[engine]}"/>'
                     f'<text x="{x + 17}" y="18">{TITLES[engine]}</text>')
    for model in results["models"]:
        entry = model["threads"].get(str(threads), {})
        times = {engine: entry[engine]["median_ms"] for engine in engines
                 if engine in entry and "failed" not in entry[engine] and entry[engine]["error"] <= 1}
        if not times:
            continue
        slowest = max(times.values())
        middle = y + bar * len(times) / 2 + 4
        parts.append(f'<text x="{left - 10}" y="{middle:.0f}" text-anchor="end">{html_escape.escape(label_of(model))}</text>')
        for engine, value in times.items():
            length = max(1.0, width * value / slowest)
            weight = ' font-weight="bold"' if engine == "ours" else ""
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" fill="{COLOURS[engine]}"/>'
                         f'<text x="{left + length + 6:.1f}" y="{y + bar - 4}"{weight}>{number(value)} ms</text>')
            y += bar
        y += gap
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + right}" height="{y}" '
            f'viewBox="0 0 {left + width + right} {y}" font-family="sans-serif" font-size="12" role="img" '
            f'aria-label="Median time of one inference at {threads} threads">'
            f'<rect width="100%" height="100%" fill="white"/><g fill="#222">{"".join(parts)}</g></svg>\n')


def html(results):
    body = "".join(f"<h2>{threads} thread{'s' if threads > 1 else ''}</h2>{svg(results, threads)}" for threads in threads_of(results))
    table = html_escape.escape(markdown(results))
    return ('<!doctype html><html lang="en"><meta charset="utf-8"><title>Tilewright: measured</title>'
            "<style>body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{overflow-x:auto}</style>"
            f"<h1>Time of one inference</h1>{body}<h2>Figures</h2><pre>{table}</pre></html>\n")


def write_docs(results, path):
    """Replaces what stands between the markers of the page, and the pictures beside it; the prose stays."""
    text = path.read_text(encoding="utf-8") if path.exists() else "# Performance\n"
    charts = []
    for threads in threads_of(results):
        picture = path.with_name(f"performance_{threads}.svg")
        write(picture, svg(results, threads))
        charts.append(f"![Median time of one inference, {threads} thread{'s' if threads > 1 else ''}]({picture.name})")
    block = "\n".join([START.format("models"), *charts, "", markdown(results), END.format("models")])
    pattern = re.compile(re.escape(START.format("models")) + ".*?" + re.escape(END.format("models")), re.DOTALL)
    text = pattern.sub(lambda _: block, text) if pattern.search(text) else f"{text.rstrip()}\n\n{block}\n"
    write(path, text)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.part")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
