# SPDX-License-Identifier: Apache-2.0
"""`python -m tilewright.as_tvm -m tvm.exec.rpc_server --host 0.0.0.0 --port 9090`."""
from __future__ import annotations

import argparse

from ..rpc.server import Server


def main() -> None:
    parser = argparse.ArgumentParser("tvm.exec.rpc_server", description="Lets clients with the token run on this machine.")
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=9090)
    parser.add_argument("--port-end", type=int, default=9199)
    parser.add_argument("--tracker", default="", help="host:port")
    parser.add_argument("--key", default="", help="what kind of device this is")
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--load-library", help="libraries to load into each session, with ':' between")
    parser.add_argument("--no-fork", dest="fork", action="store_false", help="accepted: each session is a process of its own")
    parser.add_argument("--custom-addr", help="the host that clients of the tracker are told")
    parser.add_argument("--token", help="a file instead of the user's own token")
    parser.add_argument("--classic-plaintext", action="store_true", help="no TLS and no token, on this machine only")
    parser.add_argument("--through-proxy", dest="is_proxy", action="store_true")
    args = parser.parse_args()
    host, _, port = args.tracker.rpartition(":")
    if args.tracker and not (host and port.isdigit()):
        parser.error(f"'{args.tracker}' is no tracker: give host:port")
    if args.tracker and not args.key:
        parser.error("a tracker knows devices by their key: give --key")
    server = Server(args.host, args.port, args.port_end, args.is_proxy, (host, int(port)) if args.tracker else None, args.key, args.load_library, args.custom_addr, args.silent,
                    token=args.token, plaintext=args.classic_plaintext)
    print(f"rpc-server listens on {server.host}:{server.port}", flush=True)
    try:
        server.proc.join()
    except KeyboardInterrupt:
        server.terminate()


if __name__ == "__main__":
    main()
