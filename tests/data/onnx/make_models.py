#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small ONNX files of this folder (needs Debian's python3-onnx). The files are committed; run this after
changing it and commit both. Deterministic: the same script gives the same bytes."""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = os.path.dirname(os.path.abspath(__file__))
FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64


def save(name, nodes, inputs, outputs, initializers=(), opset=13, metadata=None, sparse=(), functions=(), domains=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializer=list(initializers), sparse_initializer=list(sparse))
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=imports, producer_name="make_models", functions=list(functions))
    model.ir_version = 8
    for key, value in (metadata or {}).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    with open(os.path.join(FOLDER, name + ".onnx"), "wb") as out:
        out.write(model.SerializeToString(deterministic=True))


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def dtypes():
    """One initializer of every element type, typed and raw, and a sparse one; each is an output."""
    tensors = [
        helper.make_tensor("t_float", FLOAT, [2], [1.5, -2.0]),
        helper.make_tensor("t_double", TensorProto.DOUBLE, [2], [1.25, -2.0]),
        helper.make_tensor("t_float16", TensorProto.FLOAT16, [2], [1.5, -2.0]),
        helper.make_tensor("t_bfloat16", TensorProto.BFLOAT16, [2], [1.5, -2.0]),
        helper.make_tensor("t_int8", TensorProto.INT8, [2], [-3, 7]),
        helper.make_tensor("t_uint8", TensorProto.UINT8, [2], [3, 250]),
        helper.make_tensor("t_int16", TensorProto.INT16, [2], [-300, 7]),
        helper.make_tensor("t_uint16", TensorProto.UINT16, [2], [300, 65535]),
        helper.make_tensor("t_int32", TensorProto.INT32, [2], [-70000, 7]),
        helper.make_tensor("t_uint32", TensorProto.UINT32, [2], [70000, 4294967295]),
        helper.make_tensor("t_int64", INT64, [2], [-(1 << 40), 7]),
        helper.make_tensor("t_uint64", TensorProto.UINT64, [2], [1 << 40, 7]),
        helper.make_tensor("t_bool", TensorProto.BOOL, [2], [True, False]),
        helper.make_tensor("t_string", TensorProto.STRING, [2], [b"one", b"two"]),
        helper.make_tensor("t_scalar", FLOAT, [], [4.0]),
        helper.make_tensor("t_empty", FLOAT, [0, 3], []),
        constant("r_float", np.array([1.5, -2.0], np.float32)),
        constant("r_int64", np.array([[1, 2], [3, 4]], np.int64)),
        constant("r_bool", np.array([True, False])),
        constant("r_float16", np.array([1.5, -2.0], np.float16)),
    ]

    def low_bit(name, number, stored, dims, raw=None):
        t = TensorProto()
        t.name, t.data_type = name, number
        t.dims.extend(dims)
        if raw is None:
            t.int32_data.extend(stored)
        else:
            t.raw_data = raw
        tensors.append(t)

    # This onnx release does not know these types by name: 17..20 float8, 21 uint4, 22 int4.
    low_bit("t_e4m3fn", 17, [0x3C, 0xC0], [2])
    low_bit("t_e5m2", 19, [0x3E, 0xC0], [2])
    low_bit("t_uint4", 21, [0xF3, 0x01], [3])
    low_bit("t_int4", 22, None, [3], raw=bytes([0xF3, 0x01]))
    sparse = helper.make_sparse_tensor(constant("s_float", np.array([5.0, 6.0], np.float32)),
                                       constant("", np.array([1, 4], np.int64)), [2, 3])
    nodes = [helper.make_node("Relu", ["r_float"], ["out"], name="relu")]
    save("dtypes", nodes, [], [value("out", FLOAT, [2])], tensors, sparse=[sparse])


def attributes():
    """Every kind of attribute on one node of a made-up operator."""
    sub = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "sub", [], [value("y", FLOAT, [2])])
    node = helper.make_node("Everything", ["x"], ["out"], name="everything", domain="test.domain", f=0.5, i=-7, s="text",
                            t=constant("c", np.array([1, 2], np.int64)), g=sub, floats=[1.0, 2.5], ints=[1, -2, 3],
                            strings=["a", "b"], tensors=[constant("d", np.array([1.0], np.float32))], graphs=[sub, sub])
    save("attributes", [node], [value("x", FLOAT, [2])], [value("out", FLOAT, [2])], domains=["test.domain"])


def external():
    data = np.arange(6, dtype=np.float32)
    with open(os.path.join(FOLDER, "external.bin"), "wb") as out:
        out.write(b"\0" * 64 + data.tobytes())

    def tensor(name, location, offset="64", length="24", extra=None):
        t = TensorProto()
        t.name, t.data_type, t.data_location = name, FLOAT, TensorProto.EXTERNAL
        t.dims.extend([2, 3])
        for key, text in (("location", location), ("offset", offset), ("length", length)) + tuple(extra or ()):
            if text is not None:
                entry = t.external_data.add()
                entry.key, entry.value = key, text
        return t

    def write(name, t):
        save(name, [helper.make_node("Add", ["x", "w"], ["y"], name="add")], [value("x", FLOAT, [2, 3])],
             [value("y", FLOAT, [2, 3])], [t])

    write("external", tensor("w", "external.bin"))
    write("external_absolute", tensor("w", "/etc/passwd"))
    write("external_parent", tensor("w", "sub/../../external.bin"))
    write("external_missing", tensor("w", "no_such_file.bin"))
    write("external_past_end", tensor("w", "external.bin", offset="80"))
    write("external_negative", tensor("w", "external.bin", offset="-4"))
    write("external_unknown_key", tensor("w", "external.bin", extra=(("pointer", "1234"),)))


def convnet():
    """Conv, BatchNormalization, Relu, MaxPool, Flatten, Gemm: one small real network with every link of the chain."""
    rng = np.random.RandomState(7)

    def weights(name, *shape):
        return constant(name, (rng.rand(*shape) - 0.5).astype(np.float32))

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"], name="norm"),
        helper.make_node("Relu", ["n"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "gw", "gb"], ["y"], name="gemm", transB=1),
    ]
    params = [weights("w", 4, 3, 3, 3), weights("b", 4), weights("scale", 4), weights("bias", 4), weights("mean", 4),
              constant("var", (rng.rand(4) + 0.5).astype(np.float32)), weights("gw", 5, 16), weights("gb", 5)]
    save("convnet", nodes, [value("x", FLOAT, ["batch", 3, 8, 8])], [value("y", FLOAT, ["batch", 5])], params,
         metadata={"labels": "cat\ndog", "author": "nobody"})


def shape_chain():
    """What exporters write for x.view(x.size(0), -1, 4): all of it must be gone after the import."""
    i64 = lambda name, v: constant(name, np.array(v, np.int64))
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Unsqueeze", ["batch", "axes"], ["batch1"]),
        helper.make_node("Concat", ["batch1", "minus", "four"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"], name="view"),
    ]
    params = [i64("zero", 0), i64("axes", [0]), i64("minus", [-1]), i64("four", [4])]
    save("shape_chain", nodes, [value("x", FLOAT, ["batch", 3, 8])], [value("y", FLOAT, None)], params)


def control():
    """An If on a constant, a Loop of three steps and a Scan, all decided at import."""
    then = helper.make_graph([helper.make_node("Add", ["x", "x"], ["t"])], "then", [], [value("t", FLOAT, [2])])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [value("e", FLOAT, [2])])
    body = helper.make_graph(
        [helper.make_node("Mul", ["state", "two"], ["next"]), helper.make_node("Identity", ["go"], ["again"]),
         helper.make_node("Identity", ["next"], ["seen"])],
        "body", [value("step", INT64, []), value("go", TensorProto.BOOL, []), value("state", FLOAT, [2])],
        [value("again", TensorProto.BOOL, []), value("next", FLOAT, [2]), value("seen", FLOAT, [2])],
        [constant("two", np.array(2, np.float32))])
    step = helper.make_graph([helper.make_node("Add", ["sum", "row"], ["sum_out"]), helper.make_node("Identity", ["sum_out"], ["row_out"])],
                             "step", [value("sum", FLOAT, [2]), value("row", FLOAT, [2])],
                             [value("sum_out", FLOAT, [2]), value("row_out", FLOAT, [2])])
    nodes = [
        helper.make_node("If", ["condition"], ["doubled"], then_branch=then, else_branch=other),
        helper.make_node("Loop", ["trips", "", "doubled"], ["last", "all"], body=body),
        helper.make_node("Scan", ["last", "all"], ["total", "running"], body=step, num_scan_inputs=1),
    ]
    params = [constant("condition", np.array(True)), constant("trips", np.array(3, np.int64))]
    save("control", nodes, [value("x", FLOAT, [2])], [value("total", FLOAT, [2]), value("running", FLOAT, [3, 2])], params)


def shape_input():
    """Sizes and a factor that arrive at run time; both can be made part of the model."""
    nodes = [helper.make_node("Reshape", ["x", "sizes"], ["r"]), helper.make_node("Mul", ["r", "factor"], ["y"])]
    save("shape_input", nodes, [value("x", FLOAT, [2, 6]), value("sizes", INT64, ["n"]), value("factor", FLOAT, [])],
         [value("y", FLOAT, None)])


def free_sizes():
    """Free batch and length, an If and a Loop that inputs decide, a Reshape to a shape that is an input."""
    float_nl = ["n", "l"]
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "then", [], [value("t", FLOAT, float_nl)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [value("e", FLOAT, float_nl)])
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "state"], ["next"]), helper.make_node("Identity", ["go"], ["again"])],
        "body", [value("step", INT64, []), value("go", TensorProto.BOOL, []), value("state", FLOAT, None)],
        [value("again", TensorProto.BOOL, []), value("next", FLOAT, None)])
    nodes = [helper.make_node("If", ["positive"], ["part"], then_branch=then, else_branch=other),
             helper.make_node("Loop", ["trips", "", "part"], ["grown"], body=body),
             helper.make_node("Reshape", ["grown", "shape"], ["y"]), helper.make_node("ReduceSum", ["grown"], ["total"], keepdims=0)]
    save("free_sizes", nodes, [value("x", FLOAT, float_nl), value("positive", TensorProto.BOOL, []), value("trips", INT64, []), value("shape", INT64, [2])],
         [value("y", FLOAT, ["a", "b"]), value("total", FLOAT, [])])


def texts_and_lists():
    """Any number of texts, each with an end put on; a sequence of tensors that a further one joins."""
    end = TensorProto()
    end.name, end.data_type = "end", TensorProto.STRING
    end.string_data.append(b"!")
    nodes = [helper.make_node("StringConcat", ["texts", "end"], ["louder"]), helper.make_node("SequenceInsert", ["list", "x"], ["longer"]),
             helper.make_node("SequenceLength", ["longer"], ["count"])]
    save("texts_and_lists", nodes, [value("texts", TensorProto.STRING, ["n"]), helper.make_tensor_sequence_value_info("list", FLOAT, None), value("x", FLOAT, ["m"])],
         [value("louder", TensorProto.STRING, ["n"]), helper.make_tensor_sequence_value_info("longer", FLOAT, None), value("count", INT64, [])],
         initializers=[end], opset=20)


def computed_control():
    """Control flow and sizes that data decide: a Loop until a sum is large enough, an If on that sum, a Scan of running sums,
    the places of what is above the mean, a Slice to a computed length, a sequence that grows."""
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "v"], ["twice"]), helper.make_node("Add", ["twice", "bias"], ["next"]),
         helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0), helper.make_node("Less", ["sum", "limit"], ["again"]),
         helper.make_node("SequenceInsert", ["s", "sum"], ["longer"])],
        "body", [value("i", INT64, []), value("go", TensorProto.BOOL, []), value("v", FLOAT, ["n"]),
                 helper.make_tensor_sequence_value_info("s", FLOAT, None)],
        [value("again", TensorProto.BOOL, []), value("next", FLOAT, ["n"]),
         helper.make_tensor_sequence_value_info("longer", FLOAT, None), value("sum", FLOAT, [])])
    then = helper.make_graph([helper.make_node("Identity", ["steps"], ["t_end"]), helper.make_node("Slice", ["last", "zero", "t_end"], ["t"])], "then", [], [value("t", FLOAT, ["k"])])
    other = helper.make_graph([helper.make_node("Neg", ["last"], ["e"])], "else", [], [value("e", FLOAT, ["k"])])
    step = helper.make_graph([helper.make_node("Add", ["state", "x_i"], ["new"]), helper.make_node("Mul", ["x_i", "x_i"], ["square"])],
                             "step", [value("state", FLOAT, []), value("x_i", FLOAT, [])], [value("new", FLOAT, []), value("square", FLOAT, [])])
    nodes = [helper.make_node("SequenceEmpty", [], ["none"], dtype=FLOAT),
             helper.make_node("Loop", ["", "", "x", "none"], ["last", "kept", "sums"], body=body),
             helper.make_node("Shape", ["sums"], ["steps"]),
             helper.make_node("ReduceMax", ["sums"], ["top"], keepdims=0), helper.make_node("Greater", ["top", "hundred"], ["large"]),
             helper.make_node("If", ["large"], ["y"], then_branch=then, else_branch=other),
             helper.make_node("Scan", ["nothing", "last"], ["total", "squares"], num_scan_inputs=1, body=step),
             helper.make_node("ReduceMean", ["last"], ["mean"], keepdims=1), helper.make_node("Greater", ["last", "mean"], ["above"]),
             helper.make_node("NonZero", ["above"], ["places"]), helper.make_node("Transpose", ["places"], ["rows"], perm=[1, 0]),
             helper.make_node("GatherND", ["last", "rows"], ["chosen"])]
    save("computed_control", nodes, [value("x", FLOAT, ["n"]), value("limit", FLOAT, [])],
         [value("last", FLOAT, ["n"]), helper.make_tensor_sequence_value_info("kept", FLOAT, None), value("sums", FLOAT, ["k"]), value("y", FLOAT, ["m"]),
          value("total", FLOAT, []), value("squares", FLOAT, ["n"]), value("chosen", FLOAT, ["c"])],
         [constant("bias", np.float32(0.5)), constant("hundred", np.float32(100)), constant("nothing", np.float32(0)), constant("zero", np.array([0], np.int64))])


def computed_functions():
    """Functions with control flow that data decide: a Loop with a weight and an attribute of the call, an optional
    input that one call leaves out, an If in a function that a function calls. Names inside mean something else outside."""
    scale = helper.make_node("Constant", [], ["c"])
    reference = scale.attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "value_float", "scale", onnx.AttributeProto.FLOAT
    body = helper.make_graph(
        [helper.make_node("Mul", ["v", "w"], ["weighted"]), helper.make_node("Mul", ["weighted", "c"], ["scaled"]),
         helper.make_node("Clip", ["scaled", "", "top"], ["next"]), helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
         helper.make_node("Less", ["sum", "x"], ["again"])],
        "body", [value("i", INT64, []), value("go", TensorProto.BOOL, []), value("v", FLOAT, ["n"])],
        [value("again", TensorProto.BOOL, []), value("next", FLOAT, ["n"]), value("sum", FLOAT, [])])
    grow = helper.make_function(
        "local", "Grow", ["start", "x", "w", "top"], ["y", "sums"],
        [scale, helper.make_node("Loop", ["", "", "start"], ["last", "sums"], body=body),
         helper.make_node("Flip", ["last"], ["y"], domain="local")],
        [helper.make_opsetid("", 13), helper.make_opsetid("local", 1)], attribute_protos=[helper.make_attribute("scale", 2.0)])
    then = helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "then", [], [value("t", FLOAT, ["n"])])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["e"])], "else", [], [value("e", FLOAT, ["n"])])
    flip = helper.make_function(
        "local", "Flip", ["x"], ["y"],
        [helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0), helper.make_node("Constant", [], ["fifty"], value_float=50.0),
         helper.make_node("Greater", ["most", "fifty"], ["large"]), helper.make_node("If", ["large"], ["y"], then_branch=then, else_branch=other)],
        [helper.make_opsetid("", 13)])
    nodes = [helper.make_node("Grow", ["x", "limit", "v"], ["first", "sums"], domain="local"),
             helper.make_node("Abs", ["first"], ["w"]),
             helper.make_node("Grow", ["w", "limit", "v", "ninety"], ["second", ""], domain="local", scale=0.9)]
    save("computed_functions", nodes, [value("x", FLOAT, ["n"]), value("limit", FLOAT, [])],
         [value("first", FLOAT, ["n"]), value("sums", FLOAT, ["k"]), value("second", FLOAT, ["n"])],
         [constant("v", np.array([1.5], np.float32)), constant("ninety", np.float32(90))], functions=[grow, flip], domains=["local"])


def quantized():
    """Convolution and product between quantised values, as quantisers write them: QuantizeLinear, DequantizeLinear around real operators."""
    nodes, params = [], []

    def scale_and_zero(name, scale, zero, dtype):
        params.append(constant(name + "_scale", np.array(scale, np.float32)))
        params.append(constant(name + "_zero", np.array(zero, dtype)))
        return [name + "_scale", name + "_zero"]

    def through(x, name, scale, zero, dtype=np.uint8):
        pair = scale_and_zero(name, scale, zero, dtype)
        nodes.append(helper.make_node("QuantizeLinear", [x, *pair], [name + "_q"], name + "_quantize"))
        nodes.append(helper.make_node("DequantizeLinear", [name + "_q", *pair], [name], name + "_dequantize"))
        return name

    def weight(name, data, scale, zero, **attributes):
        params.append(constant(name + "_q", data))
        nodes.append(helper.make_node("DequantizeLinear", [name + "_q", *scale_and_zero(name, scale, zero, data.dtype)], [name], **attributes))
        return name

    numbers = np.random.default_rng(5)
    w_scale = (np.arange(8) + 1).astype(np.float32) / 512
    w = weight("w", numbers.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8), w_scale, np.zeros(8), axis=0)
    b = weight("b", numbers.integers(-900, 900, 8).astype(np.int32), np.float32(0.05) * w_scale, np.zeros(8), axis=0)
    v = weight("v", numbers.integers(-127, 128, (128, 5)).astype(np.int8), 0.01, 3)
    nodes.append(helper.make_node("Conv", [through("x", "a", 0.05, 120), w, b], ["c"], "conv", pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Relu", ["c"], ["r"]))
    nodes.append(helper.make_node("MaxPool", [through("r", "d", 0.1, 0)], ["m"], kernel_shape=[2, 2], strides=[2, 2]))
    nodes.append(helper.make_node("Flatten", [through("m", "e", 0.1, 0)], ["f"]))
    nodes.append(helper.make_node("MatMul", ["f", v], ["p"], "product"))
    through("p", "y", 1.5, 7, np.int8)
    save("quantized", nodes, [value("x", FLOAT, [1, 3, 8, 8])], [value("y", FLOAT, [1, 5])], params)


def quantized_microsoft():
    """What onnxruntime's quantisation writes besides ONNX's own operators; quantized_microsoft.npz has inputs and what onnxruntime makes of them."""
    rng = np.random.default_rng(17)
    scale, zero = (constant(n, np.array(v, d)) for n, v, d in (("s", 0.04, "float32"), ("z", 120, "uint8")))
    other_scale, other_zero = (constant(n, np.array(v, d)) for n, v, d in (("s2", 0.055, "float32"), ("z2", 131, "uint8")))
    weight = constant("w", rng.integers(-128, 128, (6, 5)).astype("int8"))
    weight_scale = constant("ws", np.linspace(0.01, 0.03, 5, dtype="float32"))
    weight_zero = constant("wz", np.zeros(5, "int8"))
    bias, real_bias = constant("b", rng.integers(-900, 900, 5).astype("int32")), constant("rb", rng.standard_normal(5).astype("float32"))
    one_scale, one_zero = constant("os", np.array(0.02, "float32")), constant("oz", np.array(3, "int8"))
    own = lambda op, inputs, output, **attrs: helper.make_node(op, inputs, [output], domain="com.microsoft", **attrs)  # noqa: E731
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("QuantizeLinear", ["x", "s2", "z2"], ["r"]),
             helper.make_node("QuantizeLinear", ["image", "s", "z"], ["i"]),
             own("QLinearAdd", ["q", "s", "z", "r", "s2", "z2", "s2", "z2"], "sum"), own("QLinearMul", ["q", "s", "z", "r", "s2", "z2", "s", "z"], "product"),
             own("QLinearSigmoid", ["q", "s", "z", "s", "z"], "gate"), own("QLinearLeakyRelu", ["q", "s", "z", "s2", "z2"], "leaky", alpha=0.2),
             own("QLinearConcat", ["s", "z", "q", "s", "z", "r", "s2", "z2"], "joined", axis=1),
             own("QLinearGlobalAveragePool", ["i", "s", "z", "s2", "z2"], "pooled", channels_last=0),
             own("QGemm", ["q", "s", "z", "w", "ws", "wz", "b", "s2", "z2"], "gemm", alpha=1.0),
             own("QGemm", ["q", "s", "z", "w", "ws", "wz", "b"], "real_gemm", alpha=0.5),
             own("MatMulIntegerToFloat", ["q", "w", "s", "os", "z", "oz", "rb"], "real_product"),
             own("DynamicQuantizeMatMul", ["x", "w", "os", "oz", "rb"], "dynamic")]
    byte, real = TensorProto.UINT8, FLOAT
    outputs = [value(n, byte, s) for n, s in (("sum", [4, 6]), ("product", [4, 6]), ("gate", [4, 6]), ("leaky", [4, 6]), ("joined", [4, 12]), ("pooled", [1, 3, 1, 1]), ("gemm", [4, 5]))]
    outputs += [value(n, real, [4, 5]) for n in ("real_gemm", "real_product", "dynamic")]
    save("quantized_microsoft", nodes, [value("x", FLOAT, [4, 6]), value("image", FLOAT, [1, 3, 4, 5])], outputs,
         [scale, zero, other_scale, other_zero, weight, weight_scale, weight_zero, bias, real_bias, one_scale, one_zero], domains=["com.microsoft"])


def tokens():
    """One layer of a text encoder, batch and length free: attention with a mask, and sums, means and largest values over the length."""
    rng = np.random.default_rng(5)
    heads, width = 2, 16

    def weight(name, *shape):
        return constant(name, (rng.standard_normal(shape) / 4).astype(np.float32))

    table = [weight("words", 40, width), weight("places", 64, width), constant("zero", np.array(0, np.int64)), constant("one", np.array(1, np.int64)),
             constant("zeros", np.array([0], np.int64)), constant("ones", np.array([1], np.int64)), constant("heads", np.array([0, 0, heads, width // heads], np.int64)),
             constant("merged", np.array([0, 0, width], np.int64)), constant("scale", np.array(0.35, np.float32)), constant("low", np.array(-1e4, np.float32)),
             constant("unit", np.array(1, np.float32)), constant("axes", np.array([1], np.int64)), constant("middle", np.array([1, 2], np.int64)), constant("last", np.array([2], np.int64))]
    make = helper.make_node
    nodes = [make("Shape", ["ids"], ["shape"]), make("Gather", ["shape", "one"], ["length"], axis=0), make("Unsqueeze", ["length", "zeros"], ["end"]),
             make("Slice", ["places", "zeros", "end", "zeros"], ["here"]), make("Gather", ["words", "ids"], ["word"]), make("Add", ["word", "here"], ["x"])]
    for n in "qkv":
        table.append(weight("w" + n, width, width))
        nodes += [make("MatMul", ["x", "w" + n], [n + "1"], name=n), make("Reshape", [n + "1", "heads"], [n + "2"]),
                  make("Transpose", [n + "2"], [n + "3"], perm=[0, 2, 3, 1] if n == "k" else [0, 2, 1, 3])]
    table.append(weight("wo", width, width))
    nodes += [make("Cast", ["mask"], ["m0"], to=FLOAT), make("Unsqueeze", ["m0", "middle"], ["m1"]), make("Sub", ["unit", "m1"], ["m2"]), make("Mul", ["m2", "low"], ["m3"]),
              make("MatMul", ["q3", "k3"], ["s0"]), make("Mul", ["s0", "scale"], ["s1"]), make("Add", ["s1", "m3"], ["s2"]), make("Softmax", ["s2"], ["p"], axis=-1),
              make("MatMul", ["p", "v3"], ["a0"]), make("Transpose", ["a0"], ["a1"], perm=[0, 2, 1, 3]), make("Reshape", ["a1", "merged"], ["a2"]),
              make("MatMul", ["a2", "wo"], ["a3"]), make("Add", ["a3", "x"], ["tokens"]),
              make("Unsqueeze", ["m0", "last"], ["w0"]), make("Mul", ["tokens", "w0"], ["w1"]), make("ReduceSum", ["w1", "axes"], ["w2"], keepdims=0),
              make("ReduceSum", ["w0", "axes"], ["w3"], keepdims=0), make("Div", ["w2", "w3"], ["pooled"]),
              make("ReduceMean", ["tokens"], ["mean"], axes=[1], keepdims=0), make("ReduceMax", ["tokens"], ["largest"], axes=[1], keepdims=0),
              make("Gather", ["tokens", "zero"], ["first"], axis=1)]
    save("tokens", nodes, [value(n, INT64, ["batch", "length"]) for n in ("ids", "mask")],
         [value("tokens", FLOAT, ["batch", "length", width])] + [value(n, FLOAT, ["batch", width]) for n in ("pooled", "mean", "largest", "first")], table)


def picture():
    """A small network of pictures of any height and width: strided, padded and depthwise convolutions, pools, a gate by the mean of each channel."""
    rng = np.random.default_rng(6)

    def weight(name, *shape):
        return constant(name, (rng.standard_normal(shape) / 4).astype(np.float32))

    make = helper.make_node
    weights = [weight("w0", 16, 3, 3, 3), weight("b0", 16), weight("w1", 16, 1, 5, 5), weight("w2", 16, 16, 1, 1), weight("w3", 24, 16, 3, 3), weight("w4", 24, 16, 1, 1),
               constant("pixels", np.array([0, 24, -1], np.int64))]
    nodes = [make("Conv", ["x", "w0", "b0"], ["c0"], strides=[2, 2], pads=[1, 1, 1, 1], name="stem"), make("Relu", ["c0"], ["r0"]),
             make("MaxPool", ["r0"], ["p0"], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]),
             make("Conv", ["p0", "w1"], ["c1"], group=16, pads=[2, 2, 2, 2], name="depthwise"), make("Add", ["c1", "r0"], ["s1"]),
             make("GlobalAveragePool", ["s1"], ["g0"]), make("Conv", ["g0", "w2"], ["g1"], name="gate"), make("HardSigmoid", ["g1"], ["g2"]), make("Mul", ["s1", "g2"], ["m1"]),
             make("Conv", ["m1", "w3"], ["c3"], strides=[2, 2], pads=[1, 1, 1, 1], name="down"), make("Conv", ["m1", "w4"], ["c4"], strides=[2, 2], name="shortcut"),
             make("Add", ["c3", "c4"], ["s3"]), make("AveragePool", ["s3"], ["map"], kernel_shape=[2, 2], strides=[1, 2]),
             make("GlobalAveragePool", ["map"], ["mean"]), make("GlobalMaxPool", ["map"], ["largest"])]
    save("picture", nodes, [value("x", FLOAT, [1, 3, "height", "width"])],
         [value("map", FLOAT, [1, 24, None, None]), value("mean", FLOAT, [1, 24, 1, 1]), value("largest", FLOAT, [1, 24, 1, 1])], weights)


def cache():
    """One step of a decoder: keys and values of the tokens before, and a new token's behind them."""
    rng = np.random.default_rng(7)
    heads, width = 2, 16

    def weight(name, *shape):
        return constant(name, (rng.standard_normal(shape) / 4).astype(np.float32))

    make = helper.make_node
    shapes = [constant("heads", np.array([0, 0, heads, width // heads], np.int64)), constant("merged", np.array([0, 0, width], np.int64)),
              constant("scale", np.array(0.35, np.float32))]
    nodes = []
    for n in "qkv":
        shapes.append(weight("w" + n, width, width))
        nodes += [make("MatMul", ["x", "w" + n], [n + "1"], name=n), make("Reshape", [n + "1", "heads"], [n + "2"]), make("Transpose", [n + "2"], [n + "3"], perm=[0, 2, 1, 3])]
    nodes += [make("Concat", ["past_k", "k3"], ["present_k"], axis=2), make("Concat", ["past_v", "v3"], ["present_v"], axis=2),
              make("Transpose", ["present_k"], ["kt"], perm=[0, 1, 3, 2]), make("MatMul", ["q3", "kt"], ["s0"]), make("Mul", ["s0", "scale"], ["s1"]),
              make("Softmax", ["s1"], ["p"], axis=-1), make("MatMul", ["p", "present_v"], ["a0"]), make("Transpose", ["a0"], ["a1"], perm=[0, 2, 1, 3]),
              make("Reshape", ["a1", "merged"], ["y"])]
    past = [value(n, FLOAT, ["batch", heads, "past", width // heads]) for n in ("past_k", "past_v")]
    present = [value(n, FLOAT, ["batch", heads, None, width // heads]) for n in ("present_k", "present_v")]
    save("cache", nodes, [value("x", FLOAT, ["batch", "new", width])] + past, [value("y", FLOAT, ["batch", "new", width])] + present, shapes)


def steps():
    """Control flow that values decide, over tensors of fixed shapes: nothing is left to compile when it runs."""
    rng = np.random.default_rng(8)
    weights = [constant(n, (rng.standard_normal((4, 4)) / 2).astype(np.float32)) for n in ("w1", "w2")]
    shape = [2, 4]
    then = helper.make_graph([helper.make_node("MatMul", ["x", "w1"], ["t"])], "then", [], [value("t", FLOAT, shape)])
    other = helper.make_graph([helper.make_node("Relu", ["x"], ["e"])], "else", [], [value("e", FLOAT, shape)])
    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "w2"], ["m"]), helper.make_node("Tanh", ["m"], ["next"]), helper.make_node("Identity", ["go"], ["again"])],
        "body", [value("step", INT64, []), value("go", TensorProto.BOOL, []), value("state", FLOAT, shape)],
        [value("again", TensorProto.BOOL, []), value("next", FLOAT, shape)])
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Greater", ["sum", "zero"], ["positive"]),
             helper.make_node("If", ["positive"], ["part"], then_branch=then, else_branch=other), helper.make_node("Loop", ["trips", "", "part"], ["y"], body=body)]
    save("steps", nodes, [value("x", FLOAT, shape), value("trips", INT64, [])], [value("y", FLOAT, shape)], weights + [constant("zero", np.array(0, np.float32))])


def switched():
    """An input that chooses between two layers of the same sizes."""
    def side(name, weight, act):
        return helper.make_graph([helper.make_node("MatMul", ["x", weight], [name + "_p"]), helper.make_node(act, [name + "_p"], [name])],
                                 name, [], [value(name, FLOAT, [2, 3])])
    nodes = [helper.make_node("If", ["first"], ["h"], then_branch=side("a", "wa", "Relu"), else_branch=side("b", "wb", "Tanh")),
             helper.make_node("Add", ["h", "h"], ["y"])]
    weights = [constant(n, (np.arange(12, dtype=np.float32).reshape(4, 3) - shift) / 8) for n, shift in (("wa", 5), ("wb", 2))]
    save("switched", nodes, [value("x", FLOAT, [2, 4]), value("first", TensorProto.BOOL, [])], [value("y", FLOAT, [2, 3])], weights)


def last_token():
    """A model that cannot leave its length free: it picks the last place, and reads its input from both ends."""
    nodes = [helper.make_node("Gather", ["x", "end"], ["last"], axis=1), helper.make_node("CumSum", ["x", "axis"], ["sums"], reverse=1)]
    save("last_token", nodes, [value("x", FLOAT, ["batch", "length"])], [value("last", FLOAT, ["batch"]), value("sums", FLOAT, ["batch", "length"])],
         [constant("end", np.array(-1, np.int64)), constant("axis", np.array(1, np.int64))])


def far_below_zero():
    """Activations whose results are tiny where their arguments are far below zero, in float32 and float64."""
    kinds = {"x": FLOAT, "d": TensorProto.DOUBLE}
    nodes = [helper.make_node(op, [n], [op.lower() + "_" + n]) for op in ("Softplus", "Mish") for n in kinds]
    save("far_below_zero", nodes, [value(n, k, [40]) for n, k in kinds.items()], [value(o.output[0], kinds[o.input[0]], [40]) for o in nodes], opset=18)


def typed_inputs():
    """Inputs of several dtypes for --constant, and one that declares more elements than 64 bits count."""
    kinds = {"whole": (INT64, [2]), "large": (TensorProto.UINT64, [1]), "byte": (TensorProto.UINT8, [2]), "real": (FLOAT, [1]),
             "half": (TensorProto.FLOAT16, [1]), "truth": (TensorProto.BOOL, [1])}
    nodes = [helper.make_node("Identity", [name], [name + "_out"]) for name in kinds]
    save("typed_inputs", nodes, [value(n, *k) for n, k in kinds.items()], [value(n + "_out", *k) for n, k in kinds.items()])
    save("huge_input", [helper.make_node("Shape", ["huge"], ["y"])], [value("huge", FLOAT, [1 << 40, 1 << 40])], [value("y", INT64, [2])])


def main():
    far_below_zero()
    typed_inputs()
    quantized()
    quantized_microsoft()
    computed_functions()
    free_sizes()
    tokens()
    picture()
    cache()
    steps()
    switched()
    last_token()
    texts_and_lists()
    computed_control()
    dtypes()
    shape_chain()
    control()
    attributes()
    external()
    convnet()
    shape_input()


if __name__ == "__main__":
    main()
