# SPDX-License-Identifier: Apache-2.0
"""Neural network operators as tensor expressions."""
from ..nn_utils import get_pad_tuple, get_pad_tuple1d, get_pad_tuple2d, get_pad_tuple3d
from . import alter, basic, norms, places, pools, sparse, windows
from .alter import *  # noqa: F401,F403
from .basic import *  # noqa: F401,F403
from .norms import *  # noqa: F401,F403
from .places import *  # noqa: F401,F403
from .pools import *  # noqa: F401,F403
from .sparse import *  # noqa: F401,F403
from .windows import *  # noqa: F401,F403

__all__ = ["get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple2d", "get_pad_tuple3d", *alter.__all__, *basic.__all__, *norms.__all__, *places.__all__, *pools.__all__, *sparse.__all__, *windows.__all__]
