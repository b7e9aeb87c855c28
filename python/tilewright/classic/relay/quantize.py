# SPDX-License-Identifier: Apache-2.0
"""Post-training quantisation of float networks under its classic names:

    with relay.quantize.qconfig(calibrate_mode="global_scale", global_scale=8.0):
        mod = relay.quantize.quantize(mod, params)
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import _core
from .. import transform as _transform
from ..transform import PassContext, Sequential, module_pass, named_pass
from . import transform
from .build_module import bind_params_by_name


class QAnnotateKind:
    """The role of a simulated quantisation."""
    IDENTITY, INPUT, WEIGHT, ACTIVATION = 0, 1, 2, 3


def kind2str(kind: int) -> str:
    return {QAnnotateKind.INPUT: "input", QAnnotateKind.WEIGHT: "weight", QAnnotateKind.ACTIVATION: "activation", QAnnotateKind.IDENTITY: "identity"}[kind]


_DEFAULTS: dict[str, Any] = {
    "nbit_input": 8, "nbit_weight": 8, "nbit_activation": 32, "dtype_input": "int8", "dtype_weight": "int8", "dtype_activation": "int32",
    "calibrate_mode": "global_scale", "global_scale": 8.0, "weight_scale": "power2", "skip_dense_layer": True, "skip_conv_layers": [0],
    "do_simulation": False, "round_for_shift": True, "debug_enabled_ops": None, "rounding": "UPWARD", "calibrate_chunk_by": -1, "partition_conversions": "disabled"}
_CHOICES = {"calibrate_mode": ("global_scale", "kl_divergence", "percentile"), "weight_scale": ("power2", "max"), "rounding": ("UPWARD", "TONEAREST"),
            "partition_conversions": ("disabled",), "debug_enabled_ops": (None,), "nbit_activation": (32,)}


class QConfig:
    """Quantisation settings, in effect inside its `with`. ValueError: unknown name or value."""

    def __init__(self, **settings: Any):
        for name, value in settings.items():
            if name not in _DEFAULTS:
                raise ValueError(f"qconfig has no setting '{name}'; there are {', '.join(_DEFAULTS)}")
            if name in _CHOICES and value not in _CHOICES[name]:
                raise ValueError(f"{name} is {' or '.join(map(str, _CHOICES[name]))} here, not {value!r}")
        for name in ("nbit_input", "nbit_weight"):
            bits = settings.get(name, 8)
            if not 2 <= int(bits) <= 8:
                raise ValueError(f"{name} is between 2 and 8, not {bits}")
        self.__dict__.update({**_DEFAULTS, **settings})

    def guard(self, ref_call: Any) -> bool:
        return True

    def get_nbit_by_kind(self, kind: int) -> int:
        return getattr(self, "nbit_" + kind2str(kind))

    def get_dtype_by_kind(self, kind: int) -> str:
        return getattr(self, "dtype_" + kind2str(kind))

    def _options(self) -> dict[str, Any]:
        """The settings as pass options."""
        return {"nbit_input": int(self.nbit_input), "nbit_weight": int(self.nbit_weight), "dtype_input": self.dtype_input, "dtype_weight": self.dtype_weight,
                "dtype_activation": self.dtype_activation, "global_scale": float(self.global_scale), "max_weight_scale": self.weight_scale == "max",
                "skip_dense_layer": bool(self.skip_dense_layer), "skip_conv_layers": [int(n) for n in self.skip_conv_layers or []],
                "round_for_shift": bool(self.round_for_shift), "to_nearest": self.rounding == "TONEAREST"}

    def __enter__(self) -> "QConfig":
        _stack.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _stack.pop()

    def __str__(self) -> str:
        return "qconfig(" + ", ".join(f"{name}={getattr(self, name)}" for name in _DEFAULTS) + ")"


_stack: list[QConfig] = [QConfig()]


def current_qconfig() -> QConfig:
    return _stack[-1]


def qconfig(**kwargs: Any) -> QConfig:
    """Settings for `with`: those not given have their defaults, not the surrounding values."""
    return QConfig(**kwargs)


def partition() -> Any:
    """Does nothing: conversions stay where quantisation inserted them (partition_conversions="disabled")."""
    return module_pass(lambda mod, ctx: mod, opt_level=1, name="QuantizePartition")


def annotate() -> Any:
    return named_pass("QuantizeAnnotate", {"quantize": current_qconfig()._options()})


def realize() -> Any:
    return named_pass("QuantizeRealize", {"quantize": current_qconfig()._options()})


def calibrate(dataset: Iterable[Mapping[str, Any]] | None = None) -> Any:
    """A function of (module, context) for a custom pass, which sets the scales of simulated quantisations.

    dataset: dicts of inputs by name, for the modes that use activation statistics."""
    def run(mod: Any, ctx: PassContext | None = None) -> Any:
        config = current_qconfig()
        scales: list[float] = []
        if config.calibrate_mode != "global_scale":
            if dataset is None:
                raise ValueError(f"calibrate_mode=\"{config.calibrate_mode}\" needs a dataset: inputs by name")
            find = _kl_scale if config.calibrate_mode == "kl_divergence" else _percentile_scale
            chunk = config.calibrate_chunk_by
            scales = [find(values) for samples in collect_stats(mod, dataset, chunk) for values in samples]
        return named_pass("QuantizeCalibrate", {"quantize": config._options(), "scales": scales})(mod)
    return run


def collect_stats(mod: Any, dataset: Iterable[Mapping[str, Any]], chunk_by: int = -1) -> Iterator[list[np.ndarray]]:
    """The values of every simulated quantisation's operand over the dataset, for chunk_by of them at a time, or for all at once."""
    from ..contrib import graph_executor
    from ..runtime import cpu
    from .build_module import build
    inputs = _core.simulated_inputs(mod)
    count = len(inputs["main"].body.fields)
    runtime = graph_executor.GraphModule(build(inputs, "llvm")["default"](cpu()))
    batches = list(dataset)
    if not batches:
        raise ValueError("the dataset to calibrate with is empty")
    step = max(1, count if chunk_by == -1 else int(chunk_by))
    for first in range(0, count, step):
        samples: list[list[np.ndarray]] = [[] for _ in range(first, min(first + step, count))]
        for batch in batches:
            runtime.run(**batch)
            for i, values in enumerate(samples):
                values.append(runtime.get_output(first + i).numpy().reshape(-1))
        yield [np.concatenate(values) for values in samples]


