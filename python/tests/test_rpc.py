# SPDX-License-Identifier: Apache-2.0
"""Sessions as users open them: real servers, trackers and sockets on this machine, each test with a token of its own."""
import contextlib
import json
import mmap
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import numpy as np

import tilewright.as_tvm  # noqa: F401
import tvm
from tvm import relay, rpc
from tvm.contrib import graph_executor

FOLDER = tempfile.TemporaryDirectory()
os.environ["TILEWRIGHT_TOKEN"] = os.path.join(FOLDER.name, "token")
os.environ["TMPDIR"] = os.path.join(FOLDER.name, "tmp")  # folders of sessions, which must go
os.mkdir(os.environ["TMPDIR"])
PROGRAM = rpc.base.program()
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data")


class Native:
    """`tilewright rpc-server` and its kind."""

    def __init__(self, verb, *options):
        self.process = subprocess.Popen([PROGRAM, verb, "--host", "127.0.0.1", "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.errors = self.process.communicate(timeout=10)[1]


def server(*options):
    return Native("rpc-server", *options)


def leftovers():
    """Folders and processes of sessions that are still there."""
    folders = [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("tilewright-session")]
    return folders


def relu_library(folder, shape=(2, 4)):
    x = relay.var("x", shape=shape)
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "llvm")
    path = os.path.join(folder, "net.so")
    lib.export_library(path)
    return path


class Sessions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def fails(self, code, call, *args, **kwargs):
        """The message of a refusal, which comes within a second of a machine that has time for it."""
        times = []
        while not times or (times[-1] >= 1 and len(times) < 4):
            began = time.monotonic()
            with self.assertRaises(tvm.TVMError) as caught:
                call(*args, **kwargs)
            times.append(time.monotonic() - began)
            self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertLess(min(times), 1)
        self.assertEqual(str(caught.exception).count("error[E"), 1, caught.exception)
        return str(caught.exception)

    def test_a_model_on_the_other_side(self):
        with server("--key", "cpu") as native:
            remote = rpc.connect("127.0.0.1", native.port, key="cpu")
            remote.upload(relu_library(self.folder.name))
            self.assertEqual(remote.listdir(), ["net.so"])
            library = remote.load_module("net.so")
            dev = remote.cpu()
            self.assertRegex(repr(dev), r"^remote\[\d+\]:cpu\(0\)$")
            self.assertTrue(dev.exist)
            self.assertFalse(remote.cuda(0).exist)
            module = graph_executor.GraphModule(library["default"](dev))
            values = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
            for given in (values, values.astype("float64"), tvm.nd.array(values), tvm.nd.array(values, dev)):
                module.set_input("x", np.zeros((2, 4), "float32"))
                module.set_input("x", given)
                module.run()
                np.testing.assert_array_equal(module.get_output(0).numpy(), np.maximum(values, 0))
            module.run(x=-values)
            out = tvm.nd.empty((2, 4))
            module.get_output(0, out)
            np.testing.assert_array_equal(out.numpy(), np.maximum(-values, 0))
            there = tvm.nd.empty((2, 4), "float32", dev)
            module.get_output(0, there)
            np.testing.assert_array_equal(there.numpy(), out.numpy())
            times = module.module.time_evaluator("run", dev, number=3, repeat=4)()
            self.assertEqual(len(times.results), 4)
            self.assertTrue(all(0 < t < 1 for t in times.results))
            self.assertEqual(len(module.benchmark(dev, repeat=2, number=2).results), 2)
            self.assertIn("relu", str(module.profile(x=values)))
            module.set_input_zero_copy("x", there)
            module.run()
            np.testing.assert_array_equal(module.get_output(0).numpy(), np.maximum(there.numpy(), 0))
            debug = tvm.contrib.debugger.debug_executor.GraphModuleDebug(library["debug_create"]("default", dev), dev, library["get_graph_json"]())
            debug.set_input("x", values)
            debug.module["run"]()
            np.testing.assert_array_equal(debug.get_output(0).numpy(), np.maximum(values, 0))
            self.assertEqual(len(debug.run_individual(2, 1)), len(debug.nodes))
            with self.assertRaisesRegex(ValueError, "no compiler"):
                tvm.runtime.vm.VirtualMachine(library, dev)
            self.fails(505, module.set_input, "x", np.zeros((3, 4), "float32"))
            self.fails(504, library["default"](dev)["set_input"], "none", there)
            del remote, library, module, there
        self.assertEqual(leftovers(), [])

    def test_arrays(self):
        with server() as native:
            remote = rpc.connect("127.0.0.1", native.port)
            dev = remote.cpu(0)
            for dtype in ("float32", "float64", "int8", "uint8", "int64", "bool", "float16"):
                values = (np.random.default_rng(1).standard_normal((3, 5)) * 9).astype(dtype)
                array = tvm.nd.array(values, dev)
                self.assertEqual((array.shape, array.dtype, array.device), ((3, 5), dtype, dev))
                np.testing.assert_array_equal(array.numpy(), values)
                np.testing.assert_array_equal(array.copyto(tvm.cpu()).numpy(), values)
                other = tvm.nd.empty((3, 5), dtype, dev)
                np.testing.assert_array_equal(array.copyto(other).numpy(), values)
                np.testing.assert_array_equal(tvm.nd.array(values).copyto(dev).numpy(), values)
            view = tvm.nd.array(np.arange(6, dtype="int32"), dev).view((3, 1), relative_byte_offset=12)
            np.testing.assert_array_equal(view.numpy(), [[3], [4], [5]])
            view[:] = np.array([[7], [8], [9]], "int32")
            np.testing.assert_array_equal(view.view((3,)).numpy(), [7, 8, 9])
            self.fails(505, view.view, (4, 1))
            empty = tvm.nd.empty((0, 3), "float32", dev)
            self.assertEqual(empty.numpy().shape, (0, 3))
            with self.assertRaises(ValueError):
                view.copyfrom(np.zeros(4, "int32"))
            self.fails(104, tvm.nd.empty, (1 << 40,), "float32", dev)
            self.fails(101, remote.get_function("runtime.SaveParams"), "w", tvm.nd.array(np.ones(3, "float32")))
            dev, array = remote.cpu(), tvm.nd.array(np.ones(2), remote.cpu())
            del remote  # what is of the session keeps it
            np.testing.assert_array_equal(array.numpy(), np.ones(2))
            again = rpc.PopenSession()
            kept = tvm.nd.array(np.ones(2), again.cpu())
            again.close()
            self.fails(701, kept.numpy)
        self.assertEqual(leftovers(), [])

    def test_functions_and_errors(self):
        with server() as native:
            remote = rpc.connect("127.0.0.1", native.port)
            with self.assertRaises(AttributeError):
                remote.get_function("no.such.function")
            params = remote.get_function("runtime.LoadParams")(remote.get_function("runtime.SaveParams")("w", tvm.nd.array(np.ones(3, "float32"), remote.cpu())))
            self.assertEqual(params[0][0], "w")
            np.testing.assert_array_equal(params[0][1].numpy(), np.ones(3))
            self.assertIn(".params", self.fails(501, remote.get_function("runtime.LoadParams"), b"x" * 64))
            seconds = remote.get_function("runtime.TimeEvaluator")(lambda: None, 2, 1)()  # a callback: it runs here
            self.assertEqual(len(seconds), 1)

            def called():
                return None
            gone = weakref.ref(called)
            remote.get_function("runtime.TimeEvaluator")(called, 2, 1)()
            del called
            many = [tvm.nd.array(np.float32(i), remote.cpu()) for i in range(3000)]
            del many  # all at once
            self.assertEqual(remote.get_function("runtime.NumThreads")() > 0, True)
            self.assertIsNone(gone())  # the other side gave it back

            def breaks():
                raise KeyError("mine")
            with self.assertRaises(tvm.TVMError) as caught:
                remote.get_function("runtime.TimeEvaluator")(breaks, 2, 1)()
            self.assertIn("KeyError: 'mine'", str(caught.exception))
            self.assertEqual(remote.get_function("runtime.NumThreads")() > 0, True)  # the session goes on

    def test_files_stay_in_their_folder(self):
        with server() as native:
            remote = rpc.connect("127.0.0.1", native.port)
            remote.upload(bytearray(b"data"), "a.bin")
            self.assertEqual(bytes(remote.download("a.bin")), b"data")
            with tempfile.TemporaryFile() as file:
                file.write(b"mapped" * 1000)
                file.flush()
                with mmap.mmap(file.fileno(), 0) as mapped:
                    remote.upload(mapped, "a.bin")
                self.assertEqual(bytes(remote.download("a.bin")), b"mapped" * 1000)
                with self.assertRaises(ValueError):  # it is closed
                    remote.upload(mapped, "a.bin")
            for name in ("../a", "/etc/passwd", "a/b", "..", ".", "", "x\0y", "n" * 300):
                self.fails(101, remote.get_function("tvm.rpc.server.upload"), name, b"data")
                self.fails(101, remote.download, name)
                self.fails(101, remote.load_module, name)
            self.fails(102, remote.download, "none.so")
            remote.upload(b"no library", "bad.so")
            self.fails(501, remote.load_module, "bad.so")
            remote.remove("bad.so")
            remote.remove("a.bin")
            self.assertEqual(remote.listdir(), [])
            big = os.urandom(1 << 20) * 80  # more than one frame may have
            remote.upload(big, "big")
            self.assertEqual(remote.download("big") == big, True)

    def test_a_wrong_token_opens_nothing(self):
        other = os.path.join(self.folder.name, "other")
        subprocess.run([PROGRAM, "token", "--new", "-o", other], check=True, stdout=subprocess.DEVNULL)
        derived, expired = os.path.join(self.folder.name, "derived"), os.path.join(self.folder.name, "expired")
        subprocess.run([PROGRAM, "token", "--role", "client", "--days", "1", "-o", derived], check=True, stdout=subprocess.DEVNULL)
        with server("--key", "k") as native:
            rpc.connect("127.0.0.1", native.port, key="k", token=derived).close()
            self.fails(702, rpc.connect, "127.0.0.1", native.port, key="k", token=other)
            with open(derived) as file:
                name, secret = file.read().split()[1:]
            for changed in (name.split("/")[0], name.replace("role=client", "until=99999999999"), name + "/role=client"):  # conditions cannot be taken off
                with open(os.open(expired, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
                    file.write(f"tilewright-token-1 {changed} {secret}\n")
                self.fails(702, rpc.connect, "127.0.0.1", native.port, key="k", token=expired)
            self.fails(101, rpc.connect, "127.0.0.1", native.port, key="another")
            os.chmod(derived, 0o644)
            self.assertIn("read by others", self.fails(101, rpc.connect, "127.0.0.1", native.port, key="k", token=derived))
            self.fails(101, rpc.connect, "example.invalid", native.port, plaintext=True)
            self.fails(703, rpc.connect, "127.0.0.1", native.port, key="k", plaintext=True)
        self.fails(701, rpc.connect, "127.0.0.1", native.port)

    def test_what_is_no_client(self):
        with server("--key", "k") as native:
            for hello in (struct.pack("<ii", 0xFF271, 8) + b"client:k", b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\x16" + os.urandom(200)):
                began = time.monotonic()
                with socket.create_connection(("127.0.0.1", native.port)) as raw:
                    raw.settimeout(1)
                    raw.sendall(hello)
                    answer = b""
                    with contextlib.suppress(ConnectionResetError):
                        while part := raw.recv(4096):
                            answer += part
                if hello[0] != 0x16:
                    self.assertEqual(answer, struct.pack("<i", 0xFF271 + 2))  # as the classic stack says it
                self.assertLess(time.monotonic() - began, 1)
            rpc.connect("127.0.0.1", native.port, key="k").close()
        self.assertIn("E703", native.errors)

    def test_tvmc_runs_there(self):
        from tvm.driver import tvmc
        x = relay.var("x", shape=(2, 4))
        package = tvmc.compile(tvmc.model.TVMCModel(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), {}), target="llvm")
        inputs = {"x": np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)}
        with server() as native:
            result = tvmc.run(package, device="cpu", hostname="127.0.0.1", port=native.port, inputs=inputs, benchmark=True, repeat=2, number=2)
        np.testing.assert_array_equal(result.get_output("output_0"), np.maximum(inputs["x"], 0))
        self.assertEqual(len(result.times.results), 2)

    def test_the_ahead_of_time_executor_there(self):
        x = relay.var("x", shape=(2, 4))
        path = os.path.join(self.folder.name, "aot.so")
        relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "llvm", executor=relay.backend.Executor("aot")).export_library(path)
        values = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
        with server() as native:
            remote = rpc.connect("127.0.0.1", native.port)
            remote.upload(path)
            module = tvm.runtime.executor.AotModule(remote.load_module("aot.so")["default"](remote.cpu()))
            module.set_input("x", values)
            module.run()
            np.testing.assert_array_equal(module.get_output(0).numpy(), np.maximum(values, 0))
            np.testing.assert_array_equal(module.get_output(0, tvm.nd.empty((2, 4))).numpy(), np.maximum(values, 0))

    def test_time_limits_and_waiting(self):
        with server() as native:
            remote = rpc.connect("127.0.0.1", native.port, session_timeout=1)
            began = time.monotonic()
            with self.assertRaises(tvm.TVMError) as caught:
                remote.get_function("runtime.TimeEvaluator")(remote.get_function("runtime.NumThreads"), 1, 1000, 0, 1000)()
            self.assertEqual(caught.exception.code, 602)
            self.assertLess(time.monotonic() - began, 3)
            first, order = rpc.connect("127.0.0.1", native.port), []

            def second():
                session = rpc.connect("127.0.0.1", native.port)  # waits for the device
                order.append("second")
                session.close()
            thread = threading.Thread(target=second)
            thread.start()
            time.sleep(0.3)
            order.append("first")
            first.close()
            thread.join(10)
            self.assertEqual(order, ["first", "second"])
        self.assertEqual(leftovers(), [])

    def test_a_tracker(self):
        with Native("rpc-tracker") as tracker, server("--key", "board", "--tracker", f"127.0.0.1:{tracker.port}") as board:
            client = rpc.connect_tracker("127.0.0.1", tracker.port)
            until = time.monotonic() + 5
            while not client.summary()["queue_info"].get("board", {}).get("free") and time.monotonic() < until:
                time.sleep(0.02)
            self.assertEqual(client.summary(), {"queue_info": {"board": {"free": 1, "pending": 0}}, "server_info": [{"key": "server:board", "addr": ["127.0.0.1", board.port]}]})
            self.assertRegex(client.text_summary(), r"127\.0\.0\.1:\d+ +server:board(.|\n)*board +1 +1 +0")
            first = client.request("board", session_timeout=30)
            order = []

            def wait(name, priority):
                session = rpc.connect_tracker("127.0.0.1", tracker.port).request("board", priority=priority)
                order.append(name)
                time.sleep(0.05)
                session.close()
            waiting = [threading.Thread(target=wait, args=one) for one in (("low", 1), ("high", 5), ("low too", 1))]
            for thread in waiting:
                thread.start()
                time.sleep(0.2)
            self.assertEqual(client.summary()["queue_info"]["board"], {"free": 0, "pending": 3})
            first.close()
            for thread in waiting:
                thread.join(20)
            self.assertEqual(order, ["high", "low", "low too"])
            self.assertEqual(client.request_and_run("board", lambda session: session.get_function("runtime.NumThreads")() > 0), True)
            # A ticket opens once.
            ask = rpc.base.function("rpc.ConnectTracker")("127.0.0.1", tracker.port, "", 0, 5000)
            until = time.monotonic() + 5
            while not client.summary()["queue_info"].get("board", {}).get("free") and time.monotonic() < until:
                time.sleep(0.02)
            ticket = json.loads(ask(json.dumps([4, "board", "", 1])))[1][2]
            rpc.connect("127.0.0.1", board.port, key=ticket).close()
            self.fails(702, rpc.connect, "127.0.0.1", board.port, key=ticket)
            self.fails(702, rpc.connect, "127.0.0.1", board.port, key="board:" + "0" * 32)
            # A guest may not offer devices.
            guest = os.path.join(self.folder.name, "guest")
            subprocess.run([PROGRAM, "token", "--role", "client", "-o", guest], check=True, stdout=subprocess.DEVNULL)
            guest = rpc.base.function("rpc.ConnectTracker")("127.0.0.1", tracker.port, guest, 0, 5000)
            self.assertIn("queue_info", guest("[6]"))
            self.fails(701, guest, json.dumps([3, "board", [9, "board:x"], None]))
            self.assertEqual(set(client.summary()["queue_info"]), {"board"})

    def test_plaintext_is_for_one_machine(self):
        refused = subprocess.run([PROGRAM, "rpc-server", "--host", "192.0.2.1", "--port", "0", "--classic-plaintext"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("E101", refused.stderr)
        with Native("rpc-tracker", "--classic-plaintext") as tracker, server("--classic-plaintext", "--key", "old", "--tracker", f"127.0.0.1:{tracker.port}") as native:
            remote = rpc.connect_tracker("127.0.0.1", tracker.port, plaintext=True).request("old", session_timeout=20)
            np.testing.assert_array_equal(tvm.nd.array(np.arange(4), remote.cpu()).numpy(), np.arange(4))
            remote.close()
            self.fails(701, rpc.connect, "127.0.0.1", native.port, key="old")  # TLS to a port that has none
        self.assertEqual(leftovers(), [])

    def test_who_comes_back_is_known_again(self):
        with Native("rpc-tracker") as tracker:
            client = rpc.connect_tracker("127.0.0.1", tracker.port)

            def devices():
                return client.summary()["queue_info"].get("board", {}).get("free", 0)

            def wait_for(count):
                began = time.monotonic()
                while devices() != count:
                    self.assertLess(time.monotonic() - began, 5)
                    time.sleep(0.02)
            board = server("--key", "board", "--tracker", f"127.0.0.1:{tracker.port}")
            wait_for(1)
            session = client.request("board")
            board.process.kill()
            board.process.communicate()
            with self.assertRaises(tvm.TVMError):
                session.get_function("runtime.NumThreads")()
            with server("--key", "board", "--tracker", f"127.0.0.1:{tracker.port}"):
                wait_for(1)
                port, old = tracker.port, tracker.process
                old.kill()  # and now the tracker
                old.communicate()
                tracker.process = Native("rpc-tracker", "--port", str(port)).process
                client = rpc.connect_tracker("127.0.0.1", port)
                wait_for(1)
        # The killed server's session ended with it; its folder is what a killed server cannot remove.

    def test_python_servers(self):
        started = rpc.Server("127.0.0.1", 0, key="py")
        remote = rpc.connect("127.0.0.1", started.port, key="py")
        self.assertEqual(remote.get_function("rpc.test.addone")(10), 11)
        self.assertEqual(remote.get_function("rpc.test.strcat")("abc", 11), "abc:11")
        with self.assertRaisesRegex(tvm.TVMError, "ValueError: .*abc"):
            remote.get_function("rpc.test.except")("abc")
        self.assertEqual(remote.get_function("rpc.test.add_to_lhs")(10)(5), 15)
        remote.get_function("rpc.test.remote_array_func")(tvm.nd.array(np.ones(4), remote.cpu()))
        ones = remote.get_function("rpc.test.ones")(3)
        self.assertEqual(ones.device, remote.cpu())
        np.testing.assert_array_equal(ones.numpy(), np.ones(3, "float32"))
        self.assertEqual(remote.get_function("rpc.test.remote_return_nd")("get_elem")(ones, 1), 1.0)
        # Programs with free sizes: the session has the compiler.
        x = relay.var("x", shape=(relay.Any(), 4))
        body = relay.Tuple([relay.nn.relu(x), relay.sum(x)])
        path = os.path.join(self.folder.name, "program.so")
        relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm").mod.export_library(path)
        remote.upload(path)
        machine = tvm.runtime.vm.VirtualMachine(remote.load_module("program.so"), remote.cpu())
        for rows in (2, 5, 5, 5):
            values = np.random.default_rng(rows).standard_normal((rows, 4)).astype("float32")
            result = machine.run(values if rows == 2 else tvm.nd.array(values, remote.cpu()))
            self.assertEqual(result[0].device, remote.cpu())
            np.testing.assert_array_equal(result[0].numpy(), np.maximum(values, 0))
            np.testing.assert_allclose(result[1].numpy(), values.sum(), rtol=1e-4)
        self.assertTrue(machine.profile(x=values).calls)
        with self.assertRaises(ValueError):
            machine.run(np.zeros((2, 3), "float32"))
        remote.close()
        started.terminate()
        self.assertEqual(leftovers(), [])

    def test_the_classic_programs(self):
        def start(*options):
            process = subprocess.Popen([sys.executable, "-m", "tilewright.as_tvm", "-m", *options], stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.communicate)
            self.addCleanup(process.send_signal, signal.SIGINT)
            return re.search(r":(\d+)$", process.stdout.readline().strip())[1]
        tracker = start("tvm.exec.rpc_tracker", "--host", "127.0.0.1", "--port", "9560", "--port-end", "9590")
        start("tvm.exec.rpc_server", "--host", "127.0.0.1", "--port", "9600", "--port-end", "9640", "--tracker", f"127.0.0.1:{tracker}", "--key", "pi", "--silent")
        remote = rpc.connect_tracker("127.0.0.1", int(tracker)).request("pi", session_timeout=20)
        self.assertEqual(remote.get_function("rpc.test.addone")(1), 2)
        remote.close()
        shown = subprocess.run([sys.executable, "-m", "tilewright.as_tvm", "-m", "tvm.exec.query_rpc_tracker", "--host", "127.0.0.1", "--port", tracker], capture_output=True, text=True)
        self.assertRegex(shown.stdout, r"server:pi(.|\n)*pi +1 ")

    def test_a_recorded_session_of_the_classic_stack(self):
        """Its client's bytes, with our numbers for its handles and a library of ours: our server's bytes are its server's, handles and times apart."""
        path = relu_library(self.folder.name)[:-3] + ".tar"
        x = relay.var("x", shape=(2, 4))
        relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "llvm").export_library(path)
        with open(path, "rb") as file:
            library = file.read()
        with open(os.path.join(DATA, "rpc", "session_direct.jsonl")) as file:
            chunks = [(row["dir"], bytes.fromhex(row["hex"])) for row in map(json.loads, file)]
        handles: dict = {}

        def answer_of(theirs, ours):
            """Their answer with our handles, which are noted."""
            code, = struct.unpack_from("<i", theirs, 8)
            if code != 4:  # raw bytes
                return theirs
            count, = struct.unpack_from("<i", theirs, 12)
            kinds, at = struct.unpack_from(f"<{count}i", theirs, 16), 16 + 4 * count
            out = bytearray(theirs)
            for kind in kinds:
                if kind in (3, 7):
                    if any(theirs[at:at + 8]):
                        handles.setdefault(theirs[at:at + 8], []).append(ours[at:at + 8])  # theirs is a pointer: the same for each reference
                    out[at:at + 8] = ours[at:at + 8] if any(theirs[at:at + 8]) else theirs[at:at + 8]
                if kind == 7:
                    rank, = struct.unpack_from("<i", theirs, at + 16)
                    at += 32 + 8 * rank
                elif kind == 12:  # seconds
                    size, = struct.unpack_from("<Q", theirs, at)
                    out[at + 8:at + 8 + size] = ours[at + 8:at + 8 + size]
                    at += 8 + size
                else:
                    at += 8
            return bytes(out)

        with server("--key", "direct", "--classic-plaintext") as native, socket.create_connection(("127.0.0.1", native.port)) as raw:
            raw.settimeout(10)
            compared = 0
            for way, chunk in chunks:
                if way == ">":
                    upload = chunk.find(b"net.tar\xbe")
                    if upload > 0 and struct.unpack_from("<i", chunk, 8)[0] == 3:  # the recorded library is code of another compiler
                        body = chunk[8:upload + 7] + struct.pack("<Q", len(library)) + library
                        chunk = struct.pack("<Q", len(body)) + body
                    freed = struct.unpack_from("<i", chunk, 8)[0] == 10 if len(chunk) > 12 else False
                    for theirs, ours in handles.items():
                        if theirs in chunk:
                            chunk = chunk.replace(theirs, ours.pop(0) if freed else ours[-1])
                    raw.sendall(chunk)
                else:
                    ours = b""
                    while len(ours) < len(chunk):
                        part = raw.recv(len(chunk) - len(ours))
                        self.assertTrue(part, f"answer {compared} ended after {ours.hex()}, not {chunk.hex()}")
                        ours += part
                    self.assertEqual(ours.hex(), (answer_of(chunk, ours) if compared else chunk).hex(), f"answer {compared}")
                    compared += 1
            self.assertEqual(compared, 60)
        self.assertEqual(leftovers(), [])

    def test_long_uploads(self):
        """Files that the server writes itself: any length, beside calls with as many bytes, refused names, limits."""
        with server() as native:
            remote = rpc.connect("127.0.0.1", native.port)
            sizes = [0, 1, (256 << 10) - 60, 256 << 10, (1 << 20) + 7, 20 << 20]
            contents = [np.random.RandomState(n).bytes(n) for n in sizes]
            for n, content in zip(sizes, contents):
                remote.upload(bytearray(content), f"f{n}")
                self.fails(101, lambda content=content: remote.upload(bytearray(content), "../outside"))
            for n, content in zip(sizes, contents):
                self.assertEqual(remote.download(f"f{n}"), content)
            remote.upload(bytearray(contents[-2]), "f1")
            self.assertEqual(remote.download("f1"), contents[-2])
            # Another function with a name and as many bytes is called like any other.
            where = remote.get_function("tvm.rpc.server.workpath")("x", contents[-1])
            self.assertTrue(where.endswith("/x"))
            self.assertEqual(sorted(remote.listdir()), sorted(f"f{n}" for n in sizes))
            for _ in range(49):
                remote.upload(bytearray(contents[-1]), "again")
            self.fails(104, lambda: [remote.upload(bytearray(contents[-1]), "again") for _ in range(4)])
            self.assertEqual(remote.download("again"), contents[-1])
            remote.close()
        self.assertEqual(leftovers(), [])

    def test_control_c_ends_waiting(self):
        """A call that waits for another machine ends with the interrupt that the user sends, and what comes after it works."""
        with Native("rpc-tracker") as tracker, server() as native:
            remote = rpc.connect("127.0.0.1", native.port)
            endless = remote.get_function("runtime.TimeEvaluator")(remote.get_function("runtime.NumThreads"), 1, 1, 60000)
            waits = [lambda: rpc.connect_tracker("127.0.0.1", tracker.port).request("no device has this key"), endless]
            for wait in waits:
                threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                began = time.time()
                with self.assertRaises(KeyboardInterrupt):
                    wait()
                self.assertLess(time.time() - began, 2)
            self.fails(701, lambda: remote.get_function("runtime.NumThreads"))
            again = rpc.connect("127.0.0.1", native.port)
            self.assertGreater(again.get_function("runtime.NumThreads")(), 0)
            self.assertEqual(rpc.connect_tracker("127.0.0.1", tracker.port).summary()["server_info"], [])

    def test_a_popen_session(self):
        with contextlib.ExitStack() as many:  # descriptors of two digits
            for _ in range(16):
                many.enter_context(tempfile.TemporaryFile())
            remote = rpc.PopenSession()
            np.testing.assert_array_equal(tvm.nd.array(np.arange(5), remote.cpu()).numpy(), np.arange(5))
            remote.close()
        began = time.time()
        with self.assertRaises(tvm.TVMError):
            rpc.PopenSession("/bin/false")
        self.assertLess(time.time() - began, 5)


if __name__ == "__main__":
    unittest.main()
