# SPDX-License-Identifier: Apache-2.0
"""Operators as tensor expressions, schedules for them, and numpy references (`topi.testing`), for a script's own expressions. Models are
compiled with the compiler's own kernels, which are faster."""
from . import broadcast, einsum as _einsum, elemwise, generic, image, indexing, nn, ordering, reduction, sparse, tag, testing, transform, utils, vision, x86
from .broadcast import *  # noqa: F401,F403
from .einsum import *  # noqa: F401,F403
from .elemwise import *  # noqa: F401,F403
from .indexing import *  # noqa: F401,F403
from .ordering import *  # noqa: F401,F403
from .reduction import *  # noqa: F401,F403
from .transform import *  # noqa: F401,F403

__all__ = ["generic", "image", "nn", "sparse", "tag", "testing", "utils", "vision", "x86", *broadcast.__all__, *_einsum.__all__, *elemwise.__all__, *indexing.__all__, *ordering.__all__, *reduction.__all__, *transform.__all__]
