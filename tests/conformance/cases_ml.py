# SPDX-License-Identifier: Apache-2.0
"""Random cases of ai.onnx.ml's operators for beside_onnxruntime.py."""
import numpy as np
from onnx import numpy_helper

from cases_microsoft import Case, chance, pick, real, size

ML = "ai.onnx.ml"
TABLE = {}
TRANSFORMS = ["NONE", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def operator(name):
    def note(make):
        TABLE[name] = make
        return make
    return note


def floats(r, *shape):
    return [float(np.float32(v)) for v in r.standard_normal(shape).ravel()]


def forest(r, features, side, targets, weight=lambda v: v):
    """Attributes of random trees; some are a leaf alone. A leaf may speak of several targets, or of none."""
    a = {k: [] for k in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids",
                         f"{side}_treeids", f"{side}_nodeids", f"{side}_ids", f"{side}_weights")}
    modes = pick(r, [["BRANCH_LEQ"], ["BRANCH_LT"], ["BRANCH_LEQ", "BRANCH_GT", "BRANCH_GTE", "BRANCH_LT"]])
    for tree in range(size(r, 1, 4)):
        count = [0]

        def grow(depth):
            node = count[0]
            count[0] += 1
            at = len(a["nodes_nodeids"])
            leaf = depth == 0 or chance(r, 0.2)
            for key, value in (("treeids", tree), ("nodeids", node), ("featureids", 0 if leaf else size(r, 0, features - 1)), ("values", 0.0 if leaf else float(np.float32(r.standard_normal()))),
                               ("modes", "LEAF" if leaf else pick(r, modes)), ("truenodeids", 0), ("falsenodeids", 0)):
                a[f"nodes_{key}"].append(value)
            if leaf:
                for target in sorted({size(r, 0, targets - 1) for _ in range(size(r, 1, 2))}):
                    for key, value in (("treeids", tree), ("nodeids", node), ("ids", target), ("weights", weight(float(np.float32(r.standard_normal()))))):
                        a[f"{side}_{key}"].append(value)
            else:
                a["nodes_truenodeids"][at], a["nodes_falsenodeids"][at] = grow(depth - 1), grow(depth - 1)
            return node

        grow(size(r, 1, 4))
    return a


@operator("TreeEnsembleRegressor")
def regressor(r):
    features, targets = size(r, 1, 6), size(r, 1, 3)
    a = forest(r, features, "target", targets)
    a |= {"n_targets": targets, "aggregate_function": pick(r, ["SUM", "SUM", "AVERAGE"])}
    a["post_transform"] = pick(r, TRANSFORMS if targets > 1 else ["NONE"])  # onnxruntime leaves a single score as it is
    if chance(r):  # onnxruntime leaves them out where no leaf speaks; the reference, which has no transforms, does not
        a |= {"base_values": floats(r, targets), "post_transform": "NONE"}
    return Case("TreeEnsembleRegressor", [real(r, size(r, 1, 9), features)], a, domain=ML)


@operator("TreeEnsembleClassifier")
def classifier(r):
    features, classes = size(r, 1, 6), size(r, 2, 4)
    two = classes == 2 and chance(r, 0.7)
    a = forest(r, features, "class", 1 if two else classes, abs if chance(r) else lambda v: v)
    if two:
        a["class_ids"] = [size(r, 0, 1)] * len(a["class_ids"])
    a |= {"classlabels_int64s": [7 * i - 3 for i in range(classes)], "post_transform": pick(r, ["NONE", "NONE", "LOGISTIC"] if two else TRANSFORMS)}
    return Case("TreeEnsembleClassifier", [real(r, size(r, 1, 9), features)], a, domain=ML, outputs=(0, 1))


