// SPDX-License-Identifier: Apache-2.0
#ifdef TW_WEBP
#include <webp/decode.h>

#include "pictures/picture.h"

namespace tilewright::pictures {

std::optional<Picture> decode_webp(Bytes bytes) {
  int width = 0, height = 0;
  if (!WebPGetInfo(bytes.data(), bytes.size(), &width, &height) || !is_size(height, width)) return std::nullopt;
  Picture out(height, width);
  if (!WebPDecodeRGBInto(bytes.data(), bytes.size(), out.pixels.data(), out.pixels.size(), width * 3))
    return std::nullopt;
  return out;
}

}  // namespace tilewright::pictures
#endif
