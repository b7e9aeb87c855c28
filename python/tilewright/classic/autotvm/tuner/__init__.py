# SPDX-License-Identifier: Apache-2.0
"""Tuners and their callbacks."""
from __future__ import annotations

from . import callback, model_based_tuner
from .tuner import GATuner, GridSearchTuner, RandomTuner, Tuner
from .xgboost_tuner import XGBTuner

__all__ = ["GATuner", "GridSearchTuner", "RandomTuner", "Tuner", "XGBTuner", "callback", "model_based_tuner"]
