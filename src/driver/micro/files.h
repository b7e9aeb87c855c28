// SPDX-License-Identifier: Apache-2.0
// The files of crt, which are in the compiler's library: the C runtime and the templates of projects.
#pragma once
#include <span>
#include <string_view>

namespace tilewright::driver {

struct CrtFile {
  std::string_view path;  // below crt
  std::string_view bytes;
};
std::span<const CrtFile> crt_files();  // made by cmake/crt_files.cmake

}  // namespace tilewright::driver
