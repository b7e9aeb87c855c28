# SPDX-License-Identifier: Apache-2.0
"""One session in a Python process that rpc.Server starts: `python -m tilewright.classic.rpc.session`."""
from __future__ import annotations

import argparse
import os
import pickle

from ..error import Error
from ..runtime import load_plugin
from . import session_vm, testing  # noqa: F401  the functions that clients call
from .base import function


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--load-library", action="append", default=[])
    parser.add_argument("--init")
    args = parser.parse_args()
    import tilewright.as_tvm  # noqa: F401  what a callback imports
    for library in args.load_library:
        load_plugin(library)
    if args.init:
        with open(args.init, "rb") as file:
            pickle.load(file)()
    try:
        function("rpc.ServerLoop")(3, os.environ["TILEWRIGHT_SESSION_FOLDER"], int(os.environ["TILEWRIGHT_SESSION_MEMORY"]))
    except Error as error:
        return 0 if error.code == 701 else 1
    return 0


if __name__ == "__main__":
    status = main()
    os._exit(status)  # skip the cleanup of what clients left behind
