// SPDX-License-Identifier: Apache-2.0
#ifdef TW_PNG
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "pictures/picture.h"

namespace tilewright::pictures {
namespace {

// libpng reports errors by longjmp: state is kept here.
struct PngState {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Bytes bytes;
  size_t at = 0;
  Picture picture;
  std::vector<png_bytep> rows;
};

void take(png_structp png, png_bytep to, size_t count) {
  auto& s = *static_cast<PngState*>(png_get_io_ptr(png));
  if (count > s.bytes.size() - s.at) png_error(png, "the file ends");
  std::memcpy(to, s.bytes.data() + s.at, count);
  s.at += count;
}

bool decompress_png(PngState& s) {
  if (setjmp(png_jmpbuf(s.png)) != 0) return false;
  png_set_read_fn(s.png, &s, take);
  png_set_user_limits(s.png, 1u << 26, 1u << 26);
  png_set_chunk_malloc_max(s.png, 1u << 26);
  png_read_info(s.png, s.info);
  const int64_t height = png_get_image_height(s.png, s.info), width = png_get_image_width(s.png, s.info);
  if (!is_size(height, width)) return false;
  png_set_expand(s.png);
  png_set_scale_16(s.png);
  png_set_gray_to_rgb(s.png);
  png_set_strip_alpha(s.png);
  png_set_interlace_handling(s.png);
  png_read_update_info(s.png, s.info);
  if (png_get_rowbytes(s.png, s.info) != static_cast<size_t>(width) * 3) return false;
  s.picture = Picture(height, width);
  for (int64_t y = 0; y < height; ++y) s.rows.push_back(s.picture.at(y, 0));
  png_read_image(s.png, s.rows.data());
  png_read_end(s.png, nullptr);
  return true;
}

}  // namespace

std::optional<Picture> decode_png(Bytes bytes) {
  PngState state;
  state.bytes = bytes;
  state.png = png_create_read_struct(
      PNG_LIBPNG_VER_STRING, nullptr, [](png_structp png, png_const_charp) { png_longjmp(png, 1); },
      [](png_structp, png_const_charp) {});
  if (!state.png) return std::nullopt;
  state.info = png_create_info_struct(state.png);
  const bool good = state.info && decompress_png(state);
  png_destroy_read_struct(&state.png, &state.info, nullptr);
  if (!good) return std::nullopt;
  return std::move(state.picture);
}

}  // namespace tilewright::pictures
#endif
