# SPDX-License-Identifier: Apache-2.0
"""Post-processing of YOLO networks: decoding of boxes, non-maximum suppression, drawing."""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

Box = namedtuple("Box", ["x", "y", "w", "h"])  # centre and size


def _iou(a: Box, b: Box) -> float:
    def shared(at: float, size: float, other: float, other_size: float) -> float:
        return min(at + size / 2, other + other_size / 2) - max(at - size / 2, other - other_size / 2)
    w, h = shared(a.x, a.w, b.x, b.w), shared(a.y, a.h, b.y, b.h)
    inner = 0.0 if w < 0 or h < 0 else w * h
    return inner / (a.w * a.h + b.w * b.h - inner)


def _box(data: Any, at: Sequence[int], anchor: Sequence[float], scale: Sequence[float]) -> Box:
    """The predicted box at (box, row, column); sizes are anchors times exponentials, divided by `scale` (width, height)."""
    n, row, column = at
    x, y, w, h = (float(data[n][i][row][column]) for i in range(4))
    return Box((column + x) / data.shape[3], (row + y) / data.shape[2], float(np.exp(w)) * anchor[0] / scale[0], float(np.exp(h)) * anchor[1] / scale[1])


def _fit(boxes: list[dict[str, Any]], picture: Sequence[int], net: Sequence[int], relative: bool) -> list[dict[str, Any]]:
    """Maps boxes from the letterboxed network input to the original image."""
    (width, height), (net_w, net_h) = picture, net
    inner_w, inner_h = (net_w, height * net_w // width) if net_w / width < net_h / height else (width * net_h // height, net_h)
    for d in boxes:
        b = d["bbox"]
        x, y = (b.x - (net_w - inner_w) / 2 / net_w) * net_w / inner_w, (b.y - (net_h - inner_h) / 2 / net_h) * net_h / inner_h
        w, h = b.w * net_w / inner_w, b.h * net_h / inner_h
        d["bbox"] = Box(x, y, w, h) if relative else Box(x * width, y * height, w * width, h * height)
    return boxes


def _yolo_boxes(layer: dict[str, Any], net: Sequence[int], thresh: float) -> list[dict[str, Any]]:
    data, classes, biases = layer["output"], layer["classes"], layer["biases"]
    mask, out = np.asarray(layer["mask"]), []
    for n, row, column in zip(*np.where(data[:, 4] > thresh)):
        objectness = data[n, 4, row, column]
        prob = objectness * data[n, 5:5 + classes, row, column]
        k = int(mask[n])
        out.append({"bbox": _box(data, (n, row, column), biases[2 * k:2 * k + 2], net), "classes": classes, "prob": np.where(prob < thresh, 0, prob),
                    "objectness": objectness})
    return out


def _region_boxes(layer: dict[str, Any], thresh: float) -> list[dict[str, Any]]:
    data, classes, coords, biases = layer["output"], layer["classes"], layer["coords"], layer["biases"]
    out = []
    for row in range(data.shape[2]):
        for column in range(data.shape[3]):
            for n in range(data.shape[0]):
                scale = 1 if layer["background"] else data[n, coords, row, column]
                prob = scale * data[n, coords + 1:coords + 1 + classes, row, column] if scale > thresh else np.zeros(classes)
                out.append({"bbox": _box(data, (n, row, column), biases[2 * n:2 * n + 2], (data.shape[3], data.shape[2])), "classes": classes,
                            "prob": np.where(prob < thresh, 0, prob), "objectness": scale if scale > thresh else 0})
    return out


def fill_network_boxes(net_shape: Sequence[int], im_shape: Sequence[int], thresh: float, relative: bool, tvm_out: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The boxes of all output layers ({"type": "Yolo" or "Region", "output", "biases", "classes", ...}): {"bbox", "prob", "objectness"}.
    Shapes are (width, height)."""
    out: list[dict[str, Any]] = []
    for layer in tvm_out:
        if layer["type"] in ("Yolo", "Region"):
            boxes = _yolo_boxes(layer, net_shape, thresh) if layer["type"] == "Yolo" else _region_boxes(layer, thresh)
            out += _fit(boxes, im_shape, net_shape, relative)
    return out


def nms_comparator(a: dict[str, Any], b: dict[str, Any]) -> Any:
    kind = b.get("sort_class", -1)
    return a["prob"][kind] - b["prob"][kind] if kind >= 0 else a["objectness"] - b["objectness"]


def do_nms_sort(dets: list[dict[str, Any]], classes: int, thresh: float) -> None:
    """Per class, sets to 0 the probability of boxes that overlap a more probable one by more than `thresh`. Boxes without an object come
    last."""
    dets.sort(key=lambda d: d["objectness"] == 0)
    total = sum(d["objectness"] != 0 for d in dets)
    for k in range(classes):
        for d in dets[:total]:
            d["sort_class"] = k
        dets[:total] = sorted(dets[:total], key=lambda d: -d["prob"][k])
        for i, d in enumerate(dets[:total]):
            if d["prob"][k] == 0:
                continue
            for other in dets[i + 1:total]:
                if other["prob"][k] and _iou(d["bbox"], other["bbox"]) > thresh:
                    other["prob"][k] = 0


def _color(channel: int, place: float, whole: float) -> float:
    """A channel of a colour from the gradient magenta, blue, cyan, green, yellow, red."""
    circle = [(1, 0, 1), (0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 1, 0), (1, 0, 0)]
    at = place / whole * 5
    low, high = int(np.floor(at)), int(np.ceil(at))
    return (1 - (at - low)) * circle[low][channel] + (at - low) * circle[high][channel]


def get_detections(im: Any, det: dict[str, Any], thresh: float, names: Sequence[str], classes: int) -> tuple[bool, dict[str, Any] | None]:
    """(whether any class exceeds `thresh`, its rectangle, colour and labels) for an image (channels, height, width)."""
    found = [j for j in range(classes) if det["prob"][j] > thresh]
    if not found:
        return False, None
    _, height, width = im.shape
    b, offset = det["bbox"], found[0] * 123457 % classes
    return True, {"category": found[0], "labelstr": [f"{names[j]} {round(float(det['prob'][j]), 4)}" for j in found],
                  "left": max(int((b.x - b.w / 2) * width), 0), "top": max(int((b.y - b.h / 2) * height), 0),
                  "right": min(int((b.x + b.w / 2) * width), width - 1), "bot": min(int((b.y + b.h / 2) * height), height - 1),
                  "width": int(height * 0.006), "rgb": [_color(c, offset, classes) for c in (2, 1, 0)]}


def show_detections(im: Any, dets: Sequence[dict[str, Any]], thresh: float, names: Sequence[str], classes: int) -> None:
    """Prints each box with its labels."""
    for det in dets:
        valid, d = get_detections(im, det, thresh, names, classes)
        if valid and d:
            print(f"class:{d['labelstr']} left:{d['left']} top:{d['top']} right:{d['right']} bottom:{d['bot']}")


def _rectangle(im: Any, d: dict[str, Any]) -> None:
    _, height, width = im.shape
    color = np.asarray(d["rgb"], im.dtype)[:, None]
    for i in range(max(d["width"], 1)):
        x1, x2 = np.clip([d["left"] + i, d["right"] - i], 0, width - 1)
        y1, y2 = np.clip([d["top"] + i, d["bot"] - i], 0, height - 1)
        for y in (y1, y2):
            im[:, y, x1:x2 + 1] = color
        for x in (x1, x2):
            im[:, y1:y2 + 1, x] = color


def _label(font_path: str, text: str, rgb: Sequence[float]) -> Any:
    from PIL import Image, ImageDraw, ImageFont
    font = ImageFont.truetype(font_path, 25)
    width = int(ImageDraw.Draw(Image.new("RGB", (1, 1))).textlength(text, font=font))
    picture = Image.new("RGB", (width, 30), color=tuple(int(c * 255) for c in rgb))
    ImageDraw.Draw(picture).text((0, 0), text, fill="black", font=font)
    return (np.asarray(picture) / 255).transpose(2, 0, 1)


def draw_detections(font_path: str, im: Any, dets: Sequence[dict[str, Any]], thresh: float, names: Sequence[str], classes: int) -> None:
    """Draws rectangles and labels into the image (channels, height, width; 0 to 1). Labels need Pillow and a TrueType font."""
    for det in dets:
        valid, d = get_detections(im, det, thresh, names, classes)
        if not valid or d is None:
            continue
        label = _label(font_path, "".join(d["labelstr"]), d["rgb"])
        _rectangle(im, d)
        top = d["top"] + d["width"]
        top = top - label.shape[1] if top >= label.shape[1] else top
        part = label[:, :im.shape[1] - top, :im.shape[2] - d["left"]]
        im[:, top:top + part.shape[1], d["left"]:d["left"] + part.shape[2]] = part


__all__ = ["Box", "do_nms_sort", "draw_detections", "fill_network_boxes", "get_detections", "nms_comparator", "show_detections"]