@operator("TreeEnsemble")
def tree_ensemble(r):
    """Nodes and leaves in lists of their own; a tree of one leaf is a node with two such children."""
    features, targets, dtype = size(r, 1, 6), size(r, 1, 3), pick(r, [np.float32, np.float32, np.float64])
    nodes, leaves, roots, members = [], [], [], []
    modes = pick(r, [[0], [1], [0, 1, 2, 3], [0, 4, 5], [0, 6]])

    def leaf():
        leaves.append((size(r, 0, targets - 1), float(np.float32(r.standard_normal()))))
        return len(leaves) - 1, 1

    def grow(depth):
        if depth == 0 or chance(r, 0.2):
            return leaf()
        at, mode = len(nodes), pick(r, modes)
        nodes.append(None)
        if mode == 6:
            members.extend([*{float(v) for v in r.integers(-2, 3, size(r, 1, 3))}, float("nan")])
        yes, no = grow(depth - 1), grow(depth - 1)
        nodes[at] = (size(r, 0, features - 1), mode, 0.0 if mode == 6 else float(pick(r, [-1, 0, 1])) if mode > 3 else float(np.float32(r.standard_normal())), yes, no, size(r, 0, 1))
        return at, 0

    for _ in range(size(r, 1, 4)):
        root, is_leaf = grow(size(r, 1, 4))
        if is_leaf:
            nodes.append((0, 0, 0.0, (root, 1), (root, 1), 0))
            root = len(nodes) - 1
        roots.append(root)
    tensor = lambda name, values, kind=dtype: numpy_helper.from_array(np.array(values, kind), name)
    a = {"nodes_featureids": [n[0] for n in nodes], "nodes_modes": tensor("modes", [n[1] for n in nodes], np.uint8), "nodes_splits": tensor("splits", [n[2] for n in nodes]),
         "nodes_truenodeids": [n[3][0] for n in nodes], "nodes_trueleafs": [n[3][1] for n in nodes], "nodes_falsenodeids": [n[4][0] for n in nodes], "nodes_falseleafs": [n[4][1] for n in nodes],
         "nodes_missing_value_tracks_true": [n[5] for n in nodes], "leaf_targetids": [t for t, _ in leaves], "leaf_weights": tensor("weights", [w for _, w in leaves]),
         "tree_roots": roots, "n_targets": targets, "aggregate_function": size(r, 0, 3)}  # onnxruntime takes softmax, 1, for logistic, 2, and the other way round
    if members:
        a["membership_values"] = tensor("members", members)
    x = np.asarray(r.integers(-2, 3, (size(r, 1, 9), features)) if modes[-1] > 3 else r.standard_normal((size(r, 1, 9), features)), dtype)
    x[r.random(x.shape) < 0.1] = np.nan
    return Case("TreeEnsemble", [x], a, domain=ML, version=5)


@operator("LinearRegressor")
def linear_regressor(r):
    features, targets = size(r, 1, 6), size(r, 1, 3)
    a = {"coefficients": floats(r, targets, features), "targets": targets, "post_transform": pick(r, ["NONE", "NONE", "LOGISTIC", "SOFTMAX"])}
    if chance(r):
        a["intercepts"] = floats(r, targets)
    x = real(r, size(r, 1, 9), features)
    expected = None
    if targets == 1 and a["post_transform"] != "NONE":  # onnxruntime leaves a single score as it is; the text has no such exception
        scores = x.astype(np.float64) @ np.array(a["coefficients"])[:, None] + a.get("intercepts", 0.0)
        expected = [(1 / (1 + np.exp(-scores)) if a["post_transform"] == "LOGISTIC" else np.ones_like(scores)).astype(np.float32)]
    return Case("LinearRegressor", [x], a, domain=ML, expected=expected)


@operator("LinearClassifier")
def linear_classifier(r):
    features, classes = size(r, 1, 6), size(r, 2, 4)
    rows = 1 if classes == 2 and chance(r) else classes
    a = {"coefficients": floats(r, rows, features), "intercepts": floats(r, rows), "classlabels_ints": [7 * i - 3 for i in range(classes)], "post_transform": pick(r, ["NONE", "LOGISTIC"] if rows == 1 else ["NONE", "LOGISTIC", "SOFTMAX"])}
    return Case("LinearClassifier", [real(r, size(r, 1, 9), features)], a, domain=ML, outputs=(0, 1))


def kernel(r):
    """Attributes of the kernel function; powers are whole, since bases may be negative."""
    return {"kernel_type": pick(r, ["LINEAR", "POLY", "RBF", "SIGMOID"]), "kernel_params": [0.5, 0.25, float(size(r, 1, 3))]}