def _percentile_scale(values: np.ndarray, quantile: float = 0.99999) -> float:
    """The 99.999th percentile of the absolute values."""
    size = np.sort(np.abs(values))
    return float(size[min(int(len(size) * quantile), len(size) - 1)]) or 1.0


def _kl_scale(values: np.ndarray, num_bins: int = 8001, num_quantized_bins: int = 255) -> float:
    """The clipping threshold with the least loss of information (Migacz, 8-bit inference with TensorRT, 2017): the KL divergence between
    the histogram clipped at each threshold, with outliers counted in the last bins, and its quantisation to num_quantized_bins
    levels."""
    most = float(np.abs(values).max()) if values.size else 0.0
    if most == 0:
        return 1.0
    counts, edges = np.histogram(values, bins=num_bins, range=(-most, most))
    zero = num_bins // 2
    best, threshold = np.inf, most
    for half in range(num_quantized_bins // 2, zero + 1):
        low, high = zero - half, zero + half + 1
        inside = counts[low:high]
        reference = inside.astype("float64")
        reference[0] += counts[:low].sum()
        reference[-1] += counts[high:].sum()
        # The count of each level is distributed evenly over its non-empty bins.
        width = len(inside) // num_quantized_bins
        level = np.minimum(np.arange(len(inside)) // width, num_quantized_bins - 1)
        filled = inside > 0
        bins = np.bincount(level, filled, num_quantized_bins)
        quantized = np.where(filled, (np.bincount(level, inside, num_quantized_bins) / np.maximum(bins, 1))[level], 0.0)
        divergence = _divergence(_smooth(reference), _smooth(quantized))
        if divergence < best:
            best, threshold = divergence, float(edges[high])
    return threshold


def _smooth(counts: np.ndarray, eps: float = 1e-4) -> np.ndarray:
    """Removes zeros from a distribution by moving a little mass to them."""
    empty = counts == 0
    out = np.where(empty, eps, counts)
    if empty.any() and not empty.all():
        out = np.where(empty, out, out - eps * empty.sum() / (~empty).sum())
    return np.maximum(out, eps) / np.maximum(out, eps).sum()


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.sum(p * np.log(p / q)))


def prerequisite_optimize(mod: Any, params: Mapping[str, Any] | None = None) -> Any:
    """Binds the parameters and folds normalisations into the weights."""
    if params:
        mod = mod.shallow_copy()
        mod["main"] = bind_params_by_name(mod["main"], params)
    optimize = Sequential([transform.SimplifyInference(), transform.FoldConstant(), transform.FoldScaleAxis(), transform.CanonicalizeOps(), transform.FoldConstant()])
    with PassContext(opt_level=3):
        return optimize(transform.InferType()(mod))


def quantize(mod: Any, params: Mapping[str, Any] | None = None, dataset: Iterable[Mapping[str, Any]] | None = None) -> Any:
    """The network with 8-bit convolutions and matrix products, by the current qconfig. A function is returned as a module."""
    if not isinstance(mod, _core.IRModule):
        mod = _core.IRModule.from_expr(mod)
    mod = prerequisite_optimize(mod, params)
    calibration = module_pass(calibrate(dataset), opt_level=1, name="QuantizeCalibrate")
    passes: list[Any] = [partition(), annotate(), calibration, transform.InferType()]
    if not current_qconfig().do_simulation:
        passes.append(realize())
    passes.append(transform.FoldConstant())
    with PassContext(opt_level=3, required_pass=["QuantizeAnnotate", "QuantizeCalibrate", "QuantizeRealize"]):
        return Sequential(passes)(mod)


class QuantizeContext:
    """The layer counter for `skip_conv_layers`; unused here, since the annotation pass counts by itself."""

    Current: "QuantizeContext | None" = None

    def __enter__(self) -> "QuantizeContext":
        QuantizeContext.Current = self
        return self

    def __exit__(self, *_: object) -> None:
        QuantizeContext.Current = None


def quantize_context() -> QuantizeContext:
    return QuantizeContext()


annotate_context = quantize_context

__all__ = ["QuantizeContext", "quantize_context", "QAnnotateKind", "QConfig", "annotate", "calibrate", "collect_stats", "current_qconfig", "kind2str", "partition", "prerequisite_optimize", "qconfig",
           "quantize", "realize"]
