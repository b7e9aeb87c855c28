# SPDX-License-Identifier: Apache-2.0
"""Networks with random weights, for examples and tests: `mod, params = relay.testing.resnet.get_workload(num_layers=18)`."""
from __future__ import annotations

from . import mlp, mobilenet, resnet, squeezenet, vgg
from .init import create_workload

__all__ = ["create_workload", "mlp", "mobilenet", "resnet", "squeezenet", "vgg"]
