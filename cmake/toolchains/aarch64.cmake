# SPDX-License-Identifier: Apache-2.0
# The runtime, the rpc server and the command line for aarch64, by Debian's cross compiler (./dev setup --cross; docs/cross.md):
#   cmake -S . -B build-aarch64 -G Ninja --toolchain cmake/toolchains/aarch64.cmake -DTILEWRIGHT_COMPILER=OFF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(TILEWRIGHT_TRIPLE aarch64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
