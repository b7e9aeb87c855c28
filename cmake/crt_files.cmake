# SPDX-License-Identifier: Apache-2.0
# Every file below crt, and the DLPack header, as bytes of a C++ file, so that a compiler that is one library writes whole projects.
file(GLOB_RECURSE tw_crt_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/crt/*)
list(APPEND tw_crt_files ${CMAKE_SOURCE_DIR}/include/tilewright/dlpack.h)
set(tw_crt_arrays "")
set(tw_crt_table "")
set(tw_crt_count 0)
foreach(path ${tw_crt_files})
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/crt ${path})
  string(REPLACE "../include/tilewright/" "include/dlpack/" name ${name})
  string(APPEND tw_crt_arrays "constexpr char kCrtFile${tw_crt_count}[] = {${bytes}};\n")
  string(APPEND tw_crt_table "    {\"${name}\", {kCrtFile${tw_crt_count}, sizeof kCrtFile${tw_crt_count}}},\n")
  math(EXPR tw_crt_count "${tw_crt_count} + 1")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/crt_files.cc @ONLY CONTENT [[
#include "driver/crt_files.h"

namespace tilewright::driver {
namespace {
@tw_crt_arrays@
constexpr CrtFile kCrtFiles[] = {
@tw_crt_table@};
}  // namespace

std::span<const CrtFile> crt_files() { return kCrtFiles; }

}  // namespace tilewright::driver
]])
target_sources(tw_driver PRIVATE ${CMAKE_BINARY_DIR}/crt_files.cc)