def svm_rows(r, features):
    """Rows in each of the dtypes; a single row may be a vector."""
    x = real(r, size(r, 1, 9), features)
    return pick(r, [x, x, x.astype(np.float64), np.round(3 * x).astype(np.int64), np.round(3 * x).astype(np.int32)])


@operator("SVMRegressor")
def svm(r):
    features, count = size(r, 1, 6), size(r, 0, 5)
    a = {"coefficients": floats(r, count or features), "n_supports": count, "rho": floats(r, 1)} | kernel(r)
    if count:
        a["support_vectors"] = floats(r, count, features)
    if chance(r, 0.3):
        a["one_class"] = 1
    return Case("SVMRegressor", [real(r, size(r, 1, 9), features)], a, domain=ML, tolerance=1e-4)


@operator("SVMClassifier")
def svm_classifier(r):
    features, classes = size(r, 1, 6), size(r, 2, 5)
    a = {"classlabels_ints": [7 * i - 3 for i in range(classes)]} if chance(r) else {"classlabels_strings": [f"class {i}" for i in range(classes)]}
    if chance(r, 0.2):  # a linear model
        weights = floats(r, classes, features)
        a |= {"coefficients": [abs(w) for w in weights] if chance(r) else weights, "rho": floats(r, 1), "post_transform": pick(r, TRANSFORMS)} | kernel(r)
        return Case("SVMClassifier", [svm_rows(r, features)], a, domain=ML, outputs=(0, 1), tolerance=1e-4)
    counts, pairs = [size(r, 1, 3) for _ in range(classes)], classes * (classes - 1) // 2
    a |= {"vectors_per_class": counts, "support_vectors": floats(r, sum(counts), features), "coefficients": floats(r, classes - 1, sum(counts)), "rho": floats(r, pairs)} | kernel(r)
    if chance(r):
        a |= {"prob_a": [-abs(v) for v in floats(r, pairs)], "prob_b": floats(r, pairs)}
    a["post_transform"] = pick(r, TRANSFORMS)
    return Case("SVMClassifier", [svm_rows(r, features)], a, domain=ML, outputs=(0, 1), tolerance=1e-4)


WORDS = ["zero", "one", "two", "three", "", "ünf", "a longer text of several words"]


def words(r, *shape):
    return np.array([pick(r, WORDS) for _ in range(int(np.prod(shape)))], object).reshape(shape)


@operator("CategoryMapper")
def category_mapper(r):
    count = size(r, 1, 5)
    a = {"cats_strings": WORDS[:count], "cats_int64s": [5 * i - 2 for i in range(count)]}
    if chance(r):
        a |= {"default_string": "none", "default_int64": 77}
    shape = [size(r, 1, 4) for _ in range(size(r, 1, 3))]
    return Case("CategoryMapper", [words(r, *shape) if chance(r) else np.asarray(r.integers(-2, 25, shape), np.int64)], a, domain=ML)


@operator("LabelEncoder")
def label_encoder(r):
    count = size(r, 1, 5)
    sides = {"strings": (WORDS[:count], lambda *s: words(r, *s)), "int64s": ([5 * i - 2 for i in range(count)], lambda *s: np.asarray(r.integers(-2, 25, s), np.int64)),
             "floats": ([0.5 * i for i in range(count)], lambda *s: np.asarray(0.5 * r.integers(0, 9, s), np.float32))}
    source, target = pick(r, [("strings", "int64s"), ("int64s", "strings"), ("floats", "strings"), ("strings", "floats"), ("int64s", "floats"), ("floats", "int64s")])
    a = {f"keys_{source}": sides[source][0], f"values_{target}": sides[target][0]}
    if chance(r):
        a |= {"strings": {"default_string": "none"}, "int64s": {"default_int64": 77}, "floats": {"default_float": 7.5}}[target]
    return Case("LabelEncoder", [sides[source][1](*[size(r, 1, 4) for _ in range(size(r, 1, 3))])], a, domain=ML)


