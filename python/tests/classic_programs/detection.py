# SPDX-License-Identifier: Apache-2.0
"""topi.vision and topi.unique, against numpy and against the compiler's own operators."""
import numpy as np
import tvm
import tvm.topi.testing
from harness import evaluate, numbers, program, raises
from tvm import relay, te, topi


def run(outputs, inputs, arrays, schedule=None):
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    s = te.create_schedule([o.op for o in outputs]) if schedule is None else schedule(outputs if len(outputs) > 1 else outputs[0])
    function = tvm.build(s, [*inputs, *outputs], "llvm")
    results = [tvm.nd.empty(tuple(int(d) for d in o.shape), o.dtype) for o in outputs]
    function(*[tvm.nd.array(a) for a in arrays], *results)
    return [r.numpy() for r in results]


def placeholders(*arrays):
    return [te.placeholder(a.shape, str(a.dtype), name=f"p{i}") for i, a in enumerate(arrays)]


@program(*[(s, c, n) for s, c, n in ((True, True, 40), (True, False, 1), (False, True, 40), (False, False, 9))])
def different_elements(is_sorted, counts, size):
    data = np.random.RandomState(size).randint(0, 7, size).astype("int32")
    (d,) = placeholders(data)
    found = run(topi.unique(d, is_sorted=is_sorted, return_counts=counts), [d], [data])
    want, first, inverse, often = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    if not is_sorted:
        order = np.argsort(first)
        want, first, often, inverse = want[order], first[order], often[order], np.argsort(order)[inverse]
    many = found[3][0]
    assert many == len(want)
    np.testing.assert_array_equal(found[0][:many], want)
    np.testing.assert_array_equal(found[1][:many], first)
    np.testing.assert_array_equal(found[2], inverse)
    if counts:
        np.testing.assert_array_equal(found[4][:many], often)


def some_boxes(seed, batches=2, count=8):
    source = np.random.RandomState(seed)
    low = source.uniform(0, 60, (batches, count, 2))
    boxes = np.concatenate([source.randint(0, 2, (batches, count, 1)), np.stack([source.permutation(count) + 1 for _ in range(batches)])[..., None] / (count + 1.0), low,
                            low + source.uniform(15, 50, (batches, count, 2))], 2)
    return boxes.astype("float32"), np.full(batches, count - 1, "int32"), np.tile(np.arange(count, dtype="int32"), (batches, 1))


@program(*[(seed, force, top, most, indices) for seed, (force, top, most) in enumerate([(False, -1, -1), (True, -1, 3), (False, 4, 2)]) for indices in (True, False)])
def suppressed_boxes(seed, force, top, most, indices):
    boxes, valid, places = some_boxes(seed)
    inputs = placeholders(boxes, valid, places)
    settings = dict(force_suppress=force, top_k=top, coord_start=2, score_index=1, id_index=0, return_indices=indices, invalid_to_bottom=True)
    found = run(topi.vision.non_max_suppression(*inputs, most, 0.3, **settings), inputs, [boxes, valid, places], topi.generic.schedule_nms)
    variables = [relay.var(n, shape=a.shape, dtype=str(a.dtype)) for n, a in zip("abc", (boxes, valid, places))]
    made = relay.vision.non_max_suppression(*variables, relay.const(most), relay.const(0.3), **settings)
    want = evaluate(relay.Function(variables, made.astuple() if indices else made), boxes, valid, places)
    for a, b in zip(found, want if indices else [want]):
        np.testing.assert_allclose(a, b)


@program(0.0, 0.5, 2.0)
def boxes_that_count(threshold):
    boxes, *_ = some_boxes(5)
    (b,) = placeholders(boxes)
    counts, kept, places = run(topi.vision.get_valid_counts(b, threshold, 0, 1), [b], [boxes])
    for n in range(len(boxes)):
        rows = np.nonzero(boxes[n, :, 1] > threshold)[0]
        assert counts[n] == len(rows)
        np.testing.assert_array_equal(kept[n, :len(rows)], boxes[n, rows])
        np.testing.assert_array_equal(places[n], np.concatenate([rows, np.full(boxes.shape[1] - len(rows), -1)]))
        assert (kept[n, len(rows):] == -1).all()


REGIONS = np.array([[0, 1, 2, 30, 40], [1, 10, 10, 12, 13], [0, 0, 0, 63, 63], [1, 20, 5, 50, 61]], "float32")


