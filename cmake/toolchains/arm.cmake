# SPDX-License-Identifier: Apache-2.0
# The runtime, the rpc server and the command line for arm, by Debian's cross compiler (./dev setup --cross; docs/cross.md):
#   cmake -S . -B build-arm -G Ninja --toolchain cmake/toolchains/arm.cmake -DTILEWRIGHT_COMPILER=OFF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(TILEWRIGHT_TRIPLE arm-linux-gnueabihf)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
