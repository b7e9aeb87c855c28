# SPDX-License-Identifier: Apache-2.0
"""Targets of code generation, in the classic string, dict, JSON and tag forms.

Every classic kind can be constructed. Only llvm, c and stackvm generate code; a build for another kind is an error."""
from __future__ import annotations

import contextvars
import json
import operator
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ... import _core
from ..error import InvalidTarget
from ...model import error_of
from ..runtime.container import convert_to_object
from .kinds import BOARDS, CHIPS, COMMON, DEFAULTS, DEVICES, KINDS, TAGS

_current: contextvars.ContextVar[tuple["Target", ...]] = contextvars.ContextVar("target", default=())
# Kinds with a code generator, and their attributes that affect the code; other attributes are kept but ignored. C code is portable, with
# special kernels for small processors.
_EFFECTIVE = {"llvm": ("mtriple", "mcpu", "mattr", "mabi", "mfloat-abi", "num-cores", "math"), "c": ("mcpu",), "stackvm": ()}

_INSTEAD = {"ext_dev": "code of such a device is its external code generator's, and the rest is its host's; give it one: Target(\"ext_dev\", host=\"llvm\")",
            "hybrid": "a hybrid script is made of a schedule: tvm.build(schedule, args, \"hybrid\")"}


def _unknown(message: str, hint: str = "") -> Exception:
    return InvalidTarget.of(error_of(401, "UnknownTarget", message, hint))


def _typed(kind: str, key: str, value: Any) -> Any:
    """Converts the attribute's value to its type. Error: 401."""
    wanted = {**KINDS[kind].attrs, **COMMON}.get(key)
    if wanted is None:
        raise _unknown(f"target option '-{key}' is not known for kind '{kind}'", "it has " + ", ".join(sorted(KINDS[kind].attrs)))
    bad = _unknown(f"target option '-{key}' takes {'a list' if wanted is list else f'a value of type {wanted.__name__}'}, not {value!r}")
    if wanted is list:
        items = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, Sequence) else None
        if items is None:
            raise bad
        return [v.strip() if isinstance(v, str) else v for v in items if v != ""]
    if wanted is bool:
        words = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
        text = str(value).lower()
        if text not in words:
            raise bad
        return words[text]
    if wanted is int:
        try:
            return int(value) if isinstance(value, str) else operator.index(value)
        except (TypeError, ValueError):
            raise bad from None
    if not isinstance(value, str):
        raise bad
    return value


