# SPDX-License-Identifier: Apache-2.0
"""Command-line programs of the classic stack: `python -m tilewright.as_tvm -m tvm.exec.rpc_server`."""
