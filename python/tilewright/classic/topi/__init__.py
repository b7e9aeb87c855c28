# SPDX-License-Identifier: Apache-2.0
"""Operators as tensor expressions, schedules for them, and (`topi.testing`) what they compute in numpy. Models are compiled with the compiler's own kernels,
which are faster: these are for expressions of a script's own."""
from . import broadcast, elemwise, generic, nn, reduction, testing, transform, utils, x86
from .broadcast import *  # noqa: F401,F403
from .elemwise import *  # noqa: F401,F403
from .reduction import *  # noqa: F401,F403
from .transform import *  # noqa: F401,F403

__all__ = ["generic", "nn", "testing", "utils", "x86", *broadcast.__all__, *elemwise.__all__, *reduction.__all__, *transform.__all__]
