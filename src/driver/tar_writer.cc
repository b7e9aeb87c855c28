// SPDX-License-Identifier: Apache-2.0
#include "driver/tar_writer.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/format.h"

namespace tilewright::driver {

void TarWriter::header(const std::string& name, uint64_t bytes, char type) {
  char block[512] = {};
  auto put = [&](size_t at, std::string_view text) {
    // NOLINTNEXTLINE(bugprone-not-null-terminated-result): fields end in zeros already
    std::memcpy(block + at, text.data(), text.size());
  };
  // In names above 100 bytes the folders go to a second field.
  constexpr size_t kName = 100, kPrefix = 155;
  const size_t cut = name.size() <= kName ? std::string::npos : name.rfind('/', kPrefix);
  const bool divided = cut != std::string::npos && name.size() - cut - 1 <= kName;
  put(0, std::string_view(divided ? name.data() + cut + 1 : name.data(),
                          std::min(kName, divided ? name.size() - cut - 1 : name.size())));
  if (divided) put(345, std::string_view(name).substr(0, cut));
  put(100, type == '5' ? "0000755" : "0000644");
  put(108, "0000000");
  put(116, "0000000");
  // Eleven octal digits reach 8 GiB; beyond, the size is binary with the first bit set (GNU).
  if (bytes < (uint64_t{1} << 33)) {
    put(124, format("{:011o}", bytes));
  } else {
    block[124] = static_cast<char>(0x80);
    for (int i = 0; i < 8; ++i) block[135 - i] = static_cast<char>(bytes >> (8 * i));
  }
  put(136, "00000000000");
  put(148, "        ");
  block[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  put(265, "root");
  put(297, "root");
  unsigned sum = 0;
  for (char c : block) sum += static_cast<unsigned char>(c);
  put(148, format("{:06o}", sum) + std::string("\0 ", 2));
  out_.write(block, sizeof block);
}

void TarWriter::pad(uint64_t bytes) {
  static const char kZeros[512] = {};
  if (bytes % 512 != 0) out_.write(kZeros, static_cast<std::streamsize>(512 - bytes % 512));
}

void TarWriter::add(const std::string& name, std::string_view bytes) {
  header(name, bytes.size(), '0');
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  pad(bytes.size());
}

void TarWriter::add_folder(const std::string& name) { header(name, 0, '5'); }

bool TarWriter::add_file(const std::string& name, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (!in || error) return false;
  header(name, bytes, '0');
  if (bytes > 0) out_ << in.rdbuf();
  pad(bytes);
  return in.good() || in.eof();
}

void TarWriter::finish() {
  const std::string zeros(1024, '\0');
  out_.write(zeros.data(), 1024);
}

}  // namespace tilewright::driver
