#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./dev bench says about figures: ratios, means, wrong and missing engines, parts put together, the record."""
import argparse
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import report  # noqa: E402
import run  # noqa: E402


def engine(ms, error=0.0):
    return {"ms": ms, "ms_rounds": [ms], "median_ms": ms, "load_ms": 1.0, "first_ms": ms, "runs": 5, "peak_rss_bytes": 2**20,
            "error": error, "version": "1"}


def model(name, threads):
    facts = {"compile_s": 1.0, "compile_peak_rss_bytes": 2**20, "artifact_bytes": 2**20, "model_bytes": 2**20}
    return {"model": name, "shapes": {}, "compile": facts,
            "threads": {key: {**value, "rounds": 3, "when": "now"} for key, value in threads.items()}}


def results(*models):
    return {"format": report.FORMAT, "seconds": 0.5, "models": list(models),
            "machine": {"processor": "P", "cores": 2, "system": "S"}}


class Report(unittest.TestCase):
    def test_the_best_peer_is_the_fastest_that_answers_rightly(self):
        entry = {"ours": engine(2), "ort": engine(4), "mnn": engine(1, error=50), "ncnn": {"failed": "no"}}
        self.assertEqual(report.best_peer(entry), "ort")
        self.assertEqual(report.ratio(entry, "ort"), 2)
        self.assertIsNone(report.ratio(entry, "mnn"))
        self.assertIsNone(report.ratio({**entry, "ours": engine(2, error=2)}, "ort"))
        # A peer that is only a little off still counts; ours never does.
        self.assertEqual(report.best_peer({**entry, "mnn": engine(1, error=5)}), "mnn")

    def test_the_summary_has_the_mean_and_names_what_is_slower(self):
        line = report.summary(results(model("a", {"1": {"ours": engine(1), "ort": engine(4)}}),
                                      model("b", {"1": {"ours": engine(2), "ort": engine(1)}}),
                                      model("c", {"1": {"ours": {"failed": "x"}, "ort": engine(1)}})), 1)
        self.assertIn("best peer 1.41 over 2 models; 1 at 0.97 or more, below: b 0.50", line)

    def test_tables_show_failures_and_wrong_answers(self):
        text = report.markdown(results(model("a", {"2": {"ours": engine(1), "ort": engine(3), "mnn": engine(1, 7.2),
                                                         "ncnn": {"failed": "no"}, "openvino": engine(1, report.WRONG)}})))
        self.assertIn("| a | 1 | 3 | 1 (wrong) | 1 (off 7.2x) | - | MNN | **1.00** |", text)

    def test_the_zoo_has_one_line_per_network_and_a_part_of_the_page_of_its_own(self):
        whole = results(model("a", {"1": {"ours": engine(2), "ort": engine(3), "ncnn": engine(5)},
                                    "2": {"ours": engine(1), "ort": engine(2), "ncnn": engine(1.5)}}),
                        model("b", {"1": {"ours": engine(2), "ort": {"failed": "no"}, "ncnn": engine(1)}}))
        text = report.ratios(whole)
        self.assertIn("| a | 2 | onnxruntime | **1.50** | 1 | ncnn | **1.50** |", text)
        self.assertIn("| b | 2 | ncnn | **0.50** |  |  |  |", text)
        self.assertIn("below: b 0.50", text)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "performance.md")
            report.write_docs(results(model("resnet18", {"1": {"ours": engine(1), "ort": engine(2)}})), page)
            for _ in range(2):
                report.write_docs(whole, page, "zoo")
            self.assertEqual(page.read_text().count("| a |"), 1)
            self.assertEqual(page.read_text().count("| resnet18 |"), 2)  # times and compilation
        self.assertEqual(set(run.TWINS) - set(run.zoo_names()), set())

    def test_parts_are_put_together_per_thread_count(self):
        whole = results(model("resnet18", {"1": {"ours": engine(1)}}))
        run.merge(whole, model("mlp", {"1": {"ours": engine(1)}}))
        run.merge(whole, model("resnet18", {"2": {"ours": engine(3)}}))
        run.merge(whole, model("resnet18", {"1": {"ours": engine(5)}}))
        run.merge(whole, model("resnet50", {"1": {"ours": engine(1)}}))
        self.assertEqual([m["model"] for m in whole["models"]], ["resnet18", "resnet50", "mlp"])
        self.assertEqual({t: e["ours"]["ms"] for t, e in whole["models"][0]["threads"].items()}, {"1": 5, "2": 3})

    def test_the_record_is_json_with_the_same_figures(self):
        whole = results(model("a", {"1": {"ours": engine(1.23456789), "ort": {"failed": "no \"quotes\""}}}), model("b", {}))
        back = json.loads(report.compact(whole))
        self.assertEqual(back["models"][0]["threads"]["1"]["ours"]["ms"], 1.235)
        self.assertEqual([m["model"] for m in back["models"]], ["a", "b"])

    def test_other_versions_and_damaged_files_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "r.json")
            self.assertIsNone(run.read_results(path))
            for text in ("{", '{"models": []}'):
                path.write_text(text)
                with self.assertRaises(run.Failure):
                    run.read_results(path)

    def test_the_page_escapes_names_and_has_no_open_table(self):
        page = report.html(results(model("<b>", {"1": {"ours": engine(1), "ort": engine(2)}})))
        self.assertNotIn("<td><b></b>", page)
        self.assertIn("&lt;b&gt;", page)
        self.assertEqual(page.count("<table>"), page.count("</table>"))

    def test_every_model_of_the_table_is_known(self):
        self.assertEqual(set(run.TABLE) - set(run.FETCHED) - set(run.zoo_names()), set())

    def test_shapes_are_checked(self):
        self.assertEqual(run.parse_shape("x=1x3"), ("x", (1, 3)))
        with self.assertRaises(argparse.ArgumentTypeError):
            run.parse_shape("x=1xa")


if __name__ == "__main__":
    unittest.main()
