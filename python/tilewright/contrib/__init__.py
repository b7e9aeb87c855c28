# SPDX-License-Identifier: Apache-2.0
from . import graph_executor

__all__ = ["graph_executor"]
