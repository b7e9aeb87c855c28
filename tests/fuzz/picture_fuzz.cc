// SPDX-License-Identifier: Apache-2.0
// fuzz-room: inputs
// Pictures decode to a tensor of the model's shape or a diagnostic, whatever the bytes are.
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "inputs/picture.h"

using namespace tilewright;

namespace {

std::string le(uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

}  // namespace

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  seeds->push_back("P6 4 3 255\n" + std::string(36, 'p'));
  seeds->push_back("P5 4 3 255\n" + std::string(12, 'p'));
  seeds->push_back("P5 4 3 65535\n" + std::string(24, 'p'));
  // BMP, 2x2, 24 bits; rows are padded to 8 bytes.
  seeds->push_back("BM" + le(70, 4) + le(0, 4) + le(54, 4) + le(40, 4) + le(2, 4) + le(2, 4) + le(1, 2) + le(24, 2) +
                   le(0, 4) + le(16, 4) + std::string(16, '\0') + std::string(16, 'b'));
  // TGA: plain, and run lengths.
  for (int kind : {2, 10})
    seeds->push_back(std::string(2, '\0') + char(kind) + std::string(9, '\0') + le(2, 2) + le(2, 2) + le(24, 2) +
                     std::string(20, '\1'));
  // GIF of one pixel, then PNG of one pixel (check sums included).
  seeds->push_back(std::string("GIF89a\1\0\1\0\x80\0\0\xff\xff\xff\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;", 35));
  seeds->push_back(
      std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDAT"
                  "\x78\x9c\x63\x60\0\0\0\2\0\1\x48\xaf\xa4\x71\0\0\0\0IEND\xae\x42\x60\x82",
                  67));
  // The head of a baseline JPEG, up to its frame.
  seeds->push_back(std::string("\xff\xd8\xff\xdb\0\x43\0", 7) + std::string(64, '\1') +
                   std::string("\xff\xc0\0\x0b\x08\0\x08\0\x08\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0", 23) + "data");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("picture", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) __builtin_trap();
  const std::vector<int64_t> shape = size % 2 ? std::vector<int64_t>{1, 3, 8, 8} : std::vector<int64_t>{1, 5, 4, 1};
  auto tensor = inputs::load_picture(path, {}, kFloat32, shape);
  if (tensor.ok() ? tensor->shape() != shape : tensor.error().str().empty()) __builtin_trap();
  return 0;
}