def _parse(text: str) -> dict[str, Any]:
    """Parses "llvm -mcpu=x -mattr=+a,+b --system-lib" to a dict; "-key value" is accepted as well."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise _unknown(f"target '{text}' has a quote that is not closed") from None
    if not words:
        raise _unknown("the target is empty", "use a target such as \"llvm\" or \"llvm -mcpu=x86-64-v3\"")
    out: dict[str, Any] = {"kind": words.pop(0)}
    kinds = {**KINDS[out["kind"]].attrs, **COMMON} if out["kind"] in KINDS else {}
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            raise _unknown(f"'{word}' in target '{text}' is no option", "options are written -name=value")
        key, equals, value = word.lstrip("-").partition("=")
        if not equals:
            if kinds.get(key) is str and not (words and not words[0].startswith("-")):
                raise _unknown(f"target '{text}' gives -{key} no value", f"write -{key}=value")
            value = words.pop(0) if words and not words[0].startswith(("-", "+")) else "1"
        if key in out:
            raise _unknown(f"target '{text}' gives -{key} twice")
        out[key] = value
    return out


class TargetKind(str):
    """The name of a kind, and its properties."""

    @property
    def name(self) -> str:
        return str(self)

    @property
    def device_type(self) -> int:
        return KINDS[self].device_type

    @property
    def device_name(self) -> str:
        """"cpu", "ext_dev"."""
        return DEVICES.get(self.device_type, "unknown")

    @property
    def default_keys(self) -> list[str]:
        return list(KINDS[self].keys)

    @property
    def options(self) -> dict[str, str]:
        """Types of the attributes by name."""
        return {name: kind.__name__ for name, kind in {**KINDS[self].attrs, **COMMON}.items()}

    @staticmethod
    def options_from_name(kind_name: str) -> dict[str, str]:
        return Target(kind_name).kind.options


class Target:
    """`Target("llvm -mcpu=znver4")`, `Target({"kind": "llvm", "mcpu": "znver4"})`, the same as JSON text, or a tag such as
    `Target("raspberry-pi/4b-aarch64")`. As a context manager it becomes the current target. Error: 401 (unknown kind, option, tag)."""

    _kind: str
    _attrs: dict[str, Any]
    _keys: list[str]
    host: "Target | None"

    def __init__(self, target: Any, host: Any = None):
        self.tag = ""
        if isinstance(target, Target):
            self._kind, self._attrs, self._keys, self.tag, self.host = target._kind, dict(target._attrs), list(target._keys), target.tag, target.host
        else:
            spec = self._spec(target)
            self._kind = str(spec.pop("kind", "") or "")
            if not self._kind:
                raise ValueError("a target given as a dict needs the key 'kind'")
            if self._kind not in KINDS:
                raise _unknown(f"target kind '{self._kind}' is not known", "there are " + ", ".join(KINDS))
            given_host = spec.pop("host", None)
            self.tag = str(spec.pop("tag", "") or self.tag)
            self._attrs = {key: _typed(self._kind, key, value) for key, value in spec.items()}
            keys = self._attrs.pop("keys", None)
            device = self._attrs.get("device", "")
            self._keys = keys if keys is not None else [*([device] if device else []), *(k for k in KINDS[self._kind].keys if k != device)]
            self.host = Target(given_host) if given_host is not None else None
            if self._kind == "composite" and "devices" in self._attrs:
                self._attrs["devices"] = [Target(d) for d in self._attrs["devices"]]
            if self._kind == "llvm":
                _core.check_target(self.build_text())  # checks the syntax of features and -math
        if host is not None:
            self.host = Target(host)

    def _spec(self, target: Any) -> dict[str, Any]:
        if isinstance(target, str) and target.lstrip().startswith("{"):
            try:
                target = json.loads(target)
            except ValueError as error:
                raise _unknown(f"the target's JSON is damaged: {error}") from None
        if isinstance(target, TargetKind):
            return {"kind": str(target)}
        if isinstance(target, str):
            if target in TAGS:
                self.tag = target if "/" in target else ""
                return dict(TAGS[target])
            if "/" in target.split(" ")[0]:
                raise _unknown(f"no target is tagged '{target}'", "tilewright.target.list_tags() has what there is")
            return _parse(target)
        if isinstance(target, Mapping):
            if "kind" not in target and isinstance(target.get("tag"), str):
                return {**self._spec(target["tag"]), **{k: v for k, v in target.items() if k != "tag"}}
            return {str(k): v for k, v in target.items()}
        raise ValueError(f"target has to be a string or dictionary, not a {type(target).__name__}")

    def __str__(self) -> str:
        words = [self._kind]
        if self._keys != self.kind.default_keys:
            words.append("-keys=" + ",".join(self._keys))
        for key, value in sorted(self._attrs.items()):
            words.append(f"-{key}={','.join(map(str, value)) if isinstance(value, list) else int(value) if isinstance(value, bool) else value}")
        return " ".join(shlex.quote(w) if any(c in w for c in " '\"\\") else w for w in words)

    def build_text(self) -> str:
        """The target string for the compiler. Error 401: no code generator for the kind."""
        if not self.makes_code:
            raise _unknown(f"code is not generated for target kind '{self._kind}'", _INSTEAD.get(self._kind, "use \"llvm\", \"c\" for C source, or \"stackvm\" for byte code; models run on the CPU"))
        if self._kind == "c":
            processor = str(self._attrs.get("mcpu", "")).partition("+")[0]  # "cortex-m4+nodsp"
            return f"c -mcpu={processor}" if processor and not processor.startswith("cortex-r") else "c"  # R: no vectors, and none of M's instructions
        words = [f"-{k}={','.join(v) if isinstance(v, list) else v}" for k in _EFFECTIVE[self._kind] for v in [self._attrs.get(k)] if v]
        return " ".join([self._kind, *words])

    @property
    def makes_code(self) -> bool:
        """Whether the kind has a code generator."""
        return self._kind in _EFFECTIVE

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def _key(self) -> tuple[Any, ...]:
        return str(self), self.host

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        return Target, (self.export(),)

    @property
    def attrs(self) -> dict[str, Any]:
        """The options, with the kind's defaults for those not given."""
        return convert_to_object({**DEFAULTS.get(self._kind, {}), **self._attrs})

    @property
    def kind(self) -> TargetKind:
        return TargetKind(self._kind)

    @property
    def keys(self) -> list[str]:
        return list(self._keys)

    @property
    def mcpu(self) -> str:
        return self._attrs.get("mcpu", "")

    @property
    def mattr(self) -> list[str]:
        return self._attrs.get("mattr", [])

    @property
    def mtriple(self) -> str:
        return self._attrs.get("mtriple", "")

    @property
    def libs(self) -> list[str]:
        return self._attrs.get("libs", [])

    @property
    def model(self) -> str:
        return self._attrs.get("model", "unknown")

    @property
    def device_name(self) -> str:
        return self._attrs.get("device", "")

    @property
    def arch(self) -> str:
        return self._attrs.get("arch", "")

    @property
    def max_num_threads(self) -> int:
        return int(self.attrs.get("max_num_threads", 1))

    @property
    def max_function_args(self) -> int:
        return int(self.attrs.get("max_function_args", -1))

    @property
    def max_block_size_x(self) -> int:
        return int(self.attrs.get("max_block_size_x", self.max_num_threads))

    @property
    def max_block_size_y(self) -> int:
        return int(self.attrs.get("max_block_size_y", self.max_num_threads))

    @property
    def max_shared_memory_per_block(self) -> int:
        return int(self.attrs["max_shared_memory_per_block"])

    @property
    def thread_warp_size(self) -> int:
        return int(self.attrs.get("thread_warp_size", 1))

    @property
    def num_cores(self) -> int:
        return self._attrs.get("num-cores", 0)

    @property
    def supports_integer_dot_product(self) -> bool:
        return bool(self._attrs.get("supports_integer_dot_product", False))

    def get_kind_attr(self, attr_name: str) -> Any:
        return {"default_keys": self.kind.default_keys, "device_type": self.kind.device_type}.get(attr_name)

    def get_target_device_type(self) -> int:
        return self.kind.device_type

    def export(self) -> dict[str, Any]:
        """The dict form."""
        out: dict[str, Any] = {"kind": self._kind, "tag": self.tag, "keys": self.keys, **self._attrs}
        if self.host:
            out["host"] = self.host.export()
        return out

    def with_host(self, host: Any) -> "Target":
        return Target(self, host)

    def resolve(self) -> dict[str, Any]:
        """The effective target on this machine: CPU, vector width, features that the generated code requires."""
        return _core.resolve_target(self.build_text())

    def __enter__(self) -> "Target":
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.set(_current.get()[:-1])

    @staticmethod
    def current(allow_none: bool = True) -> "Target | None":
        stack = _current.get()
        if not stack and not allow_none:
            raise ValueError("Target context required. Please set it by constructing a Target and entering it.")
        return stack[-1] if stack else None

    @staticmethod
    def from_device(device: Any) -> "Target":
        """The target of a device. ValueError if the device does not exist here."""
        kind = device.split(":")[0] if isinstance(device, str) else DEVICES.get(device.device_type, "unknown")
        if kind not in ("cpu", "llvm"):
            raise ValueError(f"Cannot detect device `{device}`; models run on the CPU: Target.from_device(\"cpu\")")
        return Target("llvm")

    @staticmethod
    def list_kinds() -> list[str]:
        return list(KINDS)

    @staticmethod
    def canon_target(target: Any) -> "Target | None":
        return None if target is None else Target(target)

    @staticmethod
    def canon_target_and_host(target: Any, target_host: Any = None) -> tuple["Target | None", "Target | None"]:
        """The target with its host, and the host."""
        if target is None:
            if target_host is not None:
                raise ValueError("Target host is not empty when target is empty.")
            return None, None
        canonical = Target(target, target_host)
        return canonical, canonical.host

    @staticmethod
    def canon_target_map_and_host(target_map: Mapping[Any, Any], target_host: Any = None) -> tuple[dict[Any, "Target"], "Target | None"]:
        """Targets with the host: of the keys where the values are modules or other things, else of the values."""
        out: dict[Any, Any] = {}
        for key, value in target_map.items():
            if not isinstance(value, (str, Mapping, Target)) or isinstance(key, Target):
                target = Target(key)
                target_host = target.host or target_host
                out[Target(target, target_host)] = value
                continue
            target, target_host = Target.canon_target_and_host(value, target_host)
            out[key] = target  # type: ignore[assignment]
        return out, Target.canon_target(target_host)

    @staticmethod
    def canon_multi_target(multi_targets: Any) -> "list[Target] | None":
        """Converts one target, a list, or a dict by device to a list of targets."""
        if multi_targets is None:
            return None
        if isinstance(multi_targets, Mapping) and "kind" not in multi_targets and "tag" not in multi_targets:
            if not multi_targets:
                raise ValueError("the dict of targets is empty")
            return [_of_device(device, target) for device, target in multi_targets.items()]
        if isinstance(multi_targets, (list, tuple)):
            if not multi_targets:
                raise ValueError("the list of targets is empty")
            return [Target(t) for t in multi_targets]
        return [Target(multi_targets)]

    @staticmethod
    def canon_multi_target_and_host(target: Any, target_host: Any = None) -> list["Target"]:
        """As canon_multi_target, each with the host."""
        targets = Target.canon_multi_target(target)
        if targets is None:
            raise ValueError("no target is given")
        return [Target(t, target_host) if target_host is not None else t for t in targets]


