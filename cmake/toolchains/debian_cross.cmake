# SPDX-License-Identifier: Apache-2.0
# What the toolchain files share. Debian's cross compilers find headers of libraries that are the same for every
# processor where they lie; what is not the same comes from packages of that processor (libssl-dev:arm64).
find_program(TILEWRIGHT_CROSS_CXX NAMES ${TILEWRIGHT_TRIPLE}-g++ ${TILEWRIGHT_TRIPLE}-g++-12 NO_CACHE)
find_program(TILEWRIGHT_CROSS_CC NAMES ${TILEWRIGHT_TRIPLE}-gcc ${TILEWRIGHT_TRIPLE}-gcc-12 NO_CACHE)
if(NOT TILEWRIGHT_CROSS_CXX OR NOT TILEWRIGHT_CROSS_CC)
  message(FATAL_ERROR "there is no ${TILEWRIGHT_TRIPLE}-g++; run ./dev setup --cross, or apt-get install g++-${TILEWRIGHT_TRIPLE}")
endif()
set(CMAKE_C_COMPILER ${TILEWRIGHT_CROSS_CC})
set(CMAKE_CXX_COMPILER ${TILEWRIGHT_CROSS_CXX})
set(CMAKE_LIBRARY_ARCHITECTURE ${TILEWRIGHT_TRIPLE})
# Where ./dev setup --cross unpacks the libraries that Debian has for the other processor (zlib, OpenSSL).
cmake_path(SET TILEWRIGHT_SYSROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../.cache/sysroot/${TILEWRIGHT_TRIPLE})
# What differs between processors among their headers (OpenSSL's configuration) lies in a folder of its own.
string(APPEND CMAKE_C_FLAGS_INIT " -isystem ${TILEWRIGHT_SYSROOT}/usr/include/${TILEWRIGHT_TRIPLE}")
string(APPEND CMAKE_CXX_FLAGS_INIT " -isystem ${TILEWRIGHT_SYSROOT}/usr/include/${TILEWRIGHT_TRIPLE}")
set(OPENSSL_USE_STATIC_LIBS TRUE)  # the rpc server runs on boards that have nothing but a C library
# Programs run here, libraries are the other processor's.
set(CMAKE_FIND_ROOT_PATH ${TILEWRIGHT_SYSROOT} /usr/${TILEWRIGHT_TRIPLE} /usr/lib/${TILEWRIGHT_TRIPLE} /usr/include/${TILEWRIGHT_TRIPLE})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# So that cmake and ctest can run what was built.
string(REGEX REPLACE "^([^-]+).*" "\\1" tw_emulator ${TILEWRIGHT_TRIPLE})
string(REPLACE i686 i386 tw_emulator ${tw_emulator})  # as QEMU calls it
find_program(TILEWRIGHT_EMULATOR NAMES qemu-${tw_emulator}-static qemu-${tw_emulator} NO_CACHE)
if(TILEWRIGHT_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${TILEWRIGHT_EMULATOR} -L /usr/${TILEWRIGHT_TRIPLE})
endif()
