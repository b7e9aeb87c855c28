# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel as `pip install .` does, and uses it in a fresh environment. Exit code 77: skipped, with the reason."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SCRIPT = """
import os, tempfile
import numpy as np
import tilewright
from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.contrib import graph_executor

assert "site-packages" in tilewright.__file__, tilewright.__file__
x = relay.var("x", shape=(2, 3))
lib = relay.build(tw.IRModule.from_expr(relay.Function([x], relay.nn.relu(x - 1.0))), "llvm")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "net.so")
    lib.export_library(path)
    module = graph_executor.GraphModule(tw.runtime.load_module(path)["default"](tw.cpu()))
module.run(x=np.full((2, 3), 3, np.float32))
assert (module.get_output(0).numpy() == 2).all()
tw.register_func("wheel.test", lambda a: a + 1)
assert tw.get_global_func("wheel.test")(1) == 2
os.environ["TILEWRIGHT_TOKEN"] = os.path.join(tempfile.mkdtemp(), "token")
remote = tw.rpc.PopenSession()  # the program and the library of the wheel
assert (tw.nd.array(np.arange(3), remote.cpu()).numpy() == np.arange(3)).all()
remote.close()
server = tw.rpc.Server("127.0.0.1", 0, silent=True)
assert tw.rpc.connect("127.0.0.1", server.port).get_function("rpc.test.addone")(1) == 2
server.terminate()
print("used", tw.__version__)
"""


def skip(reason: str) -> None:
    print("skipped:", reason)
    sys.exit(77)


def run(*command: str, **kwargs) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **kwargs)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def main() -> None:
    for module in ("scikit_build_core", "nanobind", "pip", "numpy"):
        if importlib.util.find_spec(module) is None:
            skip(f"the Python environment has no {module}; ./dev test makes one that has")
    with tempfile.TemporaryDirectory() as folder:
        build = os.environ.get("TW_WHEEL_BUILD", os.path.join(folder, "build"))
        # The options of the build that this test belongs to: what that one compiled, the compiler cache has.
        options = [f"--config-settings=cmake.define.TILEWRIGHT_WERROR={os.environ['TW_WERROR']}"] if "TW_WERROR" in os.environ else []
        run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "-w", folder, f"--config-settings=build-dir={build}", *options)
        wheel = next(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".whl"))
        names = zipfile.ZipFile(wheel).namelist()
        for needed in ("tilewright/py.typed", "tilewright/_core.pyi", "tilewright/classic/relay/testing/resnet.py", "tilewright/include/tilewright/c_api.h",
                       "tilewright/include/tilewright/function.h", "tilewright/libtilewright_runtime.so.0", "tilewright/tilewright-rpc",
                       "tilewright/libtilewright_rpc_client.so", "tilewright/libtilewright_pictures.so"):
            assert needed in names, f"{needed} is not in the wheel: {names}"
        assert any(name.startswith("tilewright/_core.") and name.endswith(".so") for name in names), names
        assert not [name for name in names if name.rpartition("/")[2].startswith("test_") or name.endswith(".cc")], names
        python = os.path.join(folder, "venv", "bin", "python")
        run(sys.executable, "-m", "venv", os.path.join(folder, "venv"))
        run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
        # numpy comes from the environment that runs this test: the fresh one needs nothing from the network.
        site = os.path.join(folder, "numpy")
        os.mkdir(site)
        around = os.path.dirname(os.path.dirname(importlib.util.find_spec("numpy").origin))
        for name in os.listdir(around):
            if name.split(".")[0] == "numpy":
                os.symlink(os.path.join(around, name), os.path.join(site, name))
        environment = {**os.environ, "PYTHONPATH": site}
        print(run(python, "-c", SCRIPT, cwd=folder, env=environment).strip(), f"{os.path.getsize(wheel) / 1e6:.1f} MB", os.path.basename(wheel))


if __name__ == "__main__":
    main()
