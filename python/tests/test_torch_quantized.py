# SPDX-License-Identifier: Apache-2.0
"""Quantised models of torch.ao by TorchScript, beside PyTorch itself. Without PyTorch the tests are skipped (77)."""
import unittest
import warnings

import numpy as np

# Says so, and ends, where there is no PyTorch.
from test_torch_script import close, models, run_graph, torch

import tilewright as tw
from tilewright.classic import relay
from torch import nn

warnings.filterwarnings("ignore")


class Quantized(unittest.TestCase):
    def setUp(self):
        engine = next((e for e in ("fbgemm", "qnnpack") if e in torch.backends.quantized.supported_engines), None)
        if engine is None:
            self.skipTest("this PyTorch has no quantised kernels")
        torch.backends.quantized.engine = engine

    def quantized(self):
        from torch.ao import quantization

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
                self.conv, self.relu, self.pool, self.fc = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Linear(32, 5)
                self.add = torch.ao.nn.quantized.FloatFunctional()

            def forward(self, x):
                x = self.relu(self.conv(self.quant(x)))
                x = self.pool(self.add.add(x, x))
                return self.dequant(self.fc(torch.flatten(x, 1)))

        torch.manual_seed(0)
        model = Net().eval()
        model.qconfig = quantization.get_default_qconfig(torch.backends.quantized.engine)
        quantization.prepare(model, inplace=True)
        x = models.image(1, 3, 8, 8)
        model(x)
        quantization.convert(model, inplace=True)
        return torch.jit.trace(model, x), x

    def test_weights_as_integers_and_as_reals(self):
        module, x = self.quantized()
        with torch.no_grad():
            want = module(x).numpy()
        for keep in (True, False):
            mod, params = relay.frontend.from_pytorch(module, [("x", (1, 3, 8, 8))], keep_quantized_weight=keep)
            got = run_graph(mod, params, {"x": x.numpy()})[0]
            step = np.unique(np.abs(np.diff(np.unique(want)))).min()  # of the result's grid
            self.assertLessEqual(np.abs(got - want).max(), step * 1.01)
            self.assertIn("qnn.quantize", mod.astext(show_meta_data=False))

    def test_blocks_of_mobilenet_v2(self):
        """Each block on PyTorch's own quantised values: equal but for ties of the rounding, which are one step off."""
        try:
            from torchvision.models.quantization import mobilenet_v2
        except ImportError:
            self.skipTest("there is no torchvision")
        from torch.ao import quantization
        torch.manual_seed(0)
        samples, x = torch.rand(4, 3, 96, 96), torch.rand(1, 3, 96, 96)
        with torch.no_grad():
            model = mobilenet_v2(weights=None, quantize=False).train()
            for m in model.modules():
                if isinstance(m, nn.BatchNorm2d):
                    m.momentum = None
            model(samples)
            model.eval().fuse_model(is_qat=False)
            model.qconfig = quantization.get_default_qconfig(torch.backends.quantized.engine)
            quantization.prepare(model, inplace=True)
            model(samples)
            quantization.convert(model, inplace=True)

            class Block(nn.Module):
                def __init__(self, block, scale, zero):
                    super().__init__()
                    self.block, self.scale, self.zero = block, scale, zero

                def forward(self, x):
                    return self.block(torch.quantize_per_tensor(x, self.scale, self.zero, torch.quint8)).dequantize()

            y = model.quant(x)
            for i, block in enumerate(model.features):
                fed, y = y, block(y)
                if i not in (0, 1, 2, 3, 8, 17, 18):
                    continue
                given = fed.dequantize()
                got = tw.compile(torch.jit.trace(Block(block, fed.q_scale(), fed.q_zero_point()), given), (given,))(given)
                off = np.abs(got - y.dequantize().numpy()) / y.q_scale()
                with self.subTest(block=i):
                    self.assertLess(off.max(), 1.01)
                    self.assertLess(np.mean(off > 0.5), 5e-3)  # a tie in the middle of a block counts for many channels at its place

    def whole(self, name, side=64):
        """A network of torchvision with the statistics of some pictures, and those."""
        try:
            import torchvision
        except ImportError:
            self.skipTest("there is no torchvision")
        torch.manual_seed(0)
        pictures = [torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(i)) for i in range(3)]
        model = getattr(torchvision.models, name)(weights=None).train()
        for m in model.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.momentum = None
        with torch.no_grad():
            model(torch.cat(pictures))
        return model.eval(), pictures

    def test_whole_networks_by_fx(self):
        """Sums are those of integers, so that hardly a value is rounded elsewhere than PyTorch's own."""
        from torch.ao.quantization import get_default_qconfig_mapping
        from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
        for name in ("mobilenet_v2", "resnet18"):
            model, pictures = self.whole(name)
            with torch.no_grad(), self.subTest(name):
                prepared = prepare_fx(model, get_default_qconfig_mapping("x86"), (pictures[0],))
                for picture in pictures:
                    prepared(picture)
                quantized, x = convert_fx(prepared), pictures[0]
                want = quantized(x).numpy()
                traced = torch.jit.trace(quantized, x, check_trace=False)
                step = np.unique(np.abs(np.diff(np.unique(want)))).min()
                for keep in (True, False):
                    mod, params = relay.frontend.from_pytorch(traced, [("x", tuple(x.shape))], keep_quantized_weight=keep)
                    off = np.abs(run_graph(mod, params, {"x": x.numpy()})[0] - want) / step
                    self.assertLess(np.mean(off > 0.5), 0.01)
                    self.assertLess(off.max(), 2.01)

    def test_dynamic_layers(self):
        """Grids of operands that only a run has, in every step of a recurrent layer too."""
        from torch.ao.quantization import quantize_dynamic

        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.gru = nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True), nn.GRU(48, 20)
                self.out = nn.Linear(20, 7)

            def forward(self, x):
                y, (h, c) = self.lstm(x)
                z, last = self.gru(y)
                return self.out(z), h, c, last

        class Attending(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)

            def forward(self, x):
                return self.layer(x)

        torch.manual_seed(0)
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # PyTorch's own fast path takes no quantised layer
        self.addCleanup(torch.backends.mha.set_fastpath_enabled, fast)
        for kind, x in ((Recurrent, torch.randn(2, 9, 16)), (Attending, torch.randn(2, 10, 32))):
            quantized = quantize_dynamic(kind().eval(), {nn.Linear, nn.LSTM, nn.GRU}, dtype=torch.qint8)
            with torch.no_grad():
                want = quantized(x)
                made = [torch.jit.trace(quantized, x, check_trace=False)] + ([torch.jit.script(quantized)] if kind is Recurrent else [])
            want = [want] if isinstance(want, torch.Tensor) else list(want)
            for module in made:
                for keep in (True, False):
                    with self.subTest(f"{kind.__name__} {type(module).__name__} {keep}"):
                        mod, params = relay.frontend.from_pytorch(module, [("x", tuple(x.shape))], keep_quantized_weight=keep)
                        for got, w in zip(run_graph(mod, params, {"x": x.numpy()}), want, strict=True):
                            self.assertTrue(close(got, w), f"{np.abs(got - w.numpy()).max()} of {w.abs().max()}")

    def test_pt2e(self):
        """torchao's form: what its quantizer for x86 writes, exported."""
        try:
            from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
            from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
        except ImportError:
            self.skipTest("there is no torchao")
        model, pictures = self.whole("mobilenet_v2")
        model, x = nn.Sequential(*model.features[:4], nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 10)).eval(), pictures[0]
        for dynamic, net in ((False, model), (True, nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 32), nn.ReLU(), nn.Linear(32, 5)).eval())):
            with torch.no_grad(), self.subTest(dynamic=dynamic):
                quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic))
                prepared = prepare_pt2e(torch.export.export(net, (x,)).module(), quantizer)
                for picture in pictures:
                    prepared(picture)
                quantized = convert_pt2e(prepared)
                want, got = quantized(x).numpy(), tw.compile(torch.export.export(quantized, (x,)))(x)
                # PyTorch's sums are rounded to float32: a value beside a tie may be a step off, and what is made of it a little.
                self.assertLess(np.abs(got - want).max(), 0.02 * np.abs(want).max())


if __name__ == "__main__":
    unittest.main()
