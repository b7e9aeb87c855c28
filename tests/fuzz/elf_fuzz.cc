// SPDX-License-Identifier: Apache-2.0
// fuzz-room: base
// The checks an artifact passes before the dynamic linker sees it: no bytes may crash them.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/formats/elf.h"
#include "base/formats/seal.h"

// Small shared libraries of the C library serve as seeds, plain and sealed.
extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  for (const char* name : {"libdl.so.2", "libutil.so.1"}) {
    std::ifstream file(std::string("/lib/x86_64-linux-gnu/") + name, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.empty() || bytes.size() > 100000) continue;
    seeds->push_back(bytes);
    auto seal = tilewright::make_artifact_seal(std::as_bytes(std::span(bytes)));
    if (seal.ok()) seeds->push_back(bytes + *seal);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (auto image = tilewright::read_elf(bytes); image.ok()) {
    for (const auto& symbol : image->symbols)
      if (auto offset = image->file_offset(symbol.address, symbol.bytes); offset && *offset + symbol.bytes > size)
        __builtin_trap();
  }
  if (auto seal = tilewright::read_artifact_seal(bytes); seal.ok() && seal->has_value())
    (void)tilewright::check_artifact_seal(bytes, **seal, true).ok();
  return 0;
}