Target.check_and_update_host_consist = staticmethod(lambda target, host=None, target_is_dict_key=True: Target.canon_target_and_host(target, host))  # type: ignore[attr-defined]


def _of_device(device: Any, target: Any) -> Target:
    """Checks an entry of a dict by device: the target must be for that device. Error: 401."""
    made = Target(target)
    number = getattr(device, "device_type", device)
    if isinstance(number, str):
        name = number.split(":")[0]
        number = next((n for n, d in DEVICES.items() if d == name), KINDS[name].device_type if name in KINDS else 2 if name == "gpu" else 0)
    if not isinstance(number, int) or number not in DEVICES:
        raise _unknown(f"'{device}' is no device", "there are " + ", ".join(DEVICES.values()))
    if number == KINDS["ext_dev"].device_type and made.kind == "llvm":
        return Target("ext_dev", host=made)  # the device shares the CPU's memory, and its kernels are compiled for the host
    if made.kind.device_type != number:
        raise _unknown(f"target '{made}' is for the device {DEVICES.get(made.kind.device_type)}, not for {DEVICES[number]}")
    return made


def list_tags() -> dict[str, "Target"]:
    """Each tag with its target."""
    return {name: Target(name) for name in sorted(TAGS) if "/" in name}


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> Target:
    """Registers a tag. ValueError if the name is taken."""
    if name in TAGS and not override:
        raise ValueError(f"Tag \"{name}\" has been previously defined; override=True replaces it")
    made = Target(dict(config))
    TAGS[name] = dict(config)
    return made


