# SPDX-License-Identifier: Apache-2.0
"""Random cases of com.microsoft's searches, whose decoder is a subgraph, for beside_onnxruntime.py."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from cases_microsoft import Case, chance, pick, real, size

TABLE = {}
PLACES, HEADS, WIDTH, PAD = 32, 2, 4, 0


def decoder(weights):
    """Words and their places go into a cache of one layer; what the mask leaves of its sum gives the scores."""
    node, all_widths = helper.make_node, HEADS * WIDTH
    nodes = [node("Gather", ["words", "input_ids"], ["word"]), node("Gather", ["places", "position_ids"], ["place"]), node("Add", ["word", "place"], ["x"]),
             node("Reshape", ["x", "apart"], ["heads"]), node("Transpose", ["heads"], ["turned"], perm=[0, 2, 1, 3]), node("Unsqueeze", ["turned", "first"], ["once"]),
             node("Concat", ["once", "once"], ["both"], axis=0), node("Concat", ["past_0", "both"], ["present_0"], axis=3), node("Gather", ["present_0", "one"], ["keys"], axis=0),
             node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT), node("Unsqueeze", ["mask", "outer"], ["wide"]), node("Mul", ["keys", "wide"], ["seen"]),
             node("ReduceSum", ["seen", "two"], ["sum"], keepdims=1), node("Transpose", ["sum"], ["back"], perm=[0, 2, 1, 3]), node("Reshape", ["back", "flat"], ["row"]),
             node("Tanh", ["row"], ["bent"]), node("Add", ["bent", "x"], ["y"]), node("MatMul", ["y", "out"], ["logits"])]
    constants = {"words": weights[0], "places": weights[1], "out": weights[2], "apart": np.array([0, 0, HEADS, WIDTH]), "first": np.array([0]), "one": np.array(1), "outer": np.array([1, 3]),
                 "two": np.array([2]), "flat": np.array([0, 1, all_widths])}
    value, cache = helper.make_tensor_value_info, lambda name, n: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, "batch", HEADS, n, WIDTH])
    inputs = [value("input_ids", TensorProto.INT32, ["batch", "new"]), value("position_ids", TensorProto.INT32, ["batch", "new"]), value("attention_mask", TensorProto.INT32, ["batch", "all"]), cache("past_0", "before")]
    outputs = [value("logits", TensorProto.FLOAT, ["batch", "new", weights[2].shape[1]]), cache("present_0", "all")]
    return helper.make_graph(nodes, "decoder", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in constants.items()])


def searched(weights, ids, longest, shortest, end, penalty, allowed, allowed_first, mask):
    """(words, whether every text ended before the last place)"""
    words, places, out = weights
    length, count = ids.shape[1], (ids != PAD).cumsum(1)
    mask = (ids != PAD).astype(np.int32) if mask is None else mask
    found = np.full((len(ids), longest), PAD, np.int32)
    found[:, :length] = ids
    done, cache, new, at, following = np.zeros(len(ids), bool), np.zeros((len(ids), 0, HEADS * WIDTH), np.float32), ids, np.where(ids != PAD, count - 1, 0), count[:, -1:]
    for place in range(length, longest):
        x = words[new] + places[at]
        cache = np.concatenate([cache, x], 1)
        scores = ((np.tanh((cache * mask[:, :, None]).sum(1, keepdims=True)) + x) @ out)[:, -1]
        for line, text in zip(scores, found[:, :place]):
            line[text] = np.where(line[text] < 0, line[text] * penalty, line[text] / penalty)
        scores[:, [] if allowed is None else allowed == 0] = -3e38
        if allowed_first is not None and place == length:
            scores[allowed_first == 0] = -3e38
        if place < shortest and end < scores.shape[1]:
            scores[:, end] = -3e38
        best = scores.argmax(1)
        done |= best == end
        found[:, place] = np.where(done, PAD, best)
        if done.all():
            return found, place + 1 < longest
        new, at, following, mask = found[:, place:place + 1], following, following + 1, np.concatenate([mask, np.ones((len(ids), 1), np.int32)], 1)
    return found, False


def greedy(r):
    count, batch, length, longest = size(r, 6, 13), size(r, 1, 3), size(r, 1, 4), size(r, 6, 14)
    weights = [real(r, count, HEADS * WIDTH), real(r, PLACES, HEADS * WIDTH), real(r, HEADS * WIDTH, count)]
    ids = np.asarray(r.integers(1, count, (batch, length)), np.int32)
    for row in ids:
        row[:size(r, 0, length - 1) if chance(r, 0.4) else 0] = PAD
    end, shortest, penalty = size(r, 0, count), size(r, 0, longest), pick(r, [1.0, 1.3, 0.8])
    allowed = (np.arange(count) % 3 != 1).astype(np.int32) if chance(r) else None
    allowed_first = np.maximum(r.integers(0, 2, (batch, count)), np.arange(count) == 2).astype(np.int32) if chance(r) else None
    mask = np.maximum(r.integers(0, 2, (batch, length)), np.arange(length) == length - 1).astype(np.int32) if chance(r, 0.4) else None
    found, ended = searched(weights, ids, longest, shortest, end, np.float32(penalty), allowed, allowed_first, mask)
    given = [ids, np.array([longest], np.int32), np.array([shortest], np.int32), np.array([penalty], np.float32), allowed, allowed_first, mask]
    # Behind the end of all texts onnxruntime leaves the memory as it was.
    return Case("GreedySearch", given, {"decoder": decoder(weights), "eos_token_id": end, "pad_token_id": PAD}, constants=pick(r, [(1, 2, 3, 4), ()]), expected=[found] if ended else None)


TABLE["GreedySearch"] = greedy
