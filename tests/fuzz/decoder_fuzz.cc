// SPDX-License-Identifier: Apache-2.0
// fuzz-room: pictures
// fuzz-seeds: tests/data/pictures
// What ImageDecoder is given decodes to a picture of its own size or to nothing, whatever the bytes are.
#include <string>
#include <vector>

#include "pictures/picture.h"

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) { seeds->push_back("P3 2 1 255 1 2 3 4 5 6"); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> own(data, data + size);
  const auto decoded = tilewright::pictures::decode(own);
  if (!decoded.picture) return 0;
  const auto& p = *decoded.picture;
  if (!tilewright::pictures::is_size(p.height, p.width) ||
      p.pixels.size() != static_cast<size_t>(p.height * p.width * 3))
    __builtin_trap();
  return 0;
}