def create(target: Any) -> Target:
    return Target(target)


def _named(kind: str, device: str, model: str, options: Any) -> Target:
    words = [kind, *([f"-device={device}"] if device else []), f"-model={model}"]
    return Target(" ".join([*words, *([options] if isinstance(options, str) else options or [])]))


def cuda(model: str = "unknown", arch: str | None = None, options: Any = None) -> Target:
    return _named("cuda" + (f" -arch={arch}" if arch else ""), "", model, options)


def rocm(model: str = "unknown", options: Any = None) -> Target:
    return _named("rocm", "", model, options)


def mali(model: str = "unknown", options: Any = None) -> Target:
    return _named("opencl", "mali", model, options)


def intel_graphics(model: str = "unknown", options: Any = None) -> Target:
    return _named("opencl", "intel_graphics", model, options)


def bifrost(model: str = "unknown", options: Any = None) -> Target:
    return _named("opencl", "bifrost", model, options)


def arm_cpu(model: str = "unknown", options: Any = None) -> Target:
    """A board by its name; for others use `Target("llvm -mtriple=... -mcpu=...")`."""
    triple = f" -mtriple={BOARDS[model]} -mattr=+neon" if model in BOARDS else ""
    cpu = " -mcpu=cortex-a72" if model in ("rasp4b", "rasp4b64") else ""
    return _named("llvm" + triple + cpu, "arm_cpu", CHIPS.get(model, model), options)


