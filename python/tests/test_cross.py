# SPDX-License-Identifier: Apache-2.0
"""Builds for other processors: targets as scripts of the classic stack write them, files of one processor each, and compilers that link them."""
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import tilewright
from tilewright import classic as tw
from tilewright.classic import relay, te
from tilewright.classic.contrib import cc
from tilewright.classic.runtime import CSourceModuleCreate
from tilewright.classic.runtime.module import load_static_library
from tilewright.classic.target import Target, arm_cpu, riscv_cpu

AARCH64 = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"


def module():
    x = relay.var("x", shape=(2, 8), dtype="float32")
    weight = np.random.default_rng(5).standard_normal((6, 8)).astype("float32")
    return tw.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(weight)))))


def machine(path):
    with open(path, "rb") as file:
        head = file.read(20)
    return struct.unpack_from("<H", head, 18)[0], {1: 32, 2: 64}[head[4]]


class OtherProcessors(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = self.place.name

    def test_targets_of_boards(self):
        for target, number, bits in ((AARCH64, 183, 64), (arm_cpu("rasp4b64"), 183, 64), (arm_cpu("rasp4b"), 40, 32), (arm_cpu("rasp3b"), 40, 32),
                                     (arm_cpu("pynq"), 40, 32), (Target("raspberry-pi/4b-aarch64"), 183, 64), (riscv_cpu("sifive-u74"), 243, 64),
                                     (riscv_cpu("sifive-e31"), 243, 32), ("llvm -mtriple=i686-linux-gnu -num-cores=2", 3, 32),
                                     ("llvm -mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+c,+v -mabi=lp64d", 243, 64)):
            with self.subTest(target=str(target)):
                path = os.path.join(self.folder, "net.o")
                # One process links for RISC-V of 32 or of 64 bits, and for nothing after 32-bit x86.
                made = subprocess.run([sys.executable, __file__, "--export", str(target), path], capture_output=True, text=True)
                self.assertEqual(made.returncode, 0, made.stderr)
                self.assertEqual(machine(path), (number, bits))

    def test_are_not_loaded_here(self):
        lib = relay.build(module(), target=AARCH64)
        path = os.path.join(self.folder, "net.so")
        lib.export_library(path)
        for load in (lambda: tw.runtime.load_module(path), lambda: tilewright.load(path), lambda: lib["default"](tw.cpu())):
            with self.assertRaisesRegex(tilewright.Error, "E503.*for AArch64.*this machine is"):
                load()
        lib = relay.build(module(), target="llvm -mtriple=armv7a-linux-gnueabihf")
        lib.export_library(path)
        with self.assertRaisesRegex(tilewright.Error, r"E503.*for ARM \(32 bits\).*this machine is"):
            tw.runtime.load_module(path)

    def test_a_library_object_is_exported_without_loading(self):
        """`_, lib, _ = relay.build(...)` and `tvm.build(...)` give a library that is saved and exported; a call says whose code it is."""
        a = te.placeholder((64,), name="A")
        b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
        for target, number in (("llvm -mtriple=armv7l-linux-gnueabihf", (40, 32)), (AARCH64, (183, 64)), ("llvm -mtriple=arm-none-eabi -mcpu=cortex-m4", (40, 32))):
            function = tw.build(te.create_schedule(b.op), [a, b], target, name="add_one")
            _, lib, _ = relay.build(module(), target)
            for n, library in enumerate((function, lib)):
                with self.subTest(target, n=n):
                    path = os.path.join(self.folder, f"l{n}.o")
                    library.save(path)
                    self.assertEqual(machine(path), number)
                    self.assertIn("add_one" if n == 0 else "dense", library.get_source("asm"))
                    library.export_library(os.path.join(self.folder, "l.tar"))
            if "none" not in target:
                with self.assertRaisesRegex(tilewright.Error, "E503.*for A.*this machine is"):
                    function(tw.nd.empty((64,)), tw.nd.empty((64,)))

    def test_code_for_a_processor_that_can_more(self):
        """What only a newer processor runs is saved and read as text here; calling it says what is lacking."""
        if platform.machine() != "x86_64":
            self.skipTest("the other processor is an x86-64 one")
        _, lib, _ = relay.build(module(), "llvm -mcpu=graniterapids")
        self.assertIn("dense", lib.get_source("asm"))
        path = os.path.join(self.folder, "l.o")
        lib.save(path)
        self.assertEqual(machine(path), (62, 64))
        lib.export_library(os.path.join(self.folder, "l.so"))
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            here = "avx512_fp16" in file.read()  # the kernels take no more of it
        if not here:
            with self.assertRaisesRegex(tilewright.Error, "E503"):
                lib["default"](tw.cpu())

    def test_a_file_is_for_one_processor(self):
        relay.build(module(), target="llvm -mtriple=x86_64-linux-gnu").export_library(os.path.join(self.folder, "other.o"))
        lib = relay.build(module(), target=AARCH64)
        lib.import_module(load_static_library(os.path.join(self.folder, "other.o"), ["f"]))
        with self.assertRaisesRegex(ValueError, "is for x86-64, and the library is for AArch64"):
            lib.export_library(os.path.join(self.folder, "both.so"))

    def test_a_compiler_that_is_missing(self):
        lib = relay.build(module(), target=AARCH64)
        with self.assertRaisesRegex(FileNotFoundError, "'sparc64-linux-gnu-gcc' is not here; on Debian: apt-get install g\\+\\+-sparc64-linux-gnu"):
            lib.export_library(os.path.join(self.folder, "net.so"), fcompile=cc.cross_compiler("sparc64-linux-gnu-gcc"))

    @unittest.skipUnless(shutil.which("aarch64-linux-gnu-gcc"), "there is no aarch64-linux-gnu-gcc: ./dev setup --cross installs it")
    def test_a_cross_compiler_links_source_too(self):
        lib = relay.build(module(), target=AARCH64)
        lib.import_module(CSourceModuleCreate("int extra_number(void) { return 42; }\n", "c", ["extra_number"]))
        path = os.path.join(self.folder, "net.so")
        lib.export_library(path, fcompile=cc.cross_compiler("aarch64-linux-gnu-gcc"))
        self.assertEqual(machine(path), (183, 64))
        shown = subprocess.run(["aarch64-linux-gnu-nm", "-D", path], capture_output=True, text=True, check=True).stdout
        self.assertIn(" T extra_number", shown)
        self.assertIn("tw_artifact_v1", shown)
        with self.assertRaisesRegex(ValueError, "for x86-64|x86_64.*aarch64|aarch64.*x86_64"):
            relay.build(module(), target="llvm -mtriple=x86_64-linux-gnu").export_library(path, fcompile=cc.cross_compiler("aarch64-linux-gnu-gcc"))

    @unittest.skipUnless(shutil.which("arm-none-eabi-gcc"), "there is no arm-none-eabi-gcc: apt-get install gcc-arm-none-eabi")
    def test_objects_for_a_microcontroller(self):
        lib = relay.build(module(), target="llvm -mtriple=arm-none-eabi -mcpu=cortex-m4")
        lib.import_module(CSourceModuleCreate("int extra_number(void) { return 42; }\n", "c", ["extra_number"]))
        path = os.path.join(self.folder, "net.o")
        lib.export_library(path, fcompile=cc.cross_compiler("arm-none-eabi-gcc", options=["-mcpu=cortex-m4", "-mthumb"]))
        self.assertEqual(machine(path), (40, 32))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--export"]:
        sys.exit(relay.build(module(), target=sys.argv[2]).export_library(sys.argv[3]) != sys.argv[3])
    unittest.main()
