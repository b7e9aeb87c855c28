# SPDX-License-Identifier: Apache-2.0
"""Turns the figures of bench/run.py into a Markdown table, bar charts (SVG), a page, and docs/performance.md."""
import html as html_escape
import json
import math
import os
import re

FORMAT = 2
WRONG = 1e9  # the error of outputs that cannot be compared at all
PEER_SLACK = 10  # a peer's time counts up to this many times the tolerance: leaving out a fast one would flatter us
NOISE = 0.97  # a ratio above this counts as equal
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


def counts(entry, limit=PEER_SLACK):
    """Whether an engine ran the model, and rightly: one that answers wrongly gets no credit for its speed."""
    return entry is not None and "failed" not in entry and entry["error"] <= limit


def best_peer(entry):
    peers = [engine for engine in TITLES if engine != "ours" and counts(entry.get(engine))]
    return min(peers, key=lambda engine: entry[engine]["ms"], default=None)


def ratio(entry, peer):
    """The peer's time by ours; nothing when either has none."""
    if peer is None or not counts(entry.get("ours"), 1) or not counts(entry.get(peer)):
        return None
    return entry[peer]["ms"] / entry["ours"]["ms"]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def time_cell(entry):
    if entry is None:
        return ""
    if "failed" in entry:
        return "-"
    if entry["error"] >= WRONG:
        return number(entry["ms"]) + " (wrong)"
    return number(entry["ms"]) + (f" (off {entry['error']:.1f}x)" if entry["error"] > 1 else "")


def label_of(model):
    dims = ["x".join(map(str, dims)) for dims in model["shapes"].values()]
    return model["model"] + (f" {dims[0]}" if dims else "")


