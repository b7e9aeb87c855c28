# SPDX-License-Identifier: Apache-2.0
"""A session with a device: access to its functions, memory and models, as in tvm.rpc."""
from __future__ import annotations

import json
import select
import socket
import threading
from typing import Any

from ..contrib import graph_of_kernels
from ..contrib.debugger.debug_executor import GraphModuleDebug
from ..rpc.base import function
from ..rpc.client import RPCSession
from ..runtime.executor import AotModule
from ..runtime.module import Module
from ..runtime.ndarray import NDArray, array
from .transport import IoTimeoutError, TransportClosedError, TransportTimeouts


class SessionTerminatedError(Exception):
    """The session has ended or was not started."""


class _Line(threading.Thread):
    """Forwards bytes between a socket and a transport, which handles one call at a time."""

    def __init__(self, transport: Any, end: socket.socket):
        super().__init__(daemon=True)
        self._transport, self._end = transport, end

    def run(self) -> None:
        try:
            while True:
                if select.select([self._end], [], [], 0)[0]:
                    data = self._end.recv(4096)
                    if not data:
                        return
                    self._transport.write(data, None)
                try:
                    self._end.sendall(self._transport.read(4096, 0.02))
                except IoTimeoutError:
                    pass
        except (OSError, TransportClosedError):
            pass  # the peer sees the socket closed
        finally:
            self._end.close()


class Session:
    """`with Session(project.transport()) as session:` session.device, session.create_aot_executor(), session.get_system_lib()."""

    def __init__(self, transport_context_manager: Any, session_name: str = "micro-rpc", timeout_override: TransportTimeouts | None = None):
        self._manager, self._name, self._timeouts = transport_context_manager, session_name, timeout_override
        self._session: RPCSession | None = None

    def __enter__(self) -> Session:
        transport = self._manager.__enter__()
        try:
            timeouts = self._timeouts or transport.timeouts()
            ours, theirs = socket.socketpair()
            self._line = _Line(transport, theirs)
            self._line.start()
            self._session = RPCSession(function("rpc.ConnectMicro")(ours.detach(), float(timeouts.session_start_timeout_sec), float(timeouts.session_established_timeout_sec)))
        except BaseException:
            self._manager.__exit__(None, None, None)
            raise
        self.device = self._session.cpu(0)
        self.context = self.device
        return self

    def __exit__(self, *error: Any) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
            self._line.join(5)
        self._manager.__exit__(*error)

    def _open(self) -> RPCSession:
        if self._session is None:
            raise SessionTerminatedError("the session is not open: use it inside of `with`")
        return self._session

    @property
    def rpc(self) -> RPCSession:
        return self._open()

    _rpc = rpc

    def get_system_lib(self) -> Module:
        return self._open().system_lib()

    def create_aot_executor(self, name: str = "") -> Module:
        """The executor for AotModule. `name` selects one of several models."""
        create = self._open().get_function("tvm.aot_executor.create")
        return create(self.get_system_lib(), self.device, name) if name else create(self.get_system_lib(), self.device)


def create_local_aot_executor(session: Session, name: str = "") -> AotModule:
    """The device's model, with inputs and outputs accessed from here."""
    return AotModule(session.create_aot_executor(name))


class GraphOnDevice(graph_of_kernels.GraphOfKernels):
    """A graph that this side walks, with the calls of a GraphModule; tensors are the device's: `get_output(0).numpy()`."""

    def set_input(self, key: Any = None, value: Any = None, **params: Any) -> None:
        if key is not None:
            super().set_input(key, value)
        for name, tensor in params.items():
            if self.get_input_index(name) >= 0:
                super().set_input(name, tensor)

    def run(self, **inputs: Any) -> None:
        self.set_input(**inputs)
        super().run()


def _kernels(mod: Any) -> Module:
    library = mod if isinstance(mod, Module) else Module(mod)
    try:
        library.get_function("_lookup_linked_param")
    except AttributeError:
        return library
    raise ValueError("the weights are in the device's code, which a graph that is walked from here does not find: build without link-params")


def create_local_graph_executor(graph_json_str: str, mod: Module, device: Any) -> GraphOnDevice:
    """A graph that this side walks, and whose kernels and tensors are the device's: `mod` is session.get_system_lib(). Weights are inputs:
    `set_input(**lib.get_params())`."""
    return GraphOnDevice(json.loads(graph_json_str), _kernels(mod), device)


class _Calls:
    """The executor's functions of a graph. As functions of the registry they could not return the device's tensors."""

    def __init__(self, graph: graph_of_kernels.GraphOfKernels):
        self._graph = graph

    def __getitem__(self, name: str) -> Any:
        return self._node_output if name == "get_node_output" else getattr(self._graph, name)

    def _node_output(self, key: Any, output: int = 0) -> NDArray:
        """A copy, which a file can be written of."""
        return array(self._graph.get_node_output(key, output).numpy())

    @staticmethod
    def _taken(tensor: Any) -> Any:
        return tensor


def create_local_debug_executor(graph_json_str: str, mod: Module, device: Any, dump_root: str | None = None) -> GraphModuleDebug:
    """Such a graph with the calls of the debug executor: `run` writes outputs and times of every node (the way to the device and back
    included) below `dump_root`."""
    return GraphModuleDebug(_Calls(graph_of_kernels.GraphOfKernels(json.loads(graph_json_str), _kernels(mod), device)), device, graph_json_str, dump_root)


__all__ = ["Session", "SessionTerminatedError", "create_local_aot_executor", "create_local_debug_executor", "create_local_graph_executor"]
