# SPDX-License-Identifier: Apache-2.0
# The runtime, the rpc server and the command line for riscv64, by Debian's cross compiler (./dev setup --cross; docs/cross.md):
#   cmake -S . -B build-riscv64 -G Ninja --toolchain cmake/toolchains/riscv64.cmake -DTILEWRIGHT_COMPILER=OFF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(TILEWRIGHT_TRIPLE riscv64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
# Atomic operations on single bytes are functions of the compiler's there.
set(CMAKE_CXX_STANDARD_LIBRARIES_INIT "-l:libatomic.a")
