# SPDX-License-Identifier: Apache-2.0
"""Images in the format of Darknet's networks, and its layer and activation numbers. Files are read with OpenCV, or else with Pillow."""
from __future__ import annotations

from typing import Any

import numpy as np


class LAYERTYPE:
    """Darknet's layer types."""
    (CONVOLUTIONAL, DECONVOLUTIONAL, CONNECTED, MAXPOOL, SOFTMAX, DETECTION, DROPOUT, CROP, ROUTE, COST, NORMALIZATION, AVGPOOL, LOCAL, SHORTCUT, ACTIVE,
     RNN, GRU, LSTM, CRNN, BATCHNORM, NETWORK, XNOR, REGION, YOLO, REORG, UPSAMPLE, LOGXENT, L2NORM, BLANK) = range(29)


class ACTIVATION:
    """Darknet's activation types."""
    LOGISTIC, RELU, RELIE, LINEAR, RAMP, TANH, PLSE, LEAKY, ELU, LOGGY, STAIR, HARDTAN, LHTAN = range(13)


def _read(path: str) -> Any:
    """An image as a (height, width, BGR) array."""
    try:
        import cv2
        return cv2.imread(path)
    except ImportError:
        from PIL import Image
        return np.asarray(Image.open(path).convert("RGB"))[..., ::-1]


def _resized(picture: Any, width: int, height: int) -> Any:
    try:
        import cv2
        return cv2.resize(picture, (width, height), interpolation=cv2.INTER_CUBIC)
    except ImportError:
        from PIL import Image
        return np.asarray(Image.fromarray(np.ascontiguousarray(picture)).resize((width, height), Image.Resampling.BICUBIC))


def convert_image(image: Any) -> Any:
    """Converts (height, width, BGR) bytes to (BGR, height, width) floats in [0, 1]."""
    return np.divide(np.asarray(image).transpose((2, 0, 1)), 255.0)


def load_image_color(test_image: str) -> Any:
    return convert_image(_read(test_image))


def load_image(img: str, resize_width: int, resize_height: int) -> Any:
    """Loads an image scaled to fit the given size with its aspect ratio kept, with grey borders."""
    picture = _read(img)
    height, width, channels = picture.shape
    new_w, new_h = (resize_width, height * resize_width // width) if resize_width / width < resize_height / height else (width * resize_height // height, resize_height)
    out = np.full((channels, resize_height, resize_width), 0.5)
    top, left = (resize_height - new_h) // 2, (resize_width - new_w) // 2
    out[:, top:top + new_h, left:left + new_w] = convert_image(_resized(picture, new_w, new_h))
    return out


__all__ = ["ACTIVATION", "LAYERTYPE", "convert_image", "load_image", "load_image_color"]
