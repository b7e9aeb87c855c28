# SPDX-License-Identifier: Apache-2.0
# The runtime, the rpc server and the command line for i686, by Debian's cross compiler (./dev setup --cross; docs/cross.md):
#   cmake -S . -B build-i686 -G Ninja --toolchain cmake/toolchains/i686.cmake -DTILEWRIGHT_COMPILER=OFF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR i686)
set(TILEWRIGHT_TRIPLE i686-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
