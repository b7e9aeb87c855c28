// SPDX-License-Identifier: Apache-2.0
// Writes a POSIX tar file. Times, owners and modes are fixed: equal members give equal bytes.
#pragma once
#include <ostream>
#include <string>
#include <string_view>

namespace tilewright::driver {

class TarWriter {
 public:
  explicit TarWriter(std::ostream& out) : out_(out) {}
  void add(const std::string& name, std::string_view bytes);
  void add_folder(const std::string& name);  // must end in a slash
  bool add_file(const std::string& name, const std::string& path);
  void finish();

 private:
  void header(const std::string& name, uint64_t bytes, char type);
  void pad(uint64_t bytes);
  std::ostream& out_;
};

}  // namespace tilewright::driver
