# SPDX-License-Identifier: Apache-2.0
"""Target kinds with their attributes, and tags (named targets)."""
from __future__ import annotations

from typing import Any, NamedTuple


class Kind(NamedTuple):
    device_type: int
    keys: tuple[str, ...]
    attrs: dict[str, type]


def _attrs(text: str) -> dict[str, type]:
    """Parses "a b:int c:bool d:list" to attribute types; the default type is string."""
    types = {"": str, "str": str, "int": int, "bool": bool, "list": list}
    return {name: types[kind] for name, _, kind in (word.partition(":") for word in text.split())}


COMMON = _attrs("keys:list tag device model libs:list from_device:int")
_LINK = "link-params:bool unpacked-api:bool interface-api runtime executor system-lib:bool"
_GPU = "max_num_threads:int max_threads_per_block:int max_shared_memory_per_block:int thread_warp_size:int registers_per_block:int max_function_args:int"
_LIMITS = "max_block_size_x:int max_block_size_y:int max_block_size_z:int max_push_constants_size:int max_uniform_buffer_range:int max_storage_buffer_range:int max_per_stage_descriptor_storage_buffer:int"
_VULKAN = ("supports_float16:bool supports_float32:bool supports_float64:bool supports_int8:bool supports_int16:bool supports_int32:bool supports_int64:bool "
           "supports_8bit_buffer:bool supports_16bit_buffer:bool supports_storage_buffer_storage_class:bool supports_push_descriptor:bool "
           "supports_dedicated_allocation:bool supports_integer_dot_product:bool supported_subgroup_operations:int device_type device_name driver_name "
           f"driver_version:int vulkan_api_version:int max_spirv_version:int {_LIMITS}")

KINDS: dict[str, Kind] = {
    "llvm": Kind(1, ("cpu",), _attrs(f"mattr:list mcpu mtriple mfloat-abi mabi num-cores:int fast-math:bool fast-math-nnan:bool fast-math-ninf:bool fast-math-nsz:bool "
                                     f"fast-math-arcp:bool fast-math-contract:bool fast-math-reassoc:bool opt-level:int cl-opt:list jit vector-width:int math {_LINK}")),
    "c": Kind(1, ("cpu",), _attrs(f"mcpu march mattr:list workspace-byte-alignment:int constants-byte-alignment:int {_LINK}")),
    "stackvm": Kind(1, (), _attrs("system-lib:bool")),
    "hybrid": Kind(1, (), _attrs("system-lib:bool")),
    "cuda": Kind(2, ("cuda", "gpu"), _attrs(f"mcpu arch l2_cache_size_bytes:int system-lib:bool {_GPU}")),
    "nvptx": Kind(2, ("cuda", "gpu"), _attrs(f"mcpu mtriple {_GPU}")),
    "rocm": Kind(10, ("rocm", "gpu"), _attrs(f"mcpu mtriple mattr:list {_GPU}")),
    "opencl": Kind(4, ("opencl", "gpu"), _attrs(f"texture_spatial_limit:int texture_depth_limit:int image_base_address_alignment:int {_GPU}")),
    "metal": Kind(8, ("metal", "gpu"), _attrs(_GPU)),
    "vulkan": Kind(7, ("vulkan", "gpu"), _attrs(f"mattr:list {_GPU} {_VULKAN}")),
    "webgpu": Kind(15, ("webgpu", "gpu"), _attrs(_GPU)),
    "sdaccel": Kind(4, ("sdaccel", "hls"), _attrs("system-lib:bool")),
    "aocl": Kind(5, ("aocl", "hls"), _attrs("system-lib:bool")),
    "aocl_sw_emu": Kind(5, ("aocl", "hls"), _attrs("system-lib:bool")),
    "hexagon": Kind(14, ("hexagon", "cpu"), _attrs("mattr:list mcpu mtriple llvm-options:list num-cores:int vtcm-capacity:int system-lib:bool link-params:bool")),
    "ext_dev": Kind(12, (), _attrs("system-lib:bool")),
    "composite": Kind(1, (), _attrs("devices:list")),
}
# Default options by kind.
DEFAULTS: dict[str, dict[str, Any]] = {
    "cuda": {"max_num_threads": 1024, "thread_warp_size": 32}, "nvptx": {"max_num_threads": 1024, "thread_warp_size": 32},
    "rocm": {"max_num_threads": 256, "thread_warp_size": 64}, "opencl": {"max_num_threads": 256, "thread_warp_size": 1},
    "metal": {"max_num_threads": 256, "thread_warp_size": 16, "max_function_args": 31}, "vulkan": {"max_num_threads": 256, "thread_warp_size": 1}, "webgpu": {"max_num_threads": 256},
}
DEVICES = {1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 5: "aocl", 6: "sdaccel", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 12: "ext_dev",
           13: "micro_dev", 14: "hexagon", 15: "webgpu"}


def _aws(size: str, cores: int, mcpu: str) -> tuple[str, dict[str, Any]]:
    return f"aws/cpu/{size}", {"kind": "llvm", "keys": ["x86", "cpu"], "mcpu": mcpu, "num-cores": cores}


