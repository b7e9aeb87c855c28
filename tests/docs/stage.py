# SPDX-License-Identifier: Apache-2.0
"""The files that the documentation's snippets name: small networks with the inputs of those a reader would have."""
import importlib.util
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]


def possible():
    return importlib.util.find_spec("onnx") is not None


def model(name, inputs, nodes, outputs, weights=()):
    from onnx import TensorProto, helper, numpy_helper

    kinds = {"f": TensorProto.FLOAT, "i": TensorProto.INT64}
    graph = helper.make_graph(
        [helper.make_node(*node[:3], **(node[3] if len(node) > 3 else {})) for node in nodes], name,
        [helper.make_tensor_value_info(n, kinds[k], shape) for n, k, shape in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(value, n) for n, value in weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made


def classifier(name, shape, classes=10, given="input"):
    """A convolution, the mean of each channel, and a product: pictures to scores."""
    import numpy as np

    rng = np.random.default_rng(1)
    return model(name, [(given, "f", shape)],
                 [("Conv", [given, "w"], ["c"], {"strides": [4, 4]}), ("Relu", ["c"], ["r"]), ("GlobalAveragePool", ["r"], ["p"]),
                  ("Flatten", ["p"], ["v"]), ("Gemm", ["v", "m"], ["scores"])], ["scores"],
                 [("w", rng.standard_normal((8, 3, 3, 3)).astype("float32")), ("m", rng.standard_normal((8, classes)).astype("float32"))])


def encoder(name, inputs, sizes):
    """Sums of embeddings of integer inputs."""
    import numpy as np

    table = np.random.default_rng(2).standard_normal((100, 8)).astype("float32")
    nodes = [("Gather", ["table", n], ["e" + n]) for n in inputs]
    nodes.append(("Sum", ["e" + n for n in inputs], ["scores"]))
    return model(name, [(n, "i", sizes) for n in inputs], nodes, ["scores"], [("table", table)])


def make(folder):
    """Writes the files into `folder`."""
    import numpy as np
    import onnx

    rng = np.random.default_rng(0)
    picture = [1, 3, 224, 224]
    ids = ["input_ids", "attention_mask", "token_type_ids"]
    models = {
        "model.onnx": classifier("model", picture, 1000), "net.onnx": classifier("net", picture), "resnet18.onnx": classifier("resnet18", picture, 1000),
        "rec.onnx": classifier("rec", [1, 3, 48, "width"], given="x"), "bert.onnx": encoder("bert", ["ids", "mask"], [1, 7]), "minilm.onnx": encoder("minilm", ids, ["batch", "length"]),
        "resize.onnx": model("resize", [("x", "f", [1, 3, 320, 320]), ("sizes", "i", [4])],
                             [("Resize", ["x", "", "", "sizes"], ["scores"], {"mode": "linear"})], ["scores"]),
    }
    for name, made in models.items():
        onnx.save(made, folder / name)
    for name, source in (("net.relay", "smallnet.relay"), ("net.params", "smallnet.params")):
        shutil.copy(ROOT / "tests/data/classic" / source, folder / name)
    shutil.copy(ROOT / "tests/data/torch/cache.pt2", folder / "net.pt2")
    np.save(folder / "line.npy", rng.random((1, 3, 48, 320), "float32"))
    np.save(folder / "ids.npy", rng.integers(0, 100, (1, 7)))
    np.savez(folder / "sentences.npz", **{n: rng.integers(0, 100, (2, 5)) for n in ids})
    (folder / "imagenet.txt").write_text("".join(f"class {i}\n" for i in range(1000)), encoding="utf-8")
    # Pictures are recognised by what they hold, not by their name.
    (folder / "cat.jpg").write_bytes(b"P6 300 200 255\n" + rng.integers(0, 256, 300 * 200 * 3).astype("uint8").tobytes())
    (folder / "script.py").write_text("import tvm\nfrom tvm import relay\nprint(relay.nn.relu(relay.var('x', shape=(1, 2))))\n", encoding="utf-8")
