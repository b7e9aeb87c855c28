// SPDX-License-Identifier: Apache-2.0
// The decoders as a separate library, which the runtime opens when a program decodes an image.
#include <cstring>
#include <new>

#include "pictures/picture.h"

// 0: decoded into memory from `allocate` (if that returns null: 1); 1: cannot be decoded; 2: *missing names the
// required library.
extern "C" __attribute__((visibility("default"))) int32_t tw_pictures_decode(
    const uint8_t* bytes, uint64_t size, uint8_t* (*allocate)(void* context, int64_t height, int64_t width),
    void* context, const char** missing) try {
  const auto decoded = tilewright::pictures::decode({bytes, static_cast<size_t>(size)});
  if (decoded.missing) {
    *missing = decoded.missing;
    return 2;
  }
  if (!decoded.picture) return 1;
  uint8_t* to = allocate(context, decoded.picture->height, decoded.picture->width);
  if (!to) return 1;
  std::memcpy(to, decoded.picture->pixels.data(), decoded.picture->pixels.size());
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}
