#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MLPerf Tiny's four networks by Tilewright and by CMSIS-NN's kernels on the emulated Cortex-M4: instructions, the code of both
compiled by the same compiler with the same flags, in the same project: cmsis_nn.py --cmsis-nn FOLDER [--program build/tilewright] [name...].

FOLDER is a checkout of ARM-software/CMSIS-NN (Include, Source). Its kernels are called layer after layer, as its wrappers choose them, on
int8 tensors in NHWC; the softmax of the last layer is counted on our side alone. Its requantisation rounds twice and ours once, so that a
layer may be a step off, and later layers enlarge that: the largest difference before the softmax is printed (--layers 1: of the first layer).
Instructions are counted by QEMU (-icount), and are not cycles."""
from __future__ import annotations

import argparse
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "zoo"))
import mlperf_tiny  # noqa: E402

LEFT_SHIFT = 20  # of the operands of a sum


class Network:
    """The C program of a network of mlperf_tiny, in calls of CMSIS-NN."""

    def __init__(self, name: str, model: onnx.ModelProto):
        self.name, self.graph = name, model.graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in self.graph.initializer}
        self.made_by = {out: node for node in self.graph.node for out in node.output}
        self.tables: list[str] = []
        self.calls: list[str] = []
        self.value = {"input": "(int8_t*)inputs->input"}
        self.shape: dict[str, tuple[int, ...]] = {}
        self.largest = self.scratch = 0
        given = [d.dim_value for d in self.graph.input[0].type.tensor_type.shape.dim]
        self.shape["input"] = (given[2], given[3], given[1]) if len(given) == 4 else (1, 1, given[1])

    def quantised(self, name: str) -> tuple[str, np.ndarray, int]:
        """The int8 tensor behind a float one, with its scale and zero point."""
        node = self.made_by[name]
        while node.op_type == "Reshape":
            node = self.made_by[node.input[0]]
        return node.input[0], self.constants[node.input[1]], int(self.constants[node.input[2]].flat[0])

    def table(self, dtype: str, values: np.ndarray) -> str:
        self.tables.append(f"static {dtype} t{len(self.tables)}[] = {{{', '.join(str(int(v)) for v in values.flat)}}};")
        return f"t{len(self.tables) - 1}"

    @staticmethod
    def multiplier(scale: float) -> tuple[int, int]:
        fraction, exponent = math.frexp(scale)
        fixed = round(fraction * (1 << 31))
        return (fixed // 2, exponent + 1) if fixed == 1 << 31 else (fixed, exponent)

    def multipliers(self, scales: np.ndarray) -> str:
        pairs = np.array([self.multiplier(float(s)) for s in scales])
        return f"{{{self.table('int32_t', pairs[:, 0])}, {self.table('int32_t', pairs[:, 1])}}}"

    def buffer(self, name: str, shape: tuple[int, ...]) -> str:
        """A tensor of its own; the last one is the output."""
        self.shape[name] = shape
        self.value[name] = f"b{len(self.value)}"
        self.tables.append(f"static int8_t {self.value[name]}[{math.prod(shape)}];")
        return self.value[name]

    @staticmethod
    def dims(shape: tuple[int, ...]) -> str:
        return f"&(cmsis_nn_dims){{1, {', '.join(map(str, shape))}}}"

    def layer(self, node: onnx.NodeProto) -> None:
        """Of a QuantizeLinear: the operator before it, with its activation."""
        out, out_scale, out_zero = node.output[0], float(self.constants[node.input[1]]), int(self.constants[node.input[2]])
        operator = self.made_by[node.input[0]]
        relu = operator.op_type == "Relu"
        if relu:
            operator = self.made_by[operator.input[0]]
        if operator.op_type == "Softmax":
            return
        lowest = out_zero if relu else -128
        activation = f"{{{lowest}, 127}}"
        x, x_scale, x_zero = self.quantised(operator.input[0])
        h, w, c = self.shape[x]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in operator.attribute}
        if operator.op_type in ("Conv", "Gemm"):
            weights, weight_scale, _ = self.quantised(operator.input[1])
            weights = self.constants[weights]
            bias = self.table("const int32_t", self.constants[self.quantised(operator.input[2])[0]])
            quant = self.multipliers(x_scale * weight_scale / out_scale)
        if operator.op_type == "Conv":
            (kh, kw), (sh, sw), pads, groups = attributes["kernel_shape"], attributes["strides"], attributes["pads"], attributes.get("group", 1)
            oh, ow, oc = (h + pads[0] + pads[2] - kh) // sh + 1, (w + pads[1] + pads[3] - kw) // sw + 1, weights.shape[0]
            depthwise = groups > 1
            table = self.table("const int8_t", weights.transpose(1, 2, 3, 0) if depthwise else weights.transpose(0, 2, 3, 1))
            to = self.buffer(out, (oh, ow, oc))
            self.scratch = max(self.scratch, 4 * (kh * kw * c + 4) * 2)
            window = f"{{{sw}, {sh}}}, {{{pads[1]}, {pads[0]}}}, {{1, 1}}, {activation}"
            params = f"&(cmsis_nn_dw_conv_params){{{-x_zero}, {out_zero}, 1, {window}}}" if depthwise else f"&(cmsis_nn_conv_params){{{-x_zero}, {out_zero}, {window}}}"
            kernel = f"&(cmsis_nn_dims){{1, {kh}, {kw}, {oc}}}" if depthwise else f"&(cmsis_nn_dims){{{oc}, {kh}, {kw}, {c}}}"
            self.calls.append(f"arm_{'depthwise_conv' if depthwise else 'convolve'}_wrapper_s8(&context, {params}, &(cmsis_nn_per_channel_quant_params){quant}, "
                              f"{self.dims((h, w, c))}, {self.value[x]}, {kernel}, {table}, &(cmsis_nn_dims){{1, 1, 1, {oc}}}, {bias}, {self.dims((oh, ow, oc))}, {to})")
        elif operator.op_type == "Gemm":
            units, depth = weights.shape
            to = self.buffer(out, (1, 1, units))
            self.calls.append(f"arm_fully_connected_per_channel_s8(&context, &(cmsis_nn_fc_params){{{-x_zero}, 0, {out_zero}, {activation}}}, &(cmsis_nn_per_channel_quant_params){quant}, "
                              f"{self.dims((1, 1, depth))}, {self.value[x]}, &(cmsis_nn_dims){{{depth}, 1, 1, {units}}}, {self.table('const int8_t', weights)}, "
                              f"&(cmsis_nn_dims){{1, 1, 1, {units}}}, {bias}, {self.dims((1, 1, units))}, {to})")
        elif operator.op_type == "AveragePool":
            to = self.buffer(out, (1, 1, c))
            self.scratch = max(self.scratch, 4 * c)
            self.calls.append(f"arm_avgpool_s8(&context, &(cmsis_nn_pool_params){{{{1, 1}}, {{0, 0}}, {activation}}}, {self.dims((h, w, c))}, {self.value[x]}, "
                              f"&(cmsis_nn_dims){{1, {h}, {w}, 1}}, {self.dims((1, 1, c))}, {to})")
        elif operator.op_type == "Add":
            y, y_scale, y_zero = self.quantised(operator.input[1])
            most = 2 * max(float(x_scale), float(y_scale))
            first, second = self.multiplier(float(x_scale) / most), self.multiplier(float(y_scale) / most)
            last = self.multiplier(most / ((1 << LEFT_SHIFT) * out_scale))
            to = self.buffer(out, (h, w, c))
            self.calls.append(f"arm_elementwise_add_s8({self.value[x]}, {self.value[y]}, {-x_zero}, {first[0]}, {first[1]}, {-y_zero}, {second[0]}, {second[1]}, {LEFT_SHIFT}, {to}, "
                              f"{out_zero}, {last[0]}, {last[1]}, {lowest}, 127, {h * w * c})")
        else:
            raise ValueError(f"{operator.op_type} is no layer of these networks")
        self.last = out

    def program(self, output: str, layers: int) -> str:
        for node in self.graph.node:
            if node.op_type == "QuantizeLinear" and len(self.calls) < layers:
                self.layer(node)
        calls = "\n".join(f"  if ({call} != ARM_CMSIS_NN_SUCCESS) return -1;" for call in self.calls)
        count = math.prod(self.shape[self.last])
        return f"""#include <string.h>
