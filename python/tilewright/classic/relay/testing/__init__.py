# SPDX-License-Identifier: Apache-2.0
"""Networks with random weights, for examples and tests: `mod, params = relay.testing.resnet.get_workload(num_layers=18)`."""
from __future__ import annotations

from typing import Any

from ...runtime.ndarray import array, cpu
from ..expr import Function, infer_type, to_module
from ..prelude import Prelude
from . import byoc, dcgan, densenet, dqn, inception_v3, init, layers, lstm, mlp, mobilenet, nat, resnet, resnet_3d, squeezenet, synthetic, vgg, yolo_detection
from .init import create_workload
from .nat import count, make_nat_expr, make_nat_value
from .temp_op_attr import TempOpAttr


def run_infer_type(expr: Any) -> Any:
    """The expression with inferred types."""
    return infer_type(expr)


def run_opt_pass(expr: Any, opt_pass: Any, import_prelude: bool = False) -> Any:
    """The expression after a pass."""
    from ..transform import InferType
    from ...transform import Pass
    if not isinstance(opt_pass, Pass):
        raise AssertionError("run_opt_pass takes a pass")
    mod = to_module(expr)
    if import_prelude:
        mod.import_from_std("prelude.rly")
    mod = opt_pass(InferType()(mod))
    return mod["main"] if isinstance(expr, Function) else mod["main"].body


def _np_randn_from_type(t: Any, scale: float = 1, mean: float = 0) -> Any:
    import numpy as np
    return np.asarray(mean + scale * np.random.randn(*t.concrete_shape)).astype(t.dtype)


def rand(dtype: str = "float32", *shape: int) -> Any:
    """A tensor of uniform random numbers in [0, 1)."""
    import numpy as np
    return array(np.random.rand(*shape).astype(dtype))


def check_grad(func: Any, inputs: Any = None, test_inputs: Any = None, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, scale: float | None = None, mean: float = 0,
               mode: str = "higher_order", target_devices: Any = None, executor_kind: str = "debug") -> None:
    """Compares gradients by `gradient` with central differences. Default inputs are normally distributed around `mean` with standard
    deviation `scale` / (10 * eps). test_inputs: the inputs whose gradients are compared. AssertionError if they differ."""
    import numpy as np
    from ..build_module import create_executor
    from ..transform import gradient
    func = infer_type(func)
    scale = 10 * eps if scale is None else scale
    given = [np.asarray(v) for v in inputs] if inputs is not None else [_np_randn_from_type(p.checked_type, scale, mean) for p in func.params]
    wanted = range(len(given)) if test_inputs is None else [next(j for j, v in enumerate(inputs) if v is t) for t in test_inputs]
    for target, dev in target_devices or enabled_targets():
        grads = create_executor(executor_kind, device=dev, target=target).evaluate(gradient(func, mode=mode))(*given)[1]
        forward = create_executor(executor_kind, device=dev, target=target).evaluate(func)
        for i in wanted:
            np.testing.assert_allclose(grads[i].numpy(), _by_differences(forward, given, i, eps), atol=atol, rtol=rtol)


def _by_differences(forward: Any, values: Any, which: int, eps: float) -> Any:
    """The gradient of the sum of a function's results with respect to one input, by central differences."""
    import numpy as np
    out = np.zeros(values[which].shape)
    for at in np.ndindex(*values[which].shape):
        both = []
        for sign in (1, -1):
            moved = [v.copy() if i == which else v for i, v in enumerate(values)]
            moved[which][at] += sign * eps
            both.append(forward(*moved).numpy().astype("float64"))
        out[at] = np.sum((both[0] - both[1]) / (2 * eps))
    return out


def count_ops(expr: Any) -> Any:
    """The number of calls of each operator, by name."""
    from collections import Counter
    from ..analysis import post_order_visit
    from ..expr import Call, Op
    out: Counter[str] = Counter()
    post_order_visit(expr, lambda e: out.update([e.op.name]) if isinstance(e, Call) and isinstance(e.op, Op) else None)
    return out


def enabled_targets() -> list[tuple[str, Any]]:
    return [("llvm", cpu())]


ctx_list = enabled_targets

def __getattr__(name: str) -> Any:
    if name in ("to_python", "tf"):
        raise AttributeError(f"relay.testing.{name} is not supported; instead: relay.testing.run_as_python runs every program")
    if name in ("darknet", "py_converter"):
        import importlib
        return importlib.import_module(f".{name}", __name__)
    if name == "run_as_python":
        from .py_converter import run_as_python
        return run_as_python
    if name == "gradient":
        from ..transform import gradient
        return gradient
    raise AttributeError(f"relay.testing has no '{name}'; there are {', '.join(__all__)}")


__all__ = ["Prelude", "TempOpAttr", "byoc", "check_grad", "count", "count_ops", "create_workload", "ctx_list", "dcgan", "densenet", "dqn", "enabled_targets", "inception_v3",
           "init", "layers", "lstm", "make_nat_expr", "make_nat_value", "mlp", "mobilenet", "nat", "rand", "resnet", "resnet_3d", "run_infer_type",
           "run_opt_pass", "squeezenet", "synthetic", "vgg", "yolo_detection"]
