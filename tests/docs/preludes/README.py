# SPDX-License-Identifier: Apache-2.0
import numpy as np

pixels = np.full((1, 3, 224, 224), 0.5, np.float32)
