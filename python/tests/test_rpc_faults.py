# SPDX-License-Identifier: Apache-2.0
"""Faults between a client and a server: connections that are cut, stall, lose their last bytes, or whose session is killed, at any chunk of bytes in either
direction. Every job is done in the end, and nothing is left of those that failed.

    test_rpc_faults.py [COUNT]     200 faults, or as many as are asked for"""
import concurrent.futures
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

FOLDER = tempfile.TemporaryDirectory()
os.environ["TILEWRIGHT_TOKEN"] = os.path.join(FOLDER.name, "token")
os.environ["TMPDIR"] = os.path.join(FOLDER.name, "tmp")
os.mkdir(os.environ["TMPDIR"])

import numpy as np

import tilewright.as_tvm  # noqa: F401
import tvm
from tvm import rpc

KINDS = ("cut", "stall", "truncate", "kill")
AT_ONCE = 16


class Between(threading.Thread):
    """Carries the bytes of one connection, up to the fault."""

    def __init__(self, port, kind, chunk, server):
        super().__init__(daemon=True)
        self.port, self.kind, self.chunk, self.server = port, kind, chunk, server
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.happened = False
        self.start()

    def run(self):
        with self.listener:
            client = self.listener.accept()[0]
        with client, socket.create_connection(("127.0.0.1", self.port)) as other:
            pairs, chunks = {client: other, other: client}, 0
            while True:
                for ready in select.select(list(pairs), [], [])[0]:
                    try:
                        data = ready.recv(1 << 16)
                    except OSError:
                        data = b""
                    if not data:
                        return
                    chunks += 1
                    if chunks == self.chunk and not self.happened:
                        self.happened = True
                        if self.kind == "cut":
                            return
                        if self.kind == "truncate":
                            pairs[ready].sendall(data[:len(data) // 2])
                            return
                        if self.kind == "stall":
                            time.sleep(0.8)  # longer than the session may last; then nothing more
                            return
                        sessions = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.server)], capture_output=True, text=True).stdout.split()
                        if sessions:
                            try:
                                os.kill(int(random.choice(sessions)), signal.SIGKILL)
                            except ProcessLookupError:
                                pass
                    try:
                        pairs[ready].sendall(data)
                    except OSError:
                        return


def job(port, number, timeout):
    remote = rpc.connect("127.0.0.1", port, session_timeout=timeout)
    remote.upload(bytes([number % 256]) * 5000, "file")
    values = np.full(300, number, "float32")
    array = tvm.nd.array(values, remote.cpu())
    assert (array.numpy() == values).all()
    params = remote.get_function("runtime.LoadParams")(remote.get_function("runtime.SaveParams")("w", array))
    assert (params[0][1].numpy() == values).all()
    assert remote.get_function("runtime.TimeEvaluator")(lambda: None, 1, 1)()  # a callback
    assert remote.download("file") == bytes([number % 256]) * 5000
    remote.close()
    return number


def faulty(port, server, number):
    """The job, with a fault on the first way, and again on a clean one. How often it was begun."""
    draw = random.Random(number)
    between = Between(port, KINDS[number % len(KINDS)], draw.randint(1, 60), server)
    tries = 0
    for attempt in range(20):
        try:
            tries += 1
            assert job(between.listener.getsockname()[1] if attempt == 0 else port, number, 0.6 if attempt == 0 else 20) == number
            return tries
        except tvm.TVMError as error:
            assert error.code in (602, 701, 702, 703), error
    raise AssertionError(f"job {number} was lost")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    random.seed(7)
    began = time.monotonic()
    process = subprocess.Popen([rpc.base.program(), "rpc-server", "--host", "127.0.0.1", "--port", "0", "--sessions", str(2 * AT_ONCE), "--silent"], stdout=subprocess.PIPE, text=True)
    port = int(process.stdout.readline().rpartition(":")[2])

    def open_files(pid):
        return len(os.listdir(f"/proc/{pid}/fd"))
    job(port, 0, 20)
    time.sleep(1)
    before, own = open_files(process.pid), None
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        tries = list(pool.map(lambda n: faulty(port, process.pid, n), range(count)))
    until = time.monotonic() + 10
    while time.monotonic() < until:  # sessions whose clients are gone have two seconds
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout.split()
        folders = os.listdir(os.environ["TMPDIR"])
        files = open_files(process.pid)
        if not children and not folders and files <= before:
            break
        time.sleep(0.1)
    assert not children, f"{len(children)} sessions were left"
    assert not folders, folders
    assert files <= before, f"{files} open files, {before} before"
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    faults = sum(t > 1 for t in tries)
    assert faults >= count // 2, f"only {faults} faults hit anything"
    print(f"{count} jobs done, {faults} of them after a fault, {sum(tries)} begun, {time.monotonic() - began:.1f} s; nothing was left")


if __name__ == "__main__":
    main()