def plural(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def summary(results, threads):
    """One line: the geometric mean beside the best peer of each model, and what is slower than it."""
    ratios = {}
    for model in results["models"]:
        entry = model["threads"].get(str(threads))
        value = entry and ratio(entry, best_peer(entry))
        if value:
            ratios[label_of(model)] = value
    if not ratios:
        return f"{plural(threads)}: nothing to compare with"
    slower = sorted((value, label) for label, value in ratios.items() if value < NOISE)
    means = []
    for peer in engines_of(results):
        values = [ratio(model["threads"].get(str(threads), {}), peer) for model in results["models"]]
        values = [value for value in values if value]
        if peer != "ours" and values:
            means.append(f"{geometric_mean(values):.2f} to {TITLES[peer]} ({len(values)})")
    return (f"{plural(threads)}: geometric mean of the ratio to each model's best peer {geometric_mean(list(ratios.values())):.2f} over "
            f"{len(ratios)} models; {len(ratios) - len(slower)} at {NOISE} or more"
            + (f", below: {', '.join(f'{label} {value:.2f}' for value, label in slower)}" if slower else "")
            + (f". To single engines (models): {', '.join(means)}." if means else "."))


def markdown(results):
    """One table per thread count: milliseconds, the best peer, and its time by ours."""
    lines = [f"- {summary(results, threads)}" for threads in threads_of(results)]
    lines += [line for line in [scaling(results)] if line] + [""]
    for threads in threads_of(results):
        engines = engines_of(results)
        lines += [f"**{plural(threads)}**, ms of one inference; ratio to the best peer above 1: Tilewright is faster", ""]
        lines.append("| model | " + " | ".join(TITLES[e] for e in engines) + " | best peer | ratio |")
        lines.append("|---|" + "---:|" * len(engines) + "---|---:|")
        for model in results["models"]:
            entry = model["threads"].get(str(threads))
            if not entry:
                continue
            best = best_peer(entry)
            value = ratio(entry, best)
            cells = [time_cell(entry.get(e)) for e in engines] + [TITLES[best] if best else "", f"**{value:.2f}**" if value else ""]
            lines.append(f"| {label_of(model)} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += compile_table(results)
    return "\n".join(lines + [conditions(results) + ". \"-\": the engine cannot run the model; \"off 3.0x\": its output is 3 times "
                              "further from onnxruntime's than allowed (up to 10 it still counts as a peer); \"wrong\": it is "
                              "something else."])


def ratios(results):
    """One table for all thread counts: the ratio to each model's best peer, and which one that is."""
    counted = threads_of(results)
    lines = [f"- {summary(results, threads)}" for threads in counted] + [""]
    lines.append("| network | " + " | ".join(f"{plural(threads)}: ms | best peer | ratio" for threads in counted) + " |")
    lines.append("|---|" + "---:|---|---:|" * len(counted))
    for model in results["models"]:
        cells = []
        for threads in counted:
            entry = model["threads"].get(str(threads), {})
            best = best_peer(entry)
            value = ratio(entry, best)
            cells += [time_cell(entry.get("ours")), TITLES[best] if best else "", f"**{value:.2f}**" if value else ""]
        lines.append(f"| {label_of(model)} | " + " | ".join(cells) + " |")
    return "\n".join(lines + ["", conditions(results) + "."])


def conditions(results):
    """The machine, how it was measured, and the engines' versions."""
    machine = results["machine"]
    entries = [entry for model in results["models"] for entry in model["threads"].values()]
    versions = sorted({f"{TITLES[engine]} {entry[engine]['version']}" for entry in entries for engine in entry
                       if engine in TITLES and entry[engine].get("version")})
    rounds = sorted({entry["rounds"] for entry in entries})
    kind = f" with {machine['vectors']}" if machine.get("vectors") else ""
    return (f"{machine['processor']}{kind}, {machine['cores']} cores, {machine['system']}; float32, batch 1; "
            f"{' or '.join(map(str, rounds))} rounds of {results['seconds']:g} s, a fresh process each; {results.get('when', '')[:10]}"
            + (f"; {', '.join(versions)}" if versions else ""))


def scaling(results):
    """How much faster two threads are than one, per engine, over the models it runs with both."""
    parts = []
    for engine in engines_of(results):
        values = [model["threads"]["1"][engine]["ms"] / model["threads"]["2"][engine]["ms"] for model in results["models"]
                  if all(counts(model["threads"].get(threads, {}).get(engine)) for threads in ("1", "2"))]
        if values:
            parts.append(f"{TITLES[engine]} {geometric_mean(values):.2f}")
    return f"- from 1 to 2 threads, geometric mean: {', '.join(parts)}" if parts else ""


def compile_table(results):
    rows = []
    for model in results["models"]:
        facts = model["compile"]
        if "failed" in facts:
            if facts["failed"] != "not asked for":
                rows.append(f"| {label_of(model)} | {facts['failed'].replace('|', '/')} | | | | | |")
            continue
        ours = [entry["ours"] for entry in model["threads"].values() if "failed" not in entry["ours"]]
        load, first = (min((o[key] for o in ours), default=0) for key in ("load_ms", "first_ms"))
        memory = max((o["peak_rss_bytes"] for o in ours), default=0)
        rows.append(f"| {label_of(model)} | {facts['compile_s']:.2f} | {facts['compile_peak_rss_bytes'] / 2**20:.0f} | "
                    f"{facts['model_bytes'] / 2**20:.1f} | {facts['artifact_bytes'] / 2**20:.1f} | {load:.1f} + {first:.1f} | {memory / 2**20:.0f} |")
    if not rows:
        return []
    return ["| model | compile s | compile peak MiB | model MiB | artifact MiB | load + first run ms | run peak MiB |",
            "|---|---:|---:|---:|---:|---:|---:|", *rows, ""]


def svg(results, threads):
    """Horizontal bars, one group per model, each scaled to the slowest engine of its group."""
    engines = engines_of(results)
    bar, gap, left, width, right = 15, 16, 190, 460, 160
    y, parts = 34, []
    for x, engine in zip(range(left, 4000, 110), engines):
        parts.append(f'<rect x="{x}" y="8" width="12" height="12" fill="{COLOURS[engine]}"/>'
                     f'<text x="{x + 17}" y="18">{TITLES[engine]}</text>')
    for model in results["models"]:
        entry = model["threads"].get(str(threads), {})
        times = {engine: entry[engine]["ms"] for engine in engines if counts(entry.get(engine))}
        if not times:
            continue
        slowest = max(times.values())
        value = ratio(entry, best_peer(entry))
        middle = y + bar * len(times) / 2 + 4
        parts.append(f'<text x="{left - 10}" y="{middle:.0f}" text-anchor="end">{html_escape.escape(label_of(model))}</text>')
        for engine, time in times.items():
            length = max(1.0, width * time / slowest)
            weight = ' font-weight="bold"' if engine == "ours" else ""
            note = f" ({value:.2f}x)" if engine == "ours" and value else ""
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" fill="{COLOURS[engine]}"/>'
                         f'<text x="{left + length + 6:.1f}" y="{y + bar - 4}"{weight}>{number(time)} ms{note}</text>')
            y += bar
        y += gap
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + right}" height="{y}" '
            f'viewBox="0 0 {left + width + right} {y}" font-family="sans-serif" font-size="12" role="img" '
            f'aria-label="Time of one inference at {plural(threads)}; in brackets the best peer\'s time by ours">'
            f'<rect width="100%" height="100%" fill="white"/><g fill="#222">{"".join(parts)}</g></svg>\n')