@operator("DictVectorizer")
def dict_vectorizer(r):
    of_text = chance(r)
    vocabulary = WORDS[:size(r, 1, 6)] if of_text else [3 * i - 1 for i in range(size(r, 1, 6))]
    keys = sorted({pick(r, WORDS) if of_text else size(r, -1, 12) for _ in range(size(r, 1, 6))})
    kinds = {np.float32: lambda: np.float32(r.standard_normal()), np.float64: lambda: np.float64(r.standard_normal())}
    kinds |= {np.int64: lambda: np.int64(size(r, -9, 9))} if of_text else {object: lambda: pick(r, WORDS)}
    kind = pick(r, list(kinds))
    given = {k if of_text else np.int64(k): kinds[kind]() for k in keys}
    expected = None if kind is np.float32 else [np.array([[given.get(k, "" if kind is object else 0) for k in vocabulary]], kind)]
    return Case("DictVectorizer", [given], {"string_vocabulary" if of_text else "int64_vocabulary": vocabulary}, domain=ML, expected=expected)


@operator("CastMap")
def cast_map(r):
    keys = [int(k) for k in r.permutation(12)[:size(r, 1, 6)]]
    of_text, to = chance(r), pick(r, ["TO_FLOAT", "TO_INT64", "TO_STRING"])
    value = (lambda: pick(r, ["1", "-2.5", "300", " 7"])) if of_text else (lambda: np.float32(10 * r.standard_normal()))
    given, width = {np.int64(k): value() for k in keys}, size(r, 1, 14) if chance(r) else None
    a = {"cast_to": to} | ({"map_form": "SPARSE", "max_map": width} if width else {"map_form": "DENSE"})
    expected = None
    if of_text:
        cast, nothing, dtype = {"TO_FLOAT": (float, 0, np.float32), "TO_INT64": (lambda s: int(float(s)), 0, np.int64), "TO_STRING": (str, "0.f", object)}[to]
        row = [cast(given[k]) if k in given else nothing for k in range(width)] if width else [cast(given[k]) for k in sorted(given)]
        expected = [np.array([row], dtype)]
    return Case("CastMap", [given], a, domain=ML, expected=expected)


@operator("ZipMap")
def zip_map(r):
    classes = size(r, 1, 6)
    labels = {"classlabels_int64s": [7 * i - 3 for i in range(classes)]} if chance(r) else {"classlabels_strings": [f"class {i}" for i in range(classes)]}
    return Case("ZipMap", [real(r, size(r, 1, 9), classes)], labels, domain=ML)


@operator("Normalizer")
def normalizer(r):
    return Case("Normalizer", [real(r, size(r, 1, 9), size(r, 1, 9))], {"norm": pick(r, ["MAX", "L1", "L2"])}, domain=ML)


@operator("Imputer")
def imputer(r):
    columns = size(r, 1, 9)
    values = floats(r, columns if chance(r) else 1)
    x = real(r, size(r, 1, 9), columns)
    x[r.random(x.shape) < 0.3] = np.nan
    return Case("Imputer", [x], {"imputed_value_floats": values, "replaced_value_float": float("nan")}, domain=ML)


@operator("OneHotEncoder")
def one_hot(r):
    return Case("OneHotEncoder", [np.asarray(r.integers(0, 6, [size(r, 1, 5) for _ in range(size(r, 1, 2))]), np.int64)], {"cats_int64s": [0, 2, 3, 5], "zeros": 1}, domain=ML)


@operator("FeatureVectorizer")
def vectorizer(r):
    rows, widths = size(r, 1, 5), [size(r, 1, 4) for _ in range(size(r, 1, 3))]
    return Case("FeatureVectorizer", [real(r, rows, w) for w in widths], {"inputdimensions": widths}, domain=ML)


@operator("Scaler")
def scaler(r):
    columns = size(r, 1, 9)
    n = columns if chance(r) else 1
    return Case("Scaler", [real(r, size(r, 1, 9), columns)], {"offset": floats(r, n), "scale": floats(r, n)}, domain=ML)


@operator("Binarizer")
def binarizer(r):
    return Case("Binarizer", [real(r, size(r, 1, 9), size(r, 1, 9))], {"threshold": 0.25}, domain=ML)


@operator("ArrayFeatureExtractor")
def extractor(r):
    columns = size(r, 1, 9)
    return Case("ArrayFeatureExtractor", [real(r, size(r, 1, 5), columns), np.asarray(r.integers(0, columns, size(r, 1, 5)), np.int64)], {}, domain=ML)