@program(*[(mode, ratio, layout) for mode in ("avg", "max") for ratio, layout in ((2, "NCHW"), (-1, "NHWC"))])
def aligned_regions(mode, ratio, layout):
    data = numbers(*((2, 3, 16, 16) if layout == "NCHW" else (2, 16, 16, 3)))
    inputs = placeholders(data, REGIONS)
    function = topi.vision.rcnn.roi_align_nchw if layout == "NCHW" else topi.vision.rcnn.roi_align_nhwc
    (found,) = run(function(*inputs, pooled_size=(5, 4), spatial_scale=0.25, mode=mode.encode(), sample_ratio=ratio), inputs, [data, REGIONS], topi.generic.schedule_roi_align)
    reference = tvm.topi.testing.roi_align_nchw_python if layout == "NCHW" else tvm.topi.testing.roi_align_nhwc_python
    np.testing.assert_allclose(found, reference(data, REGIONS, (5, 4), 0.25, ratio, mode.encode()), rtol=1e-4, atol=1e-5)


@program
def pooled_regions():
    data = numbers(2, 3, 16, 16)
    inputs = placeholders(data, REGIONS)
    (found,) = run(topi.vision.rcnn.roi_pool_nchw(*inputs, pooled_size=6, spatial_scale=0.25), inputs, [data, REGIONS], topi.generic.schedule_roi_pool)
    np.testing.assert_allclose(found, tvm.topi.testing.roi_pool_nchw_python(data, REGIONS, 6, 0.25), rtol=1e-5)
    raises(ValueError, topi.vision.rcnn.proposal, *inputs)
    raises(ValueError, topi.vision.rcnn.roi_align_nchw, *inputs, (2, 2), 1.0, "median")


@program(2, 4)
def reorganised(stride):
    data = numbers(2, 16, 8, 8)
    (d,) = placeholders(data)
    (found,) = run(topi.vision.reorg(d, stride), [d], [data], topi.generic.schedule_reorg)
    np.testing.assert_array_equal(found, tvm.topi.testing.reorg_python(data, stride))


@program(((1,), (1,), (-1, -1), (0.5, 0.5), False), ((0.5, 0.25, 0.1), (1, 2, 0.5), (-1, -1), (0.5, 0.5), False), ((0.9, 0.3), (1, 2), (0.2, 0.1), (0.4, 0.6), True))
def anchors(sizes, ratios, steps, offsets, clip):
    data = numbers(1, 3, 5, 7)
    (d,) = placeholders(data)
    (found,) = run(topi.vision.ssd.multibox_prior(d, sizes, ratios, steps, offsets, clip), [d], [data])
    x = relay.var("x", shape=data.shape)
    np.testing.assert_allclose(found, evaluate(relay.Function([x], relay.vision.multibox_prior(x, sizes, ratios, steps, offsets, clip)), data), rtol=1e-5, atol=1e-6)


@program(True, False)
def detected_boxes(clip):
    scores, moves = np.abs(numbers(2, 3, 10)), numbers(2, 40)
    low = np.abs(numbers(1, 10, 2)) / 2
    corners = np.concatenate([low, low + 0.3], 2).astype("float32")
    inputs = placeholders(scores, moves, corners)
    variables = [relay.var(n, shape=a.shape) for n, a in zip("abc", (scores, moves, corners))]
    boxes, counts = run(topi.vision.ssd.multibox_transform_loc(*inputs, clip=clip, threshold=0.2), inputs, [scores, moves, corners])
    want = evaluate(relay.Function(variables, relay.vision.multibox_transform_loc(*variables, clip=clip, threshold=0.2).astuple()), scores, moves, corners)
    np.testing.assert_array_equal(counts, want[1])
    for n, many in enumerate(counts):
        np.testing.assert_allclose(boxes[n, :many], want[0][n, :many], rtol=1e-4, atol=1e-5)
    (found,) = run(topi.vision.ssd.multibox_detection(*inputs, clip=clip, threshold=0.2, nms_threshold=0.4), inputs, [scores, moves, corners])
    assert found.shape == (2, 10, 6) and ((found == -1).all(-1) | (found[..., 1] >= 0.2)).all() and (found[:, 0, 1] == scores[:, 1:].max((1, 2))).all()