#include "arm_nnfunctions.h"
#include "tvmgen_{self.name}.h"
{chr(10).join(self.tables)}
static int32_t scratch[{self.scratch // 4 + 4}];
int32_t tvmgen_{self.name}_run(struct tvmgen_{self.name}_inputs* inputs, struct tvmgen_{self.name}_outputs* outputs) {{
  const cmsis_nn_context context = {{scratch, sizeof scratch}};
{calls}
  memcpy(outputs->{output}, {self.value[self.last]}, {count});
  return 0;
}}
"""


def up_to(model: onnx.ModelProto, last: str) -> onnx.ModelProto:
    """The model up to the int8 tensor `last`."""
    return onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model)).extract_model(["input"], [last])


def run(*command: object, folder: pathlib.Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def measure(program: str, project: pathlib.Path, value: np.ndarray) -> tuple[int, np.ndarray]:
    """Instructions of a run on the board, and its output."""
    np.save(project / "input.npy", value)
    said = run(program, "micro", "run", project, "--input", f"input=@{project / 'input.npy'}", "--repeat", "2", "--output", project / "out.npz", folder=project)
    seconds = re.search(r"([\d.]+) seconds a run", said).group(1)
    with np.load(project / "out.npz") as outputs:
        return round(float(seconds) * 1e9), outputs[outputs.files[0]]


def compare(name: str, layers: int, library: pathlib.Path, program: str, folder: pathlib.Path) -> tuple[int, int, int, float]:
    """Instructions of both, and the largest difference of their results; `layers`: of so many first layers alone."""
    model = mlperf_tiny.NETWORKS[name]()
    network = Network(name, model)
    text = network.program(output := model.graph.output[0].name, layers)
    plain = up_to(model, network.last)
    if layers <= len(network.calls):
        model = plain
    random = np.random.default_rng(5)
    given = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    value = random.integers(-128, 128, given).astype("int8")
    results = {}
    for kind, source in (("ours", model), ("plain", plain), ("theirs", plain)):
        onnx.save(source, folder / f"{name}.onnx")
        project = folder / f"{name}_{kind}"
        run(program, "compile", folder / f"{name}.onnx", "--target", "c -mcpu=cortex-m4", "--format", "mlf", "-o", folder / "net.tar", folder=folder)
        run(program, "micro", "create", project, folder / "net.tar", "--template", "mps2-an386", folder=folder)
        fed = value
        if kind == "theirs":
            code = project / "model/codegen/host"
            (code / f"src/{name}_lib0.c").write_text(text.replace(f"outputs->{output}", f"outputs->{network.last}"))
            for header in (library / "Include").rglob("*.h"):
                shutil.copy(header, code / "include")
            for room in ("Convolution", "FullyConnected", "Pooling", "BasicMath", "NNSupport"):
                for file in [*(library / f"Source/{room}Functions").glob("*s8*.c"), *(library / f"Source/{room}Functions").glob("*q7_to_q15*.c")]:
                    shutil.copy(file, code / "src")
            fed = np.ascontiguousarray(value.transpose(0, 2, 3, 1)).reshape(given) if len(given) == 4 else value
            script = project / "build.sh"
            script.write_text(script.read_text().replace("-std=c99", "-std=gnu99 -w"))
        run(program, "micro", "build", project, folder=folder)
        results[kind] = measure(program, project, fed)
    theirs = results["theirs"][1].reshape(network.shape[network.last]).transpose(2, 0, 1)
    off = np.abs(results["plain"][1].astype(int).ravel() - theirs.astype(int).ravel())
    return results["ours"][0], results["theirs"][0], int(off.max()), float(off.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmsis-nn", type=pathlib.Path, required=True, help="a checkout of CMSIS-NN")
    parser.add_argument("--program", default="build/tilewright")
    parser.add_argument("--layers", type=int, default=1000, help="measure the first so many layers alone")
    parser.add_argument("names", nargs="*", choices=[*mlperf_tiny.NETWORKS, []], help="default: all four")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    print(f"{'':6}{'Tilewright':>12}{'CMSIS-NN':>12}{'ratio':>8}{'largest difference':>20}{'mean':>8}")
    for name in arguments.names or mlperf_tiny.NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs, most, mean = compare(name, arguments.layers, arguments.cmsis_nn.resolve(), program, pathlib.Path(folder))
        print(f"{name:6}{ours:12,}{theirs:12,}{ours / theirs:8.3f}{most:20}{mean:8.3f}", flush=True)


if __name__ == "__main__":
    main()
