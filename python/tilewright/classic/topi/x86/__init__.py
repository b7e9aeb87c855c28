# SPDX-License-Identifier: Apache-2.0
"""Schedules for x86 processors, and building blocks of them."""
from . import schedules, tensor_intrin, utils
from .schedules import *  # noqa: F401,F403

__all__ = ["tensor_intrin", "utils", *schedules.__all__]
