# SPDX-License-Identifier: Apache-2.0
import numpy as np
import tilewright as tw
from tilewright import classic as tvm
from tilewright.classic import relay

pixels = np.full((1, 3, 224, 224), 0.5, np.float32)
weights = np.ones((10, 64), np.float32)
x, params, tokens = np.ones(3, np.float32), {"w": weights}, np.ones((1, 64), np.float32)
