# SPDX-License-Identifier: Apache-2.0
"""`python -m tilewright.as_tvm -m tvm.exec.rpc_tracker --host 0.0.0.0 --port 9190`."""
from __future__ import annotations

import argparse

from ..rpc.tracker import Tracker


def main() -> None:
    parser = argparse.ArgumentParser("tvm.exec.rpc_tracker", description="Knows devices, and gives each request one.")
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=9190)
    parser.add_argument("--port-end", type=int, default=9199)
    parser.add_argument("--no-fork", dest="fork", action="store_false", help="accepted")
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--token", help="a file instead of the user's own token")
    parser.add_argument("--classic-plaintext", action="store_true", help="no TLS and no token, on this machine only")
    args = parser.parse_args()
    tracker = Tracker(args.host, args.port, args.port_end, args.silent, token=args.token, plaintext=args.classic_plaintext)
    print(f"rpc-tracker listens on {tracker.host}:{tracker.port}", flush=True)
    try:
        tracker.proc.join()
    except KeyboardInterrupt:
        tracker.terminate()


if __name__ == "__main__":
    main()