def _pi(name: str, mtriple: str, mcpu: str, mattr: list[str]) -> tuple[str, dict[str, Any]]:
    arm = {"kind": "llvm", "mtriple": mtriple, "mcpu": mcpu, "mattr": mattr, "num-cores": 4}
    return f"raspberry-pi/{name}", {**arm, "keys": ["arm_cpu", "cpu"], "device": "arm_cpu", "host": dict(arm)}


def _nvidia(name: str, arch: str, registers: int = 65536, shared: int = 49152) -> tuple[str, dict[str, Any]]:
    return f"nvidia/{name}", {"kind": "cuda", "keys": ["cuda", "gpu"], "arch": arch, "max_shared_memory_per_block": shared, "max_threads_per_block": 1024,
                              "thread_warp_size": 32, "registers_per_block": registers}


TAGS: dict[str, dict[str, Any]] = dict([
    ("llvm", {"kind": "llvm"}), ("host", {"kind": "llvm"}),
    # Each library contains kernels for all of these processors.
    ("portable", {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "x86-64-v2,x86-64-v3,x86-64-v4"}),
    _aws("c5.large", 1, "skylake-avx512"), _aws("c5.xlarge", 2, "skylake-avx512"), _aws("c5.2xlarge", 4, "skylake-avx512"),
    _aws("c5.4xlarge", 8, "skylake-avx512"), _aws("c5.9xlarge", 18, "skylake-avx512"), _aws("c5.12xlarge", 24, "cascadelake"),
    _aws("c5.18xlarge", 36, "skylake-avx512"), _aws("c5.24xlarge", 48, "cascadelake"),
    _pi("4b-aarch64", "aarch64-linux-gnu", "cortex-a72", ["+neon"]), _pi("4b-aarch32", "armv8l-linux-gnueabihf", "cortex-a72", ["+neon"]),
    _pi("4b-64", "aarch64-linux-gnu", "cortex-a72", ["+neon"]), _pi("3b-plus-aarch64", "aarch64-linux-gnu", "cortex-a53", ["+neon"]),
    _nvidia("nvidia-h100", "sm_90"), _nvidia("nvidia-a100", "sm_80"), _nvidia("nvidia-a40", "sm_86"), _nvidia("nvidia-a10", "sm_86"),
    _nvidia("nvidia-a10g", "sm_86"), _nvidia("nvidia-t4", "sm_75"), _nvidia("nvidia-v100", "sm_70"), _nvidia("tesla-v100", "sm_70"),
    _nvidia("tesla-p100", "sm_60"), _nvidia("tesla-p40", "sm_61"), _nvidia("tesla-p4", "sm_61"), _nvidia("tesla-k80", "sm_37"),
    _nvidia("geforce-rtx-4090", "sm_89"), _nvidia("geforce-rtx-3090", "sm_86"), _nvidia("geforce-rtx-3090-ti", "sm_86"),
    _nvidia("geforce-rtx-3080", "sm_86"), _nvidia("geforce-rtx-3080-ti", "sm_86"), _nvidia("geforce-rtx-3070", "sm_86"), _nvidia("geforce-rtx-3060", "sm_86"),
    _nvidia("geforce-rtx-2080-ti", "sm_75"), _nvidia("geforce-rtx-2080", "sm_75"), _nvidia("geforce-rtx-2070", "sm_75"), _nvidia("geforce-rtx-2060", "sm_75"),
    _nvidia("geforce-gtx-1080-ti", "sm_61"), _nvidia("geforce-gtx-1080", "sm_61"), _nvidia("geforce-gtx-1070", "sm_61"), _nvidia("geforce-gtx-1060", "sm_61"),
    _nvidia("nvidia-titan-x", "sm_61"), _nvidia("nvidia-titan-v", "sm_70"), _nvidia("nvidia-titan-rtx", "sm_75"),
    _nvidia("jetson-agx-orin-64gb", "sm_87"), _nvidia("jetson-agx-orin-32gb", "sm_87"), _nvidia("jetson-agx-xavier", "sm_72"), _nvidia("jetson-tx2", "sm_62", 32768),
    _nvidia("jetson-tx1", "sm_53", 32768), _nvidia("jetson-nano", "sm_53", 32768),
])

# Boards by name: their triples, and the chips of those that have another name.
BOARDS = {"pixel2": "aarch64-linux-android", "mate10": "aarch64-linux-android", "mate10pro": "aarch64-linux-android", "p20": "aarch64-linux-android",
           "p20pro": "aarch64-linux-android", "rasp3b": "armv7l-linux-gnueabihf", "rasp4b": "armv8l-linux-gnueabihf", "rasp4b64": "aarch64-linux-gnu",
           "rk3399": "aarch64-linux-gnu", "pynq": "armv7a-linux-eabi", "ultra96": "aarch64-linux-gnu", "jetson-tx2": "aarch64-linux-gnu"}
CHIPS = {"pixel2": "snapdragon835", "mate10": "kirin970", "mate10pro": "kirin970", "p20": "kirin970", "p20pro": "kirin970", "rasp3b": "bcm2837", "rasp4b": "bcm2711", "rasp4b64": "bcm2711"}

__all__ = ["BOARDS", "CHIPS", "COMMON", "DEFAULTS", "DEVICES", "KINDS", "Kind", "TAGS"]
