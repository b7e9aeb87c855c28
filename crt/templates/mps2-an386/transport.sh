#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The board as QEMU has it; its UART 0 is standard input and output. Each instruction takes a nanosecond there, so that
# times are counts of instructions, not of cycles.
command -v qemu-system-arm >/dev/null || { echo "no qemu-system-arm: apt-get install qemu-system-arm" >&2; exit 1; }
exec qemu-system-arm -M mps2-an386 -nographic -monitor none -icount shift=0 \
  -chardev stdio,id=uart,signal=off -serial chardev:uart -kernel "$(dirname "$0")/build/main"