def rasp(options: Any = None) -> Target:
    """arm_cpu("rasp3b"), under an older name."""
    return arm_cpu("rasp3b", options)


def riscv_cpu(model: str = "sifive-u54", options: Any = None) -> Target:
    """A RISC-V processor by its name; for others use `Target("llvm -mtriple=... -mcpu=...")`."""
    known = {"sifive-e31": ("sifive-e31", "riscv32-unknown-linux-gnu", "+m,+a,+c", "ilp32"), "sifive-e76": ("sifive-e76", "riscv32-unknown-linux-gnu", "+m,+a,+c", "ilp32"),
             "sifive-u54": ("sifive-u54", "riscv64-unknown-linux-gnu", "+m,+a,+f,+d,+c", "lp64d"), "sifive-u74": ("sifive-u74", "riscv64-unknown-linux-gnu", "+m,+a,+f,+d,+c", "lp64d")}
    if model not in known:
        return _named("llvm", "arm_cpu", model, options)
    cpu, triple, features, abi = known[model]
    return _named(f"llvm -mtriple={triple} -mcpu={cpu} -mabi={abi} -mattr={features}", "arm_cpu", model, options)


_MICRO = {"host": "", "atsamd51": "cortex-m4", "cxd5602gg": "cortex-m4", "esp32": "", "imxrt10xx": "cortex-m7", "mps2_an521": "cortex-m33", "mps3_an547": "cortex-m55", "nrf52840": "cortex-m4+nodsp",
          "nrf5340dk": "cortex-m33", "rp2040": "cortex-m0", "sam3x8e": "cortex-m3", "stm32f746xx": "cortex-m7", "stm32h7xx": "cortex-m7", "stm32l4r5zi": "cortex-m4", "stm32u5xx": "cortex-m33", "zynq_mp_r5": "cortex-r5"}


def micro(model: str = "unknown", options: Any = None) -> Target:
    """A bare-metal board by its processor's name: C code. ValueError if it is unknown."""
    if model not in _MICRO:
        raise ValueError(f"Model {model} not supported by tvm.target.micro. Available models are: {', '.join(_MICRO)}")
    extra = f" {' '.join(options) if isinstance(options, (list, tuple)) else options}" if options else ""
    return Target("c -keys=" + ("arm_cpu,cpu" if _MICRO[model] else "cpu") + (f" -mcpu={_MICRO[model]}" if _MICRO[model] else "") + f" -model={model}{extra}")


def adreno(model: str = "unknown", options: Any = None) -> Target:
    return _named("opencl", "adreno", model, options)


def vta(model: str = "unknown", options: Any = None) -> Target:
    return _named(f"ext_dev -keys=vta,cpu" + (f" -model={model}" if model != "unknown" else ""), "vta", "unknown", options)


def hexagon(cpu_ver: str = "v66", **kwargs: Any) -> Target:
    """A Hexagon processor by its version; descriptive only, there is no code generator for it."""
    known = ("v60", "v62", "v65", "v66", "v67", "v68", "v69", "v71", "v73")
    vector = int(kwargs.get("hvx", 128))
    if cpu_ver.rstrip("t") not in known or vector not in (0, 64, 128):
        raise ValueError(f"hexagon version should be one of {', '.join(known)} and hvx 0, 64 or 128, not '{cpu_ver}' and {vector}")
    features = "" if not vector else f" -mattr=+hvx{cpu_ver},+hvx-length{vector}b"
    return Target(f"hexagon -mcpu=hexagon{cpu_ver} -mtriple=hexagon{features}")


from . import codegen, compilation_config, datatype  # noqa: E402
from .compilation_config import CompilationConfig, make_compilation_config  # noqa: E402
from .generic_func import GenericFunc, generic_func, get_native_generic_func, override_native_generic_func  # noqa: E402
from .virtual_device import VirtualDevice  # noqa: E402

__all__ = ["adreno", "CompilationConfig", "GenericFunc", "Target", "TargetKind", "VirtualDevice", "arm_cpu", "bifrost", "codegen", "compilation_config", "create", "cuda",
           "datatype", "generic_func", "get_native_generic_func", "hexagon", "intel_graphics", "list_tags", "make_compilation_config", "mali", "micro",
           "override_native_generic_func", "register_tag", "riscv_cpu", "rocm", "vta"]
