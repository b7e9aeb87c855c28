# SPDX-License-Identifier: Apache-2.0
"""PyTorch's models through tilewright.compile and torch.compile(backend="tilewright"), each beside PyTorch itself. Without PyTorch the tests
are skipped (77); with one that is older than torch.export only those of TorchScript (test_torch_script.py) run."""
import contextlib
import io
import os
import pathlib
import sys
import unittest
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
try:
    import torch
    import torch.export
    import torch_models as models
except ImportError as missing:
    print(f"skipped: {missing}; ./dev bench --torch installs the PyTorch that is tested")
    sys.exit(77)

import tilewright as tw  # noqa: E402
from torch import nn  # noqa: E402
from torch_models import close  # noqa: E402

warnings.filterwarnings("ignore")

# What a run of the tests has time for; every model: ./dev bench --torch --check
CI_MODELS = ["transformers/bert", "transformers/gpt2", "transformers/t5", "transformers/vit", "transformers/llama", "transformers/sam_decoder", "plain/lstm_tagger", "plain/gru_tagger",
             "plain/transformer", "classification/squeezenet1_1", "classification/mobilenet_v3_small", "classification/shufflenet_v2_x0_5"]


def outputs_of(value):
    return [value] if isinstance(value, (np.ndarray, torch.Tensor)) else list(value)