def html(results):
    """A page that stands alone: summary, charts, tables."""
    rows = markdown(results).splitlines()
    body, at = [], 0
    while at < len(rows):
        if rows[at].startswith("|"):
            table = []
            while at < len(rows) and rows[at].startswith("|"):
                table.append([inline(cell.strip()) for cell in rows[at].strip("|").split("|")])
                at += 1
            head, cells = table[0], table[2:]
            body.append("<table><tr>" + "".join(f"<th>{cell}" for cell in head)
                        + "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in cells) + "</table>")
            continue
        if rows[at]:
            body.append(f"<p>{inline(rows[at].removeprefix('- '))}</p>")
        at += 1
    charts = "".join(f"<h2>{plural(threads)}</h2>{svg(results, threads)}" for threads in threads_of(results))
    return ('<!doctype html><html lang="en"><meta charset="utf-8"><title>Tilewright: measured</title>'
            "<style>body{font:15px sans-serif;max-width:62em;margin:2em auto;padding:0 1em}"
            "table{border-collapse:collapse}td,th{padding:.2em .7em;border-bottom:1px solid #ddd;text-align:right}"
            "td:first-child,th:first-child{text-align:left}</style>"
            f"<h1>Time of one inference</h1>{charts}<h2>Figures</h2>{''.join(body)}</html>\n")


def inline(text):
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html_escape.escape(text))


def compact(results):
    """The figures as JSON with one line per model and thread count, rounded to what they mean."""
    def rounded(value):
        if isinstance(value, float):
            return float(f"{value:.4g}")
        if isinstance(value, dict):
            return {key: rounded(item) for key, item in value.items()}
        return [rounded(item) for item in value] if isinstance(value, list) else value

    head = {key: value for key, value in results.items() if key != "models"}
    models = []
    for model in results["models"]:
        entries = ",\n   ".join(f"{json.dumps(threads)}: {json.dumps(rounded(entry))}" for threads, entry in model["threads"].items())
        rest = {key: value for key, value in model.items() if key != "threads"}
        models.append(f"  {json.dumps(rounded(rest))[:-1]}, \"threads\": {{\n   {entries}}}}}")
    return json.dumps(head)[:-1] + ', "models": [\n' + ",\n".join(models) + "\n]}\n"


def write_docs(results, path, name="models"):
    """Replaces what stands between the markers of the page, and the pictures beside it (other than of the models: one table); the prose
    stays."""
    charts, tables = [], markdown if name == "models" else ratios
    for threads in threads_of(results) if name == "models" else []:
        picture = path.with_name(f"performance_{threads}.svg")
        write(picture, svg(results, threads))
        charts.append(f"![Time of one inference, {plural(threads)}]({picture.name})")
    replace_part(path, name, "\n".join([*charts, *([""] if charts else []), tables(results)]))


def replace_part(path, name, body):
    """Puts `body` between the markers of a part of the page, which is added where there is none; the prose stays."""
    text = path.read_text(encoding="utf-8") if path.exists() else "# Performance\n"
    block = "\n".join([START.format(name), body, END.format(name)])
    pattern = re.compile(re.escape(START.format(name)) + ".*?" + re.escape(END.format(name)), re.DOTALL)
    text = pattern.sub(lambda _: block, text) if pattern.search(text) else f"{text.rstrip()}\n\n{block}\n"
    write(path, text)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.part")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
