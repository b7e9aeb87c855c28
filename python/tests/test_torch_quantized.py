# SPDX-License-Identifier: Apache-2.0
"""Quantised models of torch.ao by TorchScript, beside PyTorch itself. Without PyTorch the tests are skipped (77)."""
import unittest
import warnings

import numpy as np

# Says so, and ends, where there is no PyTorch.
from test_torch_script import models, run_graph, torch

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
                    self.assertLess(np.mean(off > 0.5), 1e-3)


if __name__ == "__main__":
    unittest.main()
