# SPDX-License-Identifier: Apache-2.0
"""An exported library through PyPI's apache-tvm-ffi: no Tilewright in the process that runs it."""
import os
import subprocess
import sys
import tempfile
import threading

try:
    import tvm_ffi
except ImportError:
    print("skipped: apache-tvm-ffi is not installed (tools/fetch_models --venv python fetches the pinned one)")
    sys.exit(77)
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.environ["TW_TOOL"]


def expect(error, call, *says):
    try:
        call()
    except error as e:
        for text in says:
            assert text in str(e), (text, str(e))
        return
    raise AssertionError(f"{error.__name__} was expected")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, given, wanted = (os.path.join(folder, name) for name in ("net.so", "x.npy", "y.npy"))
        x = np.random.default_rng(3).standard_normal((1, 3, 8, 8), dtype=np.float32)
        np.save(given, x)
        subprocess.run([TOOL, "compile", f"{ROOT}/tests/data/onnx/convnet.onnx", "-o", path, "--shape", "x=1x3x8x8", "-q"], check=True)
        subprocess.run([TOOL, "run", path, "--input", f"x=@{given}", "--output", f"@{wanted}"], check=True, stdout=subprocess.DEVNULL)
        assert "tilewright" not in sys.modules
        expected = np.load(wanted)
        library = tvm_ffi.load_module(path)
        assert library.implements_function("main")

        y = np.zeros((1, 5), np.float32)
        library.main(x, y)  # inputs, then outputs
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        # tvm-ffi's own tensors, over numpy's memory.
        result = np.zeros((1, 5), np.float32)
        library["main"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(result))
        np.testing.assert_array_equal(result, y)
        try:
            import torch
        except ImportError:
            print("torch is not installed: its tensors were not tried")
        else:
            out = torch.zeros(1, 5)
            library.main(torch.from_numpy(x), out)
            np.testing.assert_array_equal(out.numpy(), y)

        expect(TypeError, lambda: library.main(x), "2 tensors", "1 inputs")
        expect(ValueError, lambda: library.main(x.astype(np.float64), y), "'x'", "float32", "1x3x8x8")
        expect(ValueError, lambda: library.main(x[:, :, :4], y), "'x'")
        expect(ValueError, lambda: library.main(x.transpose(0, 1, 3, 2), y), "compact")
        expect(ValueError, lambda: library.main(x, np.zeros((1, 6), np.float32)), "output", "1x5")
        expect(ValueError, lambda: library.main(1, 2), "argument 0")

        # Threads share the library; each call has working memory of its own.
        wrong = []

        def many():
            mine = np.zeros((1, 5), np.float32)
            for _ in range(200):
                mine[:] = 0
                library.main(x, mine)
                if not np.array_equal(mine, y):
                    wrong.append(mine.copy())

        threads = [threading.Thread(target=many) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
    print(f"the library runs with tvm-ffi {tvm_ffi.__version__}")


main()
