# SPDX-License-Identifier: Apache-2.0
"""Building blocks of CPU schedules."""
from . import tensor_intrin, utils

__all__ = ["tensor_intrin", "utils"]
