# SPDX-License-Identifier: Apache-2.0
"""Numbers of dtypes, for simulated quantisations whose dtype is a run-time value."""
SQNN_DISABLE, SQNN_INT8, SQNN_UINT8, SQNN_INT32 = 0, 1, 2, 3
SQNN_DTYPE_TO_CODE = {"disable": SQNN_DISABLE, "int8": SQNN_INT8, "uint8": SQNN_UINT8, "int32": SQNN_INT32}
SQNN_CODE_TO_DTYPE = {code: dtype for dtype, code in SQNN_DTYPE_TO_CODE.items()}

__all__ = ["SQNN_CODE_TO_DTYPE", "SQNN_DISABLE", "SQNN_DTYPE_TO_CODE", "SQNN_INT32", "SQNN_INT8", "SQNN_UINT8"]
