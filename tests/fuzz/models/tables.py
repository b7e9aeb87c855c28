# SPDX-License-Identifier: Apache-2.0
"""Every builder of a node, by operator."""
import operators_control  # noqa: F401
import operators_foreign  # noqa: F401
import operators_products  # noqa: F401
import operators_signal  # noqa: F401
from operators import TABLE  # noqa: F401