class Exported(unittest.TestCase):
    def check(self, model, inputs, *, tuned=lambda ep: ep):
        with torch.no_grad():
            want = outputs_of(model(*inputs))
            compiled = tw.compile(tuned(torch.export.export(model, inputs, strict=False)))
        got = outputs_of(compiled(*[i for i in inputs if isinstance(i, torch.Tensor)]))
        self.assertEqual(len(got), len(want))
        for g, w in zip(got, want):
            self.assertTrue(close(g, w), f"{np.abs(g - w.numpy()).max()} of {w.abs().max()}")
        return compiled

    def test_models(self):
        for name in CI_MODELS:
            with self.subTest(name):
                if name not in models.MODELS:
                    self.skipTest(f"{name} needs a package that is not installed")
                model, inputs = models.small(name)
                self.check(model, inputs)

    def test_after_decompositions(self):
        for name in ("transformers/bert", "plain/transformer"):
            with self.subTest(name):
                if name not in models.MODELS:
                    self.skipTest(f"{name} needs a package that is not installed")
                self.check(*models.small(name), tuned=lambda ep: ep.run_decompositions())

    def test_module_with_example_inputs(self):
        model, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval(), models.image(2, 3, 8, 8)
        with torch.no_grad():
            want = model(x)
        self.assertTrue(close(tw.compile(model, (x,))(x), want))
        with self.assertRaises(tw.Error) as caught:
            tw.compile(model)
        self.assertEqual(caught.exception.code, 101)
        with self.assertRaises(tw.Error) as caught:
            tw.compile(model.train(), (x,))
        self.assertIn("model.eval()", str(caught.exception))

    def test_bfloat16_goes_in(self):
        x = models.image(2, 4).to(torch.bfloat16)

        class Wide(nn.Module):
            def forward(self, x):
                return x.float() * 2

        self.assertTrue(close(tw.compile(Wide().eval(), (x,))(x), x.float() * 2))

    def test_free_sizes(self):
        batch = torch.export.Dim("batch", min=1, max=64)
        model, x = nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Flatten()).eval(), models.image(3, 6)
        ep = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
        y = models.image(5, 6)
        with torch.no_grad():
            want = model(y)
        fixed = tw.compile(ep, {"input": (5, 6)})
        self.assertEqual(fixed.inputs[0].shape, (5, 6))
        self.assertTrue(close(fixed(y), want))
        free = tw.compile(ep)
        self.assertEqual(free.inputs[0].shape, (-1, 6))
        for rows in (5, 2, 5):
            self.assertTrue(close(free(y[:rows].numpy()), want[:rows]))

    def test_a_symbol_that_the_export_finds_to_be_one_number(self):
        class Pairs(nn.Module):
            def forward(self, x, y):
                i, j = torch.triu_indices(x.shape[0], x.shape[0], offset=1)
                return (x[i] * x[j]).sum(0) * y.sum()

        free = torch.export.Dim.AUTO
        with torch.no_grad():
            compiled = tw.compile(torch.export.export(Pairs(), (torch.ones(6, 3), torch.ones(4)), dynamic_shapes=({0: free}, {0: free})))
        self.assertEqual([i.shape for i in compiled.inputs], [(6, 3), (-1,)])
        self.assertEqual(compiled(torch.ones(6, 3), torch.ones(5)).tolist(), [75.0] * 3)
        with self.assertRaisesRegex(tw.Error, "E505"):
            compiled(torch.ones(8, 3), torch.ones(5))

    def test_weights_made_of_other_tensors(self):
        from torch.testing._internal.two_tensor import TwoTensor
        model = nn.Linear(4, 3)
        model.weight = nn.Parameter(TwoTensor(model.weight.detach(), model.weight.detach() * 2))
        with torch.no_grad():
            got = tw.compile(torch.export.export(model, (torch.ones(2, 4),)))(torch.ones(2, 4))
            for g, w in zip(got, (model.weight.a, model.weight.b)):
                self.assertTrue(close(g, nn.functional.linear(torch.ones(2, 4), w, model.bias)))

    def test_changed_buffers_go_in_and_come_out(self):
        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(3))

            def forward(self, x):
                self.seen.add_(x)
                return self.seen * 2

        compiled = tw.compile(torch.export.export(Counter(), (torch.ones(3),)))
        self.assertEqual([i.name for i in compiled.inputs], ["x", "seen"])
        result, seen = compiled(np.float32([1, 2, 3]), np.float32([10, 10, 10]))
        np.testing.assert_allclose(result, [22, 24, 26])
        np.testing.assert_allclose(seen, [11, 12, 13])

    def test_changes_through_views(self):
        class Changes(nn.Module):
            def forward(self, x):
                y = x.clone()
                y[:, 1] = 5
                y.view(-1)[0] += 1
                z = y.t()
                z.mul_(2)
                return y, z.sum(0)

        self.check(Changes(), (models.image(3, 4),))

    def test_all_that_is_unsupported_at_once(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.polygamma(30, x) + torch.special.bessel_j0(x).sum() + torch.special.bessel_j0(x * 2)

        with self.assertRaises(tw.Error) as caught:
            tw.compile(Odd().eval(), (models.image(3, 3),))
        self.assertEqual(caught.exception.code, 202)
        self.assertIn("aten.polygamma.default (derivative 30", str(caught.exception))
        self.assertIn("bessel_j0", str(caught.exception))

    def test_effects(self):
        """Tokens keep effects in order in an exported program; prints print nothing, and what is unknown is named."""
        @torch.library.custom_op("tilewright_tests::shout", mutates_args=())
        def shout(x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        shout.register_fake(torch.empty_like)
        from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
        _register_effectful_op(torch.ops.tilewright_tests.shout.default, _EffectType.ORDERED)

        class Prints(nn.Module):
            def forward(self, x):
                torch._higher_order_ops.print("{} rows", x.shape[0])
                torch._assert_async((x < 100).all(), "large")
                return x * 2

        class Shouts(nn.Module):
            def forward(self, x):
                return shout(x) * 2

        x = models.image(3, 4)
        exported = torch.export.export(Prints(), (x,))
        for program in (exported, exported.run_decompositions()):
            self.assertTrue(close(tw.compile(program)(x), x * 2))
        exported = torch.export.export(Shouts(), (x,))
        for program in (exported, exported.run_decompositions()):
            with self.assertRaises(tw.Error) as caught:
                tw.compile(program)
            self.assertEqual(caught.exception.code, 202)
            self.assertIn("tilewright_tests.shout.default", str(caught.exception).replace("::", "."))

    def test_a_decoder_writes_the_same_text(self):
        """A prompt program and a step program with the cache between them: 20 tokens."""
        (prompt, first), (_, step) = models.llama_prompt(), models.llama_step()
        with torch.no_grad():
            programs = [tw.compile(prompt, inputs) for inputs in (first, step)]

            def write(run):
                out, caches = [], list(prompt.empty())
                ids, start = first[0], 0
                for i in range(20):
                    logits, *caches = run(min(i, 1), ids, torch.tensor([start]), *caches)
                    start += ids.shape[1]
                    out.append(int(np.argmax(np.asarray(logits))))
                    ids = torch.tensor([[out[-1]]])
                return out

            self.assertEqual(write(lambda which, *args: programs[which](*args)), write(lambda _, *args: prompt(*args)))


class Backend(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        if "tilewright" not in torch._dynamo.list_backends(exclude_tags=()):  # a build that is not installed has no entry points
            from tilewright.torch_backend import backend
            torch._dynamo.register_backend(backend, name="tilewright")
        self.threads = torch.get_num_threads()

    def tearDown(self):
        torch.set_num_threads(self.threads)

    def compiled(self, model, **options):
        return torch.compile(model, backend="tilewright", **options)

    def said(self, call):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            result = call()
        return result, [line for line in errors.getvalue().splitlines() if line.startswith("tilewright:")]

    def test_a_model(self):
        model, x = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).eval(), models.image(2, 3, 16, 16)
        with torch.no_grad():
            got, lines = self.said(lambda: self.compiled(model)(x))
            self.assertEqual(lines, [])
            self.assertTrue(close(got, model(x)))

    def test_aliases_and_changes_in_place(self):
        def function(x, y):
            z = x[1:]
            z.add_(y)           # an input changes
            w = x.view(-1)
            y = y.t()           # a view of an input comes out
            return w * 2, x, y, z.transpose(0, 1), (w + 1).view(3, 4).t()

        with torch.no_grad():
            x, y = models.image(3, 4), models.image(1, 4)
            x2, y2 = x.clone(), y.clone()
            want = function(x, y)
            got, lines = self.said(lambda: self.compiled(function)(x2, y2))
        self.assertEqual(lines, [])
        self.assertTrue(close(x2, x))
        for g, w in zip(got, want):
            self.assertEqual((g.shape, g.stride()), (w.shape, w.stride()))
            self.assertTrue(close(g, w))
        got[2].zero_()
        self.assertEqual(float(y2.abs().sum()), 0, "the result that is a view of the input is one")

    def test_new_shapes_and_only_new_ones(self):
        from tilewright import torch_backend
        built, before = [], torch_backend._built
        torch_backend._built = lambda *args: built.append(1) or before(*args)
        try:
            model = nn.Linear(6, 5).eval()
            with torch.no_grad():
                compiled = self.compiled(model)
                for rows in (2, 3, 4, 3, 2, 4, 3):
                    x = models.image(rows, 6)
                    self.assertTrue(close(compiled(x), model(x)))
        finally:
            torch_backend._built = before
        self.assertLessEqual(len(built), 4)  # 2; then with a free size: 3, 4 and 2

    def test_weights_that_change(self):
        model, x = nn.Linear(6, 5).eval(), models.image(2, 6)
        with torch.no_grad():
            compiled = self.compiled(model)
            first = compiled(x)
            model.weight.mul_(2)
            self.assertTrue(close(compiled(x), model(x)))
            model.weight.data = torch.zeros(5, 6)
            self.assertTrue(close(compiled(x), model(x)))
            self.assertFalse(close(compiled(x), first))
            model.load_state_dict(nn.Linear(6, 5).state_dict())
            self.assertTrue(close(compiled(x), model(x)))

    def test_two_modules_share_no_weights(self):
        one, two, x = nn.Linear(6, 6).eval(), nn.Linear(6, 6).eval(), models.image(2, 6)
        with torch.no_grad():
            compiled = [self.compiled(m) for m in (one, two)]
            for _ in range(2):
                for m, c in zip((one, two), compiled):
                    self.assertTrue(close(c(x), m(x)))

    def test_operators_that_pytorch_writes_by_others(self):
        """What its functional graphs and derivatives have, and the importer does not, becomes what PyTorch itself writes for it."""
        layer = nn.Linear(4, 4)

        def function(x):
            z = x.clone()
            z.unfold(1, 2, 2)[..., 0].mul_(2)                              # unfold_backward
            near = torch.cdist(x, x.expand(30, 4)).topk(2, largest=False)  # _euclidean_dist
            return z, near.values, torch.vmap(torch.func.jacrev(lambda row: layer(row).tanh()))(x)

        x = models.image(30, 4)
        with torch.no_grad():
            got, lines = self.said(lambda: self.compiled(function)(x))
        self.assertEqual(lines, [])
        for g, w in zip(got, function(x)):
            self.assertTrue(torch.allclose(g, w, rtol=1e-3, atol=1e-3), f"{(g - w).abs().max()} of {w.abs().max()}")

    def test_checks_and_control_flow(self):
        """Checks come with tokens; branches and loops that a run decides make a program."""
        from torch._higher_order_ops.while_loop import while_loop

        def solved(m, b):
            return torch.linalg.inv(m) @ b, torch.linalg.cholesky(m @ m.mT + torch.eye(4))

        def chosen(m, b):
            return torch.cond(b.mean() > 0, lambda x: x.relu() + 1, lambda x: x.tanh(), (b,)) @ m

        def halved(m, b):
            return while_loop(lambda i, x: (i < 20) & (x.abs().max() > 0.1), lambda i, x: (i + 1, x / 2), (torch.tensor(0), m))

        m, b = models.image(4, 4) + 3 * torch.eye(4), models.image(4, 4)
        for function in (solved, chosen, halved):
            for sign in (1, -1):
                with self.subTest(function.__name__), torch.no_grad():
                    got, lines = self.said(lambda f=function, s=sign: self.compiled(f)(m, s * b))
                    self.assertEqual(lines, [])
                    for g, w in zip(got if isinstance(got, tuple) else [got], wanted if isinstance(wanted := function(m, sign * b), tuple) else [wanted]):
                        self.assertTrue(torch.allclose(g, w, rtol=1e-3, atol=1e-3) if w.is_floating_point() else torch.equal(g, w))

    def test_what_it_cannot_take_runs_in_pytorch(self):
        def function(x):
            return torch.special.bessel_j0(x) + 1

        x = models.image(3, 3)
        with torch.no_grad():
            compiled = self.compiled(function)
            got, lines = self.said(lambda: compiled(x))
            again, more = self.said(lambda: compiled(x))
        self.assertTrue(close(got, function(x)) and close(again, got))
        self.assertEqual((len(lines), len(more)), (1, 0), lines)
        self.assertRegex(lines[0], r"^tilewright: graph \d+ \(\d+ operators\) runs in PyTorch: .*bessel_j0")

    def test_gradients_stay_in_pytorch(self):
        model, x = nn.Linear(4, 3), models.image(2, 4)
        loss, lines = self.said(lambda: self.compiled(model)(x).sum())
        self.assertEqual(len(lines), 1)
        self.assertIn("torch.no_grad()", lines[0])
        loss.backward()
        self.assertIsNotNone(model.weight.grad)

    def test_random_numbers_stay_random(self):
        def function(x):
            return x + torch.rand(1000)

        with torch.no_grad():
            compiled = self.compiled(function)
            (a, lines), (b, _) = self.said(lambda: compiled(torch.zeros(1000))), self.said(lambda: compiled(torch.zeros(1000)))
        self.assertEqual(len(lines), 1)
        self.assertFalse(close(a, b))

    def test_threads_follow_pytorch(self):
        from tilewright import torch_backend
        model, x = nn.Linear(64, 64).eval(), models.image(8, 64)
        made, init = [], torch_backend.Compiled.__init__

        def noted(self, *args):
            init(self, *args)
            made.append(self)

        torch_backend.Compiled.__init__ = noted
        try:
            with torch.no_grad():
                compiled = self.compiled(model)
                for threads in (1, 2, 1):
                    torch.set_num_threads(threads)
                    self.assertTrue(close(compiled(x), model(x)))
        finally:
            torch_backend.Compiled.__init__ = init
        self.assertEqual({t: s.threads for each in made for t, s in each.sessions.items()}, {1: 1, 2: 2})

    def test_strided_and_odd_inputs(self):
        def function(x, n, flag):
            return (x * n if flag else x).sum(-1), x.to(torch.int32)

        with torch.no_grad():
            compiled = self.compiled(function)
            for x in (models.image(4, 6).t(), models.image(8, 4)[::2], models.image(2, 3, 4, 5).to(memory_format=torch.channels_last)):
                for flag in (True, False):
                    for g, w in zip(compiled(x, 3, flag), function(x, 3, flag)):
                        self.assertTrue(close(g, w))

    def test_unknown_options(self):
        with self.assertRaises(Exception) as caught, torch.no_grad():
            self.compiled(nn.Linear(2, 2).eval(), options={"speed": 11})(torch.zeros(1, 2))
        self.assertIn("speed", str(caught.exception))

    def test_a_block_of_a_transformer(self):
        model, inputs = models.transformer()
        with torch.no_grad():
            got, lines = self.said(lambda: self.compiled(model)(*inputs))
            self.assertEqual(lines, [])
            self.assertTrue(close(got, model(*inputs)))


class Import(unittest.TestCase):
    def test_the_package_does_not_import_torch(self):
        import subprocess
        code = "import sys, tilewright; sys.exit('torch' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env={**os.environ}, check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
