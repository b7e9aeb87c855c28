// SPDX-License-Identifier: Apache-2.0
#ifdef TW_JPEG
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include "pictures/picture.h"

namespace tilewright::pictures {
namespace {

constexpr int kMostScans = 200;  // a small progressive file could contain endless scans

// libjpeg reports errors by longjmp: state is kept here, so that the function that jumps has no destructors.
struct JpegState {
  jpeg_decompress_struct decompress{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf out{};
  Picture picture;
  std::vector<uint8_t> row;
  bool truncated = false;
};

JpegState& state_of(j_common_ptr common) { return *static_cast<JpegState*>(common->client_data); }
[[noreturn]] void leave(j_common_ptr common) { std::longjmp(state_of(common).out, 1); }
void note(j_common_ptr common, int level) {
  if (level < 0 && common->err->msg_code == JWRN_JPEG_EOF) state_of(common).truncated = true;
}
void count_scans(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number > kMostScans) leave(common);
}

// CMYK, stored inverted in files by Adobe software.
void from_inks(const JpegState& s, uint8_t* to) {
  const bool complements = s.decompress.saw_Adobe_marker;
  for (int64_t x = 0; x < s.picture.width; ++x) {
    const uint8_t* p = s.row.data() + x * 4;
    const int black = complements ? p[3] : 255 - p[3];
    for (int c = 0; c < 3; ++c)
      to[x * 3 + c] = static_cast<uint8_t>(((complements ? p[c] : 255 - p[c]) * black + 127) / 255);
  }
}

bool decompress(JpegState& s, Bytes bytes) {
  jpeg_decompress_struct& d = s.decompress;
  d.err = jpeg_std_error(&s.errors);
  s.errors.error_exit = leave;
  s.errors.emit_message = note;
  s.errors.output_message = [](j_common_ptr) {};
  d.client_data = &s;
  if (setjmp(s.out) != 0) return false;
  jpeg_create_decompress(&d);
  d.client_data = &s;
  s.progress.progress_monitor = count_scans;
  d.progress = &s.progress;
  d.mem->max_memory_to_use = 1L << 30;
  jpeg_mem_src(&d, bytes.data(), static_cast<unsigned long>(bytes.size()));
  if (jpeg_read_header(&d, TRUE) != JPEG_HEADER_OK || !is_size(d.image_height, d.image_width)) return false;
  const bool inks = d.jpeg_color_space == JCS_CMYK || d.jpeg_color_space == JCS_YCCK;
  d.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  s.picture = Picture(d.image_height, d.image_width);
  if (inks) s.row.resize(static_cast<size_t>(d.image_width) * 4);
  if (!jpeg_start_decompress(&d)) return false;
  while (d.output_scanline < d.output_height) {
    uint8_t* to = s.picture.at(d.output_scanline, 0);
    uint8_t* line = inks ? s.row.data() : to;
    if (jpeg_read_scanlines(&d, &line, 1) != 1) return false;
    if (inks) from_inks(s, to);
  }
  return !s.truncated;
}

}  // namespace

std::optional<Picture> decode_jpeg(Bytes bytes) {
  JpegState state;
  const bool good = decompress(state, bytes);
  jpeg_destroy_decompress(&state.decompress);
  if (!good) return std::nullopt;
  return std::move(state.picture);
}

}  // namespace tilewright::pictures
#endif
