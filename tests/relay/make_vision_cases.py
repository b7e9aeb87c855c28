# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/relay/op_cases_vision.txt: operators of object detection and on pictures with what loops in numpy compute for them.

Needs numpy. Run it from the repository's root after adding a case:
  python3 tests/relay/make_vision_cases.py
"""
import math

import numpy as np

from op_case_file import case, write

rng = np.random.default_rng(11)


def f(*shape, low=-1.0, high=1.0):
    return np.round(rng.uniform(low, high, shape), 3).astype(np.float32)


def i32(*values):
    return np.array(values, dtype=np.int32)


def one(value, dtype=np.float32):
    return np.array(value, dtype=dtype)


def overlap(a, b):
    """Intersection over union of boxes given by any two opposite corners."""
    ax0, ax1, ay0, ay1 = min(a[0], a[2]), max(a[0], a[2]), min(a[1], a[3]), max(a[1], a[3])
    bx0, bx1, by0, by1 = min(b[0], b[2]), max(b[0], b[2]), min(b[1], b[3]), max(b[1], b[3])
    inner = max(0, min(ax1, bx1) - max(ax0, bx0)) * max(0, min(ay1, by1) - max(ay0, by0))
    union = (ax1 - ax0) * (ay1 - ay0) + (bx1 - bx0) * (by1 - by0) - inner
    return inner / union if union > 0 else 0


def valid_counts(data, threshold, id_index=0, score_index=1):
    batch, n, length = data.shape
    counts, out, indices = np.zeros(batch, "int32"), np.full_like(data, -1), np.full((batch, n), -1, "int32")
    for b in range(batch):
        kept = [j for j in range(n) if data[b, j, score_index] > threshold and (id_index < 0 or data[b, j, id_index] >= 0)]
        counts[b] = len(kept)
        for to, j in enumerate(kept):
            out[b, to], indices[b, to] = data[b, j], j
    return counts, out, indices


def suppressed(data, valid, indices, most, iou, force_suppress=False, top_k=-1, coord_start=2, score_index=1, id_index=0, return_indices=True,
               invalid_to_bottom=False):
    """Box after box, as the classic loops have it."""
    batch, n, _ = data.shape
    out, numbers = np.full_like(data, -1), np.full((batch, n), -1, "int32")
    for b in range(batch):
        count = int(valid[b])
        if iou <= 0:
            out[b, :count], numbers[b, :count] = data[b, :count], range(count)
        else:
            order = sorted(range(count), key=lambda j: -data[b, j, score_index])[:top_k if 0 < top_k < count else count]
            stays, done = [], 0
            for place, j in enumerate(order):
                row = data[b, j]
                if done == most:
                    break
                if row[score_index] > 0:
                    if any(data[b, k, score_index] > 0 and (id_index < 0 or data[b, k, id_index] >= 0)
                           and (force_suppress or id_index < 0 or data[b, k, id_index] == row[id_index])
                           and overlap(row[coord_start:coord_start + 4], data[b, k, coord_start:coord_start + 4]) >= iou for k in stays):
                        continue
                    done += 1
                stays.append(j)
                out[b, place], numbers[b, place] = row, j
    if not return_indices:
        if invalid_to_bottom:
            packed = np.full_like(out, -1)
            for b in range(batch):
                rows = [r for r in out[b] if r[0] >= 0]
                packed[b, :len(rows)] = np.reshape(rows, (-1, out.shape[2]))
            out = packed
        return out
    found, counts = np.full((batch, n), -1, "int32"), np.zeros((batch, 1), "int32")
    for b in range(batch):
        own = [indices[b, k] for k in numbers[b] if k >= 0 and indices[b, k] >= 0]
        found[b, :len(own)], counts[b] = own, len(own)
    return found, counts


def boxes(batch, n, length, id_index, score_index, coord_start):
    data = f(batch, n, length)
    data[..., score_index] = np.round(rng.permutation(batch * n).reshape(batch, n) / (batch * n) - 0.1, 3)
    if id_index >= 0:
        data[..., id_index] = rng.integers(-1, 3, (batch, n))
    at = np.round(rng.uniform(0, 4, (batch, n, 2)), 2)
    size = np.round(rng.uniform(1, 3, (batch, n, 2)), 2)
    data[..., coord_start:coord_start + 4] = np.concatenate([at, at + size], -1)
    data[:, ::5, coord_start], data[:, ::5, coord_start + 2] = data[:, ::5, coord_start + 2].copy(), data[:, ::5, coord_start].copy()
    return data.astype("float32")


def suppression():
    for layout in (dict(id_index=0, score_index=1, coord_start=2), dict(id_index=-1, score_index=0, coord_start=1), dict(id_index=5, score_index=4, coord_start=0)):
        length = 5 if layout["id_index"] < 0 else 6
        data = boxes(2, 13, length, **layout)
        parts = dict(id_index=layout["id_index"], score_index=layout["score_index"])
        case("vision.get_valid_counts", [data, one(0.25)], valid_counts(data, 0.25, **parts), **parts)
        counts, kept, indices = valid_counts(data, -0.05, **parts)
        forms = (dict(return_indices=True), dict(return_indices=False), dict(return_indices=False, invalid_to_bottom=True))
        for m, more in enumerate((dict(), dict(force_suppress=True), dict(top_k=4), dict(force_suppress=True, top_k=7))):
            for k, (most, iou) in enumerate(((-1, 0.3), (3, 0.2), (0, 0.3), (-1, 0.0))):
                attrs = {**layout, **more, **forms[(m + k) % 3]}
                case("vision.non_max_suppression", [kept, counts, indices, one(most, np.int32), one(iou)],
                     suppressed(kept, counts, indices, most, iou, **attrs), **attrs)


def steps():
    """The operators of our own that the classic ones are made of."""
    flags = rng.integers(0, 2, (3, 7)).astype("int32")
    places = np.full((3, 7), -1, "int32")
    for r in range(3):
        places[r, :flags[r].sum()] = np.flatnonzero(flags[r])
    case("vision.compact", [flags], [places, flags.sum(1).astype("int32")])
    box, scores, kinds = boxes(1, 12, 4, -1, 0, 0), np.round(rng.permutation(24).reshape(2, 12) / 24 - 0.1, 3).astype("float32"), rng.integers(-1, 2, (2, 12)).astype("float32")
    order = np.argsort(-scores, axis=1).astype("int32")
    for most in (-1, 4):
        keep = np.zeros((2, 12), "int32")
        for r, count in enumerate((12, 9)):
            stays, done = [], 0
            for place, j in enumerate(order[r, :count]):
                if done == most:
                    break
                if scores[r, j] > 0:
                    if any(kinds[r, k] >= 0 and kinds[r, k] == kinds[r, j] and scores[r, k] > 0 and overlap(box[0, j], box[0, k]) >= 0.2 for k in stays):
                        continue
                    done += 1
                stays.append(j)
                keep[r, place] = 1
        case("vision.suppress", [box, scores, order, i32(12, 9), one(most, np.int32), one(0.2), kinds], keep)


def all_classes(box, scores, most, iou, threshold, output_format):
    batch, classes, n = scores.shape
    found = []
    for b in range(batch):
        for k in range(classes):
            stays = []
            for j in sorted(range(n), key=lambda j: -scores[b, k, j]):
                score = scores[b, k, j]
                if iou <= 0 or score <= threshold or score <= -1 or (most > 0 and len(stays) == most):
                    continue
                if score > 0 and any(scores[b, k, other] > 0 and overlap(box[b, j], box[b, other]) >= iou for other in stays):
                    continue
                stays.append(j)
            found += [(b, k, j) for j in stays]
    if output_format == "onnx":
        out = np.zeros((batch * classes * n, 3), "int64")
        out[:len(found)] = np.reshape(found, (-1, 3))
        return out, np.array([len(found)], "int64")
    indices, values, counts = np.zeros((batch, classes * n, 2), "int64"), np.zeros((batch, classes * n), "float32"), np.zeros(batch, "int64")
    for b, k, j in found:
        indices[b, counts[b]], values[b, counts[b]] = (k, j), scores[b, k, j]
        counts[b] += 1
    return indices, values, counts


def every_class():
    box = boxes(2, 9, 4, -1, 0, 0)
    scores = np.round(rng.permutation(2 * 3 * 9).reshape(2, 3, 9) / 54 - 0.2, 3).astype("float32")
    scores[0, 0, :2] = -1.5
    for form in ("onnx", "tensorflow"):
        for most, iou, threshold in ((4, 0.3, 0.1), (0, 0.3, -2.0), (2, 0.5, 0.3), (3, 0.0, 0.1)):
            case("vision.all_class_non_max_suppression", [box, scores, one(most, np.int64), one(iou), one([threshold])],
                 all_classes(box, scores, most, iou, threshold, form), output_format=form)


def anchors(height, width, sizes, ratios, steps=(-1, -1), offsets=(0.5, 0.5), clip=False):
    out = []
    for i in range(height):
        for j in range(width):
            y, x = (i + offsets[0]) * (steps[0] if steps[0] > 0 else 1 / height), (j + offsets[1]) * (steps[1] if steps[1] > 0 else 1 / width)
            shapes = [(s * height / width, s) for s in sizes] + [(sizes[0] * height / width * math.sqrt(r), sizes[0] / math.sqrt(r)) for r in ratios[1:]]
            out += [[x - w / 2, y - h / 2, x + w / 2, y + h / 2] for w, h in shapes]
    table = np.array([out], "float32")
    return np.clip(table, 0, 1) if clip else table


def multibox():
    for attrs in (dict(sizes=[0.5, 0.25], ratios=[1.0, 2.0, 0.5]), dict(sizes=[1.5], ratios=[1.0], clip=True),
                  dict(sizes=[0.3], ratios=[1.0, 3.0], steps=[0.2, 0.4], offsets=[0.0, 1.0])):
        case("vision.multibox_prior", [f(1, 2, 3, 4)], anchors(3, 4, **attrs), **attrs)
    prob, moves, anchor = f(2, 4, 6, low=0, high=1), f(2, 24), anchors(2, 3, [0.4], [1.0])
    prob[:, 1:, 2] = 0.05
    prob[0, :, 4] = -2
    for attrs in (dict(), dict(clip=False, threshold=0.6, variances=[0.2, 0.3, 0.1, 0.4])):
        v, threshold = attrs.get("variances", [0.1, 0.1, 0.2, 0.2]), attrs.get("threshold", 0.01)
        out, counts = np.full((2, 6, 6), -1, "float32"), np.zeros(2, "int32")
        for b in range(2):
            for j in range(6):
                best, kind = -1.0, 0
                for k in range(1, 4):
                    if prob[b, k, j] > best:
                        best, kind = prob[b, k, j], k
                if kind == 0 or best < threshold:
                    continue
                left, top, right, bottom = anchor[0, j]
                w, h, (px, py, pw, ph) = right - left, bottom - top, moves[b, 4 * j:4 * j + 4]
                x, y = px * v[0] * w + (left + right) / 2, py * v[1] * h + (top + bottom) / 2
                dx, dy = math.exp(pw * v[2]) * w / 2, math.exp(ph * v[3]) * h / 2
                box = np.array([x - dx, y - dy, x + dx, y + dy])
                out[b, counts[b]] = [kind - 1, best, *(np.clip(box, 0, 1) if attrs.get("clip", True) else box)]
                counts[b] += 1
        case("vision.multibox_transform_loc", [prob, moves, anchor], [out, counts], **attrs)


def proposals():
    scales, ratios, stride = [1.0, 2.0], [0.5, 1.0], 4
    a, height, width = 4, 3, 4
    for attrs in (dict(), dict(iou_loss=True, threshold=0.3), dict(rpn_pre_nms_top_n=9, rpn_post_nms_top_n=20, rpn_min_size=4)):
        prob, moves, info = f(2, 2 * a, height, width, low=0, high=1), f(2, 4 * a, height, width), np.array([[12, 16, 1], [9, 14, 1.5]], "float32")
        threshold, most, post = attrs.get("threshold", 0.5), attrs.get("rpn_pre_nms_top_n", 6000), attrs.get("rpn_post_nms_top_n", 5)
        rows = []
        for b in range(2):
            found = []
            for y in range(height):
                for x in range(width):
                    for k in range(a):
                        ratio, scale = ratios[k // len(scales)], scales[k % len(scales)]
                        side = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
                        w, h, middle = side * scale, math.floor(side * ratio + 0.5) * scale, 0.5 * (stride - 1)
                        box = [middle - 0.5 * (w - 1) + x * stride, middle - 0.5 * (h - 1) + y * stride, middle + 0.5 * (w - 1) + x * stride,
                               middle + 0.5 * (h - 1) + y * stride]
                        d = moves[b, 4 * k:4 * k + 4, y, x]
                        if attrs.get("iou_loss"):
                            box = [box[i] + d[i] for i in range(4)]
                        else:
                            bw, bh = box[2] - box[0] + 1, box[3] - box[1] + 1
                            cx, cy = d[0] * bw + box[0] + 0.5 * (bw - 1), d[1] * bh + box[1] + 0.5 * (bh - 1)
                            pw, ph = math.exp(d[2]) * bw, math.exp(d[3]) * bh
                            box = [cx - 0.5 * (pw - 1), cy - 0.5 * (ph - 1), cx + 0.5 * (pw - 1), cy + 0.5 * (ph - 1)]
                        edge = [info[b, 1] - 1, info[b, 0] - 1] * 2
                        box = [max(min(v, e), 0) for v, e in zip(box, edge)]
                        score = -1 if y >= int(info[b, 0] / stride) or x >= int(info[b, 1] / stride) else prob[b, a + k, y, x]
                        least = info[b, 2] * attrs.get("rpn_min_size", 2)
                        if box[2] - box[0] + 1 < least or box[3] - box[1] + 1 < least:
                            box, score = [box[0] - least / 2, box[1] - least / 2, box[2] + least / 2, box[3] + least / 2], -1
                        found.append((score, box))
            order = sorted(range(len(found)), key=lambda j: -found[j][0])[:most]
            stays = []
            for j in order:
                p = found[j][1]

                def too_near(q):
                    w, h = max(0, min(p[2], q[2]) - max(p[0], q[0]) + 1), max(0, min(p[3], q[3]) - max(p[1], q[1]) + 1)
                    area = lambda r: (r[2] - r[0] + 1) * (r[3] - r[1] + 1)  # noqa: E731
                    return w * h / (area(p) + area(q) - w * h) > threshold
                if not any(too_near(found[k][1]) for k in stays):
                    stays.append(j)
            rows += [[b, *found[stays[i % len(stays)]][1]] for i in range(post)]
        case("vision.proposal", [prob, moves, info], np.array(rows, "float32"),
             **{"scales": scales, "ratios": ratios, "feature_stride": stride, "threshold": threshold, "rpn_post_nms_top_n": post, "rpn_min_size": 2, **attrs})


def regions(count, pictures, size):
    low, length = rng.uniform(-2, size, (count, 2)), rng.uniform(0, size, (count, 2))
    return np.round(np.concatenate([np.arange(count)[:, None] % pictures, low, low + length], 1), 2).astype("float32")


def aligned(data, rois, pooled_size, spatial_scale, sample_ratio, mode):
    (ph, pw), (_, channels, height, width) = pooled_size, data.shape
    out = np.zeros((len(rois), channels, ph, pw), "float32")
    for k, roi in enumerate(rois):
        x0, y0, x1, y1 = roi[1:].astype("float64") * spatial_scale
        bin_h, bin_w = max(y1 - y0, 1) / ph, max(x1 - x0, 1) / pw
        gh, gw = (sample_ratio, sample_ratio) if sample_ratio > 0 else (math.ceil(bin_h), math.ceil(bin_w))
        for i in range(ph):
            for j in range(pw):
                values = []
                for iy in range(gh):
                    for ix in range(gw):
                        y, x = y0 + i * bin_h + (iy + 0.5) * bin_h / gh, x0 + j * bin_w + (ix + 0.5) * bin_w / gw
                        if y < -1 or y > height or x < -1 or x > width:
                            values.append(np.zeros(channels))
                            continue
                        y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
                        ya, xa = int(y), int(x)
                        yb, xb, wy, wx = min(ya + 1, height - 1), min(xa + 1, width - 1), y - ya, x - xa
                        picture = data[int(roi[0])]
                        values.append((1 - wy) * ((1 - wx) * picture[:, ya, xa] + wx * picture[:, ya, xb]) + wy * ((1 - wx) * picture[:, yb, xa] + wx * picture[:, yb, xb]))
                out[k, :, i, j] = np.mean(values, 0) if mode == "avg" else np.max(values, 0)
    return out


def pooled(data, rois, pooled_size, spatial_scale):
    (ph, pw), (_, channels, height, width) = pooled_size, data.shape
    out = np.zeros((len(rois), channels, ph, pw), "float32")
    nearest = lambda v: int(math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1))  # noqa: E731
    for k, roi in enumerate(rois):
        x0, y0, x1, y1 = (nearest(float(v) * spatial_scale) for v in roi[1:])
        bin_h, bin_w = max(y1 - y0 + 1, 1) / ph, max(x1 - x0 + 1, 1) / pw
        held = lambda v, extent: min(max(v, 0), extent)  # noqa: E731
        for i in range(ph):
            for j in range(pw):
                ya, yb = held(math.floor(i * bin_h + 1e-5) + y0, height), held(math.ceil((i + 1) * bin_h - 1e-5) + y0, height)
                xa, xb = held(math.floor(j * bin_w + 1e-5) + x0, width), held(math.ceil((j + 1) * bin_w - 1e-5) + x0, width)
                if ya < yb and xa < xb:
                    out[k, :, i, j] = data[int(roi[0]), :, ya:yb, xa:xb].max((1, 2))
    return out


def of_regions():
    data, rois = f(2, 3, 7, 8), regions(5, 2, 14)
    for sample_ratio in (-1, 2):
        for mode in ("avg", "max"):
            attrs = dict(pooled_size=[3, 2], spatial_scale=0.5, sample_ratio=sample_ratio, mode=mode)
            case("vision.roi_align", [data, rois], aligned(data, rois, **attrs), **attrs)
    attrs = dict(pooled_size=[2, 2], spatial_scale=0.7, sample_ratio=3, mode="avg")
    case("vision.roi_align", [data.transpose(0, 2, 3, 1), rois], aligned(data, rois, **attrs).transpose(0, 2, 3, 1), layout="NHWC", **attrs)
    attrs = dict(pooled_size=[3, 4], spatial_scale=0.5)
    case("vision.roi_pool", [data, rois], pooled(data, rois, **attrs), **attrs)
    case("vision.region_pool", [data.transpose(0, 2, 3, 1), rois], pooled(data, rois, **attrs).transpose(0, 2, 3, 1), layout="NHWC", **attrs)
    case("vision.region_pool", [data, rois], pooled(data, rois, **attrs), **attrs)
    attrs = dict(pooled_size=[2, 3], spatial_scale=0.5, sample_ratio=-1, mode="avg")
    case("vision.region_align", [data.transpose(0, 2, 3, 1), rois], aligned(data, rois, **attrs).transpose(0, 2, 3, 1), **attrs)
    case("vision.region_align", [data, rois], aligned(data, rois, **attrs), layout="NCHW", **attrs)


def crops():
    box = np.array([[0.13, 0.22, 0.81, 0.93], [0.91, 0.12, 0.32, 0.57], [-0.21, 0.33, 0.64, 1.31]], "float32")
    which, data = i32(1, 0, 1), f(2, 3, 6, 5)
    for method in ("bilinear", "nearest_neighbor"):
        for size, extrapolation in (((4, 3), 0.0), ((1, 5), -2.5)):
            out = np.full((3, 3, *size), extrapolation, "float32")
            for k in range(3):
                for i in range(size[0]):
                    for j in range(size[1]):
                        at = []
                        for axis, (place, n, extent) in enumerate(((i, size[0], 6), (j, size[1], 5))):
                            low, high = float(box[k, axis]), float(box[k, axis + 2])
                            at.append(low * (extent - 1) + place * (high - low) * (extent - 1) / (n - 1) if n > 1 else 0.5 * (low + high) * (extent - 1))
                        y, x = at
                        if y < 0 or y > 5 or x < 0 or x > 4:
                            continue
                        picture = data[which[k]]
                        if method == "bilinear":
                            ya, xa = math.floor(y), math.floor(x)
                            yb, xb, wy, wx = min(ya + 1, 5), min(xa + 1, 4), y - ya, x - xa
                            out[k, :, i, j] = (1 - wy) * ((1 - wx) * picture[:, ya, xa] + wx * picture[:, ya, xb]) + wy * ((1 - wx) * picture[:, yb, xa] + wx * picture[:, yb, xb])
                        else:
                            out[k, :, i, j] = picture[:, math.floor(y + 0.5), math.floor(x + 0.5)]
            attrs = dict(crop_size=list(size), method=method, extrapolation_value=extrapolation)
            case("image.crop_and_resize", [data, box, which], out, **attrs)
            case("image.crop_and_resize", [data.transpose(0, 2, 3, 1), box, which], out.transpose(0, 2, 3, 1), layout="NHWC", **attrs)


def grids():
    maps = f(2, 2, 3)
    y, x = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij")
    points = np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
    case("image.affine_grid", [maps], (maps.astype("float64") @ points).reshape(2, 2, 3, 4).astype("float32"), target_shape=[3, 4])
    data = f(2, 8, 4, 6)
    flat = data.reshape(2, 2, 8, 12)  # read as (deep, h * stride, w * stride)
    out = np.zeros((2, 8, 4, 6), "float32")
    for b in range(2):
        for k in range(8):
            for j in range(4):
                for i in range(6):
                    out[b, k, j, i] = flat[b, k % 2, j * 2 + k // 2 // 2, i * 2 + k // 2 % 2]
    case("vision.yolo_reorg", [data], out.reshape(2, 32, 2, 3), stride=2)


def dilations():
    x, w = f(2, 3, 7, 8), f(3, 3, 2)
    for strides, pads, dilation in (([1, 1], [0, 0, 0, 0], [1, 1]), ([2, 1], [1, 0, 1, 2], [1, 2]), ([1, 3], [2, 2, 0, 0], [2, 1])):
        padded = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])], constant_values=np.finfo("float32").min)
        rows = (padded.shape[2] - 2 * dilation[0] - 1) // strides[0] + 1
        cols = (padded.shape[3] - dilation[1] - 1) // strides[1] + 1
        out = np.full((2, 3, rows, cols), -np.inf, "float32")
        for i in range(rows):
            for j in range(cols):
                for ky in range(3):
                    for kx in range(2):
                        out[:, :, i, j] = np.maximum(out[:, :, i, j], padded[:, :, i * strides[0] + ky * dilation[0], j * strides[1] + kx * dilation[1]] + w[:, ky, kx])
        attrs = dict(strides=strides, padding=pads, dilations=dilation)
        case("image.dilation2d", [x, w], out, **attrs)
        case("image.dilation2d", [x.transpose(0, 2, 3, 1), w.transpose(1, 2, 0)], out.transpose(0, 2, 3, 1), data_layout="NHWC", kernel_layout="HWI", **attrs)


def deformed():
    for strides, pads, dilation, sets, groups in (([1, 1], [1, 1, 1, 1], [1, 1], 1, 1), ([2, 1], [1, 0, 0, 2], [1, 2], 2, 1), ([1, 1], [0, 0, 0, 0], [1, 1], 2, 2)):
        x, w = f(2, 4, 6, 5), f(6, 4 // groups, 3, 2)
        rows, cols = (6 + pads[0] + pads[2] - 2 * dilation[0] - 1) // strides[0] + 1, (5 + pads[1] + pads[3] - dilation[1] - 1) // strides[1] + 1
        moves = f(2, sets * 12, rows, cols, low=-1.5, high=1.5)
        out = np.zeros((2, 6, rows, cols))
        for n in range(2):
            for i in range(rows):
                for j in range(cols):
                    for c in range(4):
                        for ky in range(3):
                            for kx in range(2):
                                at = c // (4 // sets) * 12 + (ky * 2 + kx) * 2
                                y = float(i * strides[0] - pads[0] + ky * dilation[0] + moves[n, at, i, j])
                                v = float(j * strides[1] - pads[1] + kx * dilation[1] + moves[n, at + 1, i, j])
                                if y < 0 or y >= 6 or v < 0 or v >= 5:
                                    continue
                                ya, xa = math.floor(y), math.floor(v)
                                yb, xb, wy, wx = min(ya + 1, 5), min(xa + 1, 4), y - ya, v - xa
                                value = (1 - wy) * ((1 - wx) * x[n, c, ya, xa] + wx * x[n, c, ya, xb]) + wy * ((1 - wx) * x[n, c, yb, xa] + wx * x[n, c, yb, xb])
                                group = c // (4 // groups)
                                for o in range(group * 6 // groups, (group + 1) * 6 // groups):
                                    out[n, o, i, j] += value * w[o, c % (4 // groups), ky, kx]
        attrs = dict(strides=strides, padding=pads, dilation=dilation, deformable_groups=sets, groups=groups, channels=6, kernel_size=[3, 2])
        out = out.astype("float32")
        case("nn.deformable_conv2d", [x, moves, w], out, **attrs)
        case("nn.deformable_conv2d", [x.transpose(0, 2, 3, 1), moves.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)], out.transpose(0, 2, 3, 1), data_layout="NHWC",
             kernel_layout="HWIO", **attrs)


for make in (steps, suppression, every_class, multibox, proposals, of_regions, crops, grids, dilations, deformed):
    make()
write("op_cases_vision.txt", "tests/relay/make_vision_cases.py with numpy")
