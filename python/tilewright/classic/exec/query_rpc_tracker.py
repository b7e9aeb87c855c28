# SPDX-License-Identifier: Apache-2.0
"""`python -m tilewright.as_tvm -m tvm.exec.query_rpc_tracker --host 10.0.0.7 --port 9190`."""
from __future__ import annotations

import argparse
import os

from ..rpc.client import connect_tracker


def main() -> None:
    parser = argparse.ArgumentParser("tvm.exec.query_rpc_tracker", description="Shows what a tracker knows.")
    parser.add_argument("--host", default=os.environ.get("TVM_TRACKER_HOST", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=int(os.environ.get("TVM_TRACKER_PORT", "9190")))
    parser.add_argument("--token", help="a file instead of the user's own token")
    parser.add_argument("--classic-plaintext", action="store_true")
    args = parser.parse_args()
    print(f"Tracker address {args.host}:{args.port}\n")
    print(connect_tracker(args.host, args.port, token=args.token, plaintext=args.classic_plaintext).text_summary())


if __name__ == "__main__":
    main()
