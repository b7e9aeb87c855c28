# SPDX-License-Identifier: Apache-2.0
"""relay.frontend.from_pytorch: traced and scripted modules beside PyTorch itself. Without PyTorch the tests are skipped (77)."""
import pathlib
import sys
import unittest
import warnings
from typing import Dict, List, Optional, Union

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
try:
    import torch
    import torch_models as models
except ImportError as missing:
    print(f"skipped: {missing}; ./dev bench --torch installs the PyTorch that is tested")
    sys.exit(77)

import tilewright as tw  # noqa: E402
from tilewright import classic  # noqa: E402
from tilewright.classic import relay  # noqa: E402
from tilewright.classic.contrib import graph_executor  # noqa: E402
from torch import nn  # noqa: E402
from torch_models import close  # noqa: E402

warnings.filterwarnings("ignore")

TRACED = ["plain/lstm_tagger", "plain/gru_tagger", "plain/transformer", "classification/squeezenet1_1", "classification/mobilenet_v2"]


def run_graph(mod, params, inputs):
    """By the classic stack's calls."""
    with classic.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](classic.cpu(0)))
    for name, value in inputs.items():
        module.set_input(name, value)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


class Traced(unittest.TestCase):
    def check(self, module, inputs, names=None, run=run_graph, **options):
        names = names or [f"input{i}" for i in range(len(inputs))]
        with torch.no_grad():
            want = module(*inputs)
        want = [want] if isinstance(want, torch.Tensor) else list(want)
        infos = [(n, (tuple(i.shape), str(i.dtype).replace("torch.", ""))) for n, i in zip(names, inputs)]
        mod, params = relay.frontend.from_pytorch(module, infos, **options)
        got = run(mod, params, {n: i.numpy() for n, i in zip(names, inputs)})
        self.assertEqual(len(got), len(want))
        for g, w in zip(got, want):
            self.assertTrue(close(g, w), f"{np.abs(g - w.numpy()).max()} of {w.abs().max()}")
        return mod, params

    def test_models(self):
        for name in TRACED:
            with self.subTest(name):
                if name not in models.MODELS:
                    self.skipTest(f"{name} needs a package that is not installed")
                model, inputs = models.small(name)
                self.check(torch.jit.trace(model, inputs, check_trace=False), inputs)

    def test_names_of_inputs_and_parameters(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))

            def forward(self, x):
                return self.features(x)

        x = models.image(1, 3, 6, 6)
        traced = torch.jit.trace(Two().eval(), x)
        mod, params = self.check(traced, (x,), ["image"])
        names = [p.name_hint for p in mod["main"].params]
        self.assertEqual(names[0], "image")
        self.assertEqual(set(names[1:]), set(params))
        self.assertEqual(set(params), {"features.0.weight", "features.0.bias", "features.1.weight", "features.1.bias", "features.1.running_mean", "features.1.running_var"})
        _, params = relay.frontend.from_pytorch(traced, [("image", (1, 3, 6, 6))], use_parser_friendly_name=True)
        self.assertIn("features_0_weight", params)

    def test_parameters_are_copies(self):
        module, x = torch.jit.trace(nn.Linear(3, 2).eval(), models.image(1, 3)), models.image(1, 3)
        with torch.no_grad():
            want = module(x)
            mod, params = relay.frontend.from_pytorch(module, [("x", (1, 3))])
            for p in module.parameters():
                p.zero_()
        self.assertTrue(close(run_graph(mod, params, {"x": x.numpy()})[0], want))

    def test_dtypes(self):
        class Add(nn.Module):
            def forward(self, x, y):
                return x + y

        inputs = (torch.arange(3), torch.arange(3))
        traced = torch.jit.trace(Add(), inputs)
        mod, _ = relay.frontend.from_pytorch(traced, [("x", (3,)), ("y", (3,))])
        self.assertEqual([p.checked_type.dtype for p in mod["main"].params], ["int64", "int64"])
        scripted = torch.jit.script(Add())
        mod, _ = relay.frontend.from_pytorch(scripted, [("x", (3,)), ("y", ((3,), "int32"))], default_dtype="float64")
        self.assertEqual([p.checked_type.dtype for p in mod["main"].params], ["float64", "int32"])

    def test_own_converters(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.special.i0(x, ) + torch.clamp(x, 0.25, 0.5)

        seen = []

        def i0(inputs, input_types):
            seen.append(input_types)
            return relay.op.multiply(inputs[0], relay.const(2.0))

        def clamp(inputs, input_types):
            self.assertEqual((inputs[1], inputs[2]), (0.25, 0.5))
            return relay.op.clip(inputs[0], 0.0, inputs[2])

        x = models.image(2, 3)
        traced = torch.jit.trace(Odd(), x)
        kind = next(n.kind() for n in traced.graph.nodes() if "i0" in n.kind())
        mod, params = relay.frontend.from_pytorch(traced, [("x", (2, 3))], {kind: i0, "aten::clamp": clamp})
        got = run_graph(mod, params, {"x": x.numpy()})[0]
        self.assertTrue(close(got, x * 2 + x.clip(0, 0.5)))
        self.assertEqual(seen, [["float32"]])

    def test_all_that_is_unsupported_at_once(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.special.bessel_j0(x).sum() + torch.polygamma(30, x)

        with self.assertRaises(NotImplementedError) as caught:
            relay.frontend.from_pytorch(torch.jit.trace(Odd(), models.image(2, 3)), [("x", (2, 3))])
        self.assertEqual(caught.exception.code, 202)
        self.assertIn("polygamma", str(caught.exception))
        self.assertIn("bessel_j0", str(caught.exception))

    def test_wrong_descriptions_of_inputs(self):
        traced = torch.jit.trace(nn.Linear(3, 2).eval(), models.image(1, 3))
        for infos in ([], [("x", (1, 3)), ("y", (1, 3))], [("x",)], "x", [("x", (1, 3)), ("x", (1, 3))]):
            with self.assertRaises(tw.Error) as caught:
                relay.frontend.from_pytorch(traced, infos)
            self.assertEqual(caught.exception.code, 101, infos)
        with self.assertRaises(TypeError):
            relay.frontend.from_pytorch(nn.Linear(3, 2), [("x", (1, 3))])

    def test_compile_takes_torchscript(self):
        model, x = nn.Sequential(nn.Linear(3, 2), nn.Sigmoid()).eval(), models.image(4, 3)
        with torch.no_grad():
            want = model(x)
            for module in (torch.jit.trace(model, x), torch.jit.script(model), torch.jit.freeze(torch.jit.script(model))):
                self.assertTrue(close(tw.compile(module, (x,))(x), want))


class Scripted(Traced):
    test_models = None

    def test_static_control_flow_and_lists(self):
        class Lists(nn.Module):
            training: bool

            def forward(self, x, y):
                parts = []
                for i in range(x.size(0)):
                    if i % 2 == 0:
                        parts.append(x[i] * i)
                    else:
                        parts += [y[i] + float(i)]
                if self.training:
                    parts.pop()
                size = list(x.shape)
                size[0] = len(parts)
                total = torch.stack(parts).view(size)
                if total.dim() != 2:
                    raise ValueError("two axes")
                mean, (least, most) = total.mean(), (min(size), max(size[0], 7))
                return total * float(most) + mean * least

        x = models.image(4, 3)
        self.check(torch.jit.script(Lists().eval()), (x, x + 1))

    def compare(self, module, *runs):
        """Compiled once; each run's results as PyTorch's."""
        script = torch.jit.script(module.eval())
        with torch.no_grad():
            compiled = tw.compile(script, runs[0])
            for inputs in runs:
                want = script(*[i.clone() if isinstance(i, torch.Tensor) else i for i in inputs])
                got = compiled(*[i if isinstance(i, torch.Tensor) else np.int64(i) for i in inputs])
                want = [want] if isinstance(want, (torch.Tensor, int)) else list(want)
                got = [got] if isinstance(got, np.ndarray) else list(got)
                self.assertEqual(len(got), len(want))
                for g, w in zip(got, want):
                    self.assertTrue(close(g, w), f"{g} and {w} for {inputs}")

    def test_arguments_that_have_defaults(self):
        class Two(nn.Module):
            def forward(self, x, mask: Optional[torch.Tensor] = None, scale: float = 2.0):
                return x * scale if mask is None else x * mask

        self.compare(Two(), (models.image(3, 4),))

    def test_branches_that_a_run_decides(self):
        class Branch(nn.Module):
            def forward(self, x):
                y, parts = x + 1, [x]
                if bool(x[0, 0] > 0.5):
                    y += 3
                    parts.append(x * 2)
                else:
                    y[0] = 7.0
                    parts.append(x)
                    parts.append(x - 1)
                if bool(x.sum() < -1e9):
                    raise ValueError("too small")
                return y, torch.cat(parts), len(parts) + y.sum()

        x = models.image(5, 4)
        self.compare(Branch(), (x * 0,), (x * 0 + 1,), (x,))

    def test_changes_in_place_under_the_tensors_own_name(self):
        class Own(nn.Module):
            def forward(self, x):
                y = x.clone()
                y[x > 0.5] = y[x > 0.5] * 3
                y[x[:, 0] > 0.4] += 1
                z = x * 2
                z.mul_(3)
                return y, z

        self.compare(Own(), (models.image(5, 4),), (models.image(5, 4) * 0,))

    def test_lists_of_tensors_whose_sizes_a_run_has(self):
        class Parts(nn.Module):
            def forward(self, x):
                parts: List[torch.Tensor] = []
                parts.append(x[x > 0.5])
                parts.append(x[0])
                named = {"first": parts[0]}
                named["second"] = parts[1] + named["first"].sum()
                return torch.cat(parts), named["second"], len(parts)

        self.compare(Parts(), (models.image(5, 4),), (models.image(5, 4) * 0.6,))

    def test_numbers_of_axes_that_a_run_decides(self):
        class Heads(nn.Module):
            """As box heads write it: a branch gives three axes, the other two, and what follows takes either."""

            def __init__(self):
                super().__init__()
                self.box, self.score = nn.Linear(4, 12), nn.Linear(4, 3)

            def forward(self, x):
                rows = x[x[:, 0] > 0.3]
                boxes, count = self.box(rows), rows.shape[0]
                if count > 0:
                    boxes = boxes.reshape(count, -1, 4)
                scores = self.score(rows)
                labels = torch.arange(3).view(1, -1).expand_as(scores)
                wide = torch.stack((boxes[..., 0::2].clamp(min=0), boxes[..., 1::2].clamp(max=1)), dim=boxes.dim()).reshape(boxes.shape)
                wide, labels = wide.reshape(-1, 4), labels.reshape(-1)
                kept = torch.where((wide[:, 2] - wide[:, 0] >= 0) & (labels > 0))[0]
                return wide[kept].to(boxes.dtype), labels[kept]

        self.compare(Heads(), (models.image(5, 4),), (models.image(5, 4) * 0.6,))

    def test_what_a_module_keeps_for_one_call(self):
        class Keeps(nn.Module):
            scales: List[float]

            def __init__(self):
                super().__init__()
                self.scales = []
                self.warned = False

            def forward(self, x):
                if not self.warned:
                    self.warned = True
                self.scales = [float(x.size(0)), 2.0]
                return x * self.scales[0] + self.scales[1]

        self.compare(Keeps(), (models.image(5, 4),))

    def test_a_beam_search_of_lists(self):
        class Beams(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.cell, self.out = nn.Embedding(11, 8), nn.GRUCell(8, 8), nn.Linear(8, 11)

            def forward(self, state):
                beams: List[List[int]] = [[0]]
                scores: List[float] = [0.0]
                states: List[torch.Tensor] = [state]
                order = torch.zeros(1)
                for _ in range(3):
                    found: List[List[int]] = []
                    sums: List[float] = []
                    after: List[torch.Tensor] = []
                    for b in range(len(beams)):
                        next_state = self.cell(self.words(torch.tensor([beams[b][-1]])), states[b])
                        best, word = torch.log_softmax(self.out(next_state), -1).topk(2)
                        for k in range(2):
                            found.append(beams[b] + [int(word[0, k])])
                            sums.append(scores[b] + float(best[0, k]))
                            after.append(next_state)
                    order = torch.tensor(sums).argsort(descending=True)
                    beams = [found[int(j)] for j in order[:2]]
                    scores = [sums[int(j)] for j in order[:2]]
                    states = [after[int(j)] for j in order[:2]]
                return torch.tensor(beams[0]), torch.tensor(scores), int(order[0]) in [1, 3]

        torch.manual_seed(4)
        x = models.image(1, 8)
        self.compare(Beams(), (x,), (x - 1,))

    def test_coordinates_of_boxes_that_a_run_keeps(self):
        class Boxes(nn.Module):
            def forward(self, x):
                kept = x[x[:, 0] > 0.5]
                left, top, right, bottom = kept.unbind(1)
                first, last = kept.split([1, 3], 1)
                if left is top:
                    left = left * 2
                return torch.stack([right - left, bottom - top], 1), first + last

        self.compare(Boxes(), (models.image(9, 4),), (models.image(9, 4) * 0.6,))

    def test_what_is_known_of_values_that_a_run_sizes(self):
        """Whether they are floats, how many rows they have and which of several types: loops and branches over them take one way."""
        def one(x: Union[torch.Tensor, List[torch.Tensor]]) -> torch.Tensor:
            return x[0] if isinstance(x, (list, tuple)) else x + 1

        class Net(nn.Module):
            def forward(self, x):
                kept = x[x[:, 0] > 0]
                wide = kept if kept.is_floating_point() else kept.to(torch.int32)
                either: Union[torch.Tensor, List[torch.Tensor]] = wide
                parts: List[torch.Tensor] = []
                for row in torch.stack([kept.sum(0), kept.abs().sum(0)]):
                    parts.append(row)
                return torch.cat([one(either), torch.stack(parts)]).to(wide.dtype)

        self.compare(Net(), (models.image(6, 3) - 0.5,), (models.image(6, 3) - 0.9,))

    def test_sizes_of_a_run_as_tensors(self):
        def sizes(x):
            kept = x[x[:, 0] > 0.5]
            return kept.sum(0) * torch.as_tensor(kept.shape[0] + 1), kept / max(kept.shape[0], 1)

        x = models.image(9, 4)
        with torch.no_grad():
            traced = torch.jit.trace(sizes, x, check_trace=False)
            compiled = tw.compile(traced, (x,))
            for y in (x, x * 0.7):
                for got, want in zip(compiled(y), traced(y)):
                    self.assertTrue(close(got, want), f"{got} and {want}")

    def test_element_types_dictionaries_of_pairs_and_ranges(self):
        class Kinds(nn.Module):
            def forward(self, x, n):
                named = dict([("a", x), ("b", x + 1), ("a", x * 3)])
                more: Dict[str, torch.Tensor] = dict()
                more["c"] = x
                y = torch.zeros_like(x)
                if x.dtype == torch.float32 and n.dtype != x.dtype and n.dtype in [torch.int32, torch.int64]:
                    y = named["a"] + 1
                for i in range(5, 0, -2):
                    y = y * i
                for i in range(int(n[0]), 6, 2):
                    y = y + i
                if str(x.device.type) == "cpu":
                    y = y + len(dict(named)) + more["c"]
                return y

        n = torch.tensor([1])
        self.compare(Kinds(), (models.image(2, 3), n), (models.image(2, 3), n + 3))

    def test_averages_of_quantised_tensors_are_rounded(self):
        class Averages(nn.Module):
            def forward(self, x):
                q = torch.relu(torch.quantize_per_tensor(x, 0.0372, 4, torch.quint8))
                pooled = nn.functional.avg_pool2d(q, 2)
                flat = torch.flatten(nn.functional.adaptive_avg_pool2d(pooled, (1, 1)), 1)
                return pooled.dequantize(), flat.dequantize(), q.mean([2, 3]).dequantize(), nn.functional.avg_pool2d(q.dequantize(), 2), torch.clamp(q, 0.5, 2.5).dequantize()

        for seed in range(3):
            x = torch.randn(1, 8, 8, 8, generator=torch.Generator().manual_seed(seed)) * 3
            module = torch.jit.trace(Averages(), x, check_trace=False)
            for got, want in zip(tw.compile(module, (x,))(x), module(x)):
                self.assertLess(np.abs(got - want.numpy()).max(), 1e-5)

    def test_sizes_that_branches_and_loops_change(self):
        class Sizes(nn.Module):
            def forward(self, x):
                y = x[:2]
                if bool(x.sum() > 9):
                    y = x[x[:, 0] > 0.5]
                z = x[:1]
                for _ in range(int(x[0, 0] > 0) + 1):
                    z = torch.cat([z, x])
                return y.sum(0) * y.shape[0], z.sum(0) * z.shape[0], y.unbind(1)[0], z.reshape(z.shape[1], z.shape[0]).split([1, 3], 0)[1]

        self.compare(Sizes(), (models.image(9, 4),), (models.image(9, 4) * 0.3,), (models.image(9, 4) - 2,))

    def test_what_pytorch_cannot_export_is_said(self):
        class Decides(nn.Module):
            def forward(self, x):
                return x * 2 if x.sum() > 0 else x

        with self.assertRaisesRegex(tw.Error, r"(?s)E201.*torch.export cannot follow the Decides.*torch.jit.script"):
            tw.compile(Decides().eval(), (models.image(3),))
        self.compare(Decides(), (models.image(3),), (-models.image(3),))

    def test_a_scripted_transformer(self):
        module = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        self.compare(module, (models.image(2, 5, 16), models.image(2, 4, 16)))

    def test_dictionaries(self):
        class Named(nn.Module):
            def forward(self, x):
                found = {"a": x, "b": x * 2}
                found["c"] = found["a"] + found["b"]
                if "d" not in found:
                    found["a"] = x - 1
                total = torch.zeros(4)
                for name, value in found.items():
                    total = total + value.sum(0) * len(name)
                return total, found.pop("c"), len(found), torch.cat(list(found.values()))

        self.compare(Named(), (models.image(5, 4),))

    def test_an_early_return(self):
        class Early(nn.Module):
            def forward(self, x):
                for i in range(x.size(0)):
                    if bool(x[i].sum() > 2):
                        return x[i] * i
                return x[0] - 1

        x = models.image(5, 4)
        self.compare(Early(), (x,), (x * 0,), (x * 2,), (x * x,))

    def test_loops_that_a_run_decides(self):
        class Until(nn.Module):
            def forward(self, x):
                n = 0
                while bool(x.sum() < 100) and n < 50:
                    x = x * 2
                    n += 1
                return x, n

        class Collect(nn.Module):
            def forward(self, x, n: int):
                states: List[torch.Tensor] = []
                squares: List[int] = []
                seen = x[:1]
                h, table = torch.zeros(4), torch.zeros(5, 4)
                for t in range(n):
                    h = torch.tanh(h + x[t % 5])
                    states.append(h)
                    if t % 2 == 0:
                        squares.append(t * t)
                    seen = torch.cat([seen, x[t:t + 1] * float(t)])
                    table[t % 5] = h + table.sum()
                    if bool(table.sum() > 3):
                        table[0] = 0.0
                return torch.stack(states), h, len(states), torch.tensor(squares), seen, table

        class Stop(nn.Module):
            def forward(self, x, n: int):
                k = 0
                for t in range(n):
                    if bool(x[t % 5, 0] > 0.8):
                        break
                    if t % 2 == 1:
                        continue
                    k += 1
                return x * k

        x = models.image(5, 4)
        self.compare(Until(), (x,), (x * 7,), (x * 1000,))
        self.compare(Collect(), (x, 3), (x, 1), (x + 1, 4))
        self.compare(Stop(), (x, 3), (x, 0), (x * 0, 9), (x + 1, 9))

    def test_what_a_run_would_have_to_know(self):
        class Maybe(nn.Module):
            def forward(self, x):
                y: Optional[torch.Tensor] = None
                if bool(x.sum() > 0):
                    y = x
                return x if y is None else y * 2

        with self.assertRaises(tw.Error) as caught:
            tw.compile(torch.jit.script(Maybe()), (models.image(3),))
        self.assertIn("None", str(caught.exception))

    def test_beam_search_of_as_many_steps_as_a_run_says(self):
        state = models.image(1, 16)
        self.compare(models.seeded(models.BeamSearch).eval(), (state, 5), (state, 3), (state * 2, 8))

    def test_beam_search(self):
        """Of a number of steps that the module knows."""
        search = models.seeded(models.BeamSearch).eval()

        class Steps(nn.Module):
            def __init__(self):
                super().__init__()
                self.search = search

            def forward(self, state):
                return self.search(state, 5)

        state = models.image(1, 16)
        with torch.no_grad():
            want = search(state, 5)
        got = tw.compile(torch.jit.script(Steps().eval()), (state,))(state)
        np.testing.assert_array_equal(got[0], want[0].numpy())
        self.assertTrue(close(got[1], want[1]))


if __name__ == "__main__":
    unittest.main()
