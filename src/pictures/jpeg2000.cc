// SPDX-License-Identifier: Apache-2.0
#ifdef TW_OPENJPEG
#include <openjpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "pictures/picture.h"

namespace tilewright::pictures {
namespace {

struct CodeStream {
  Bytes bytes;
  size_t at = 0;
};

OPJ_SIZE_T read_stream(void* to, OPJ_SIZE_T count, void* user) {
  auto& s = *static_cast<CodeStream*>(user);
  if (s.at >= s.bytes.size()) return static_cast<OPJ_SIZE_T>(-1);
  const size_t taken = std::min<size_t>(count, s.bytes.size() - s.at);
  std::memcpy(to, s.bytes.data() + s.at, taken);
  s.at += taken;
  return taken;
}
OPJ_OFF_T skip_stream(OPJ_OFF_T count, void* user) {
  auto& s = *static_cast<CodeStream*>(user);
  if (count < 0) return -1;
  s.at += std::min<size_t>(static_cast<size_t>(count), s.bytes.size() - s.at);
  return count;
}
OPJ_BOOL seek_stream(OPJ_OFF_T to, void* user) {
  auto& s = *static_cast<CodeStream*>(user);
  if (to < 0 || static_cast<size_t>(to) > s.bytes.size()) return OPJ_FALSE;
  s.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}
void silent_message(const char*, void*) {}

// A component's value at a pixel, as a byte: components may have a lower resolution than the image.
int value_at(const opj_image_comp_t& part, int64_t y, int64_t x) {
  const int64_t row = std::min<int64_t>(y / part.dy, part.h - 1), column = std::min<int64_t>(x / part.dx, part.w - 1);
  int64_t v = part.data[row * part.w + column];
  if (part.sgnd) v += int64_t{1} << (part.prec - 1);
  const int64_t most = (int64_t{1} << part.prec) - 1;
  v = std::clamp<int64_t>(v, 0, most);
  return static_cast<int>(part.prec == 8 ? v : (v * 255 + most / 2) / most);
}
uint8_t byte_of(double v) { return static_cast<uint8_t>(std::clamp(std::lround(v), 0L, 255L)); }

bool is_whole(const opj_image_t& image) {
  if (image.numcomps < 1) return false;
  for (uint32_t c = 0; c < std::min(image.numcomps, 3u); ++c) {
    const opj_image_comp_t& part = image.comps[c];
    if (!part.data || part.w < 1 || part.h < 1 || part.dx < 1 || part.dy < 1 || part.prec < 1 || part.prec > 31)
      return false;
  }
  return true;
}

std::optional<Picture> picture_of(const opj_image_t& image) {
  const int64_t height = int64_t{image.y1} - image.y0, width = int64_t{image.x1} - image.x0;
  if (!is_whole(image) || !is_size(height, width)) return std::nullopt;
  Picture out(height, width);
  const bool grey = image.numcomps < 3;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      uint8_t* to = out.at(y, x);
      int v[3];
      for (int c = 0; c < 3; ++c) v[c] = value_at(image.comps[grey ? 0 : c], y, x);
      if (!grey && image.color_space == OPJ_CLRSPC_SYCC) {
        const double blue = v[1] - 128, red = v[2] - 128;
        to[0] = byte_of(v[0] + 1.402 * red);
        to[1] = byte_of(v[0] - 0.344136 * blue - 0.714136 * red);
        to[2] = byte_of(v[0] + 1.772 * blue);
      } else {
        for (int c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(v[c]);
      }
    }
  return out;
}

}  // namespace

std::optional<Picture> decode_jpeg2000(Bytes bytes) {
  CodeStream source{bytes};
  const bool boxes = !bytes.empty() && bytes[0] == 0;  // a JP2 file rather than a raw code stream
  const std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)> codec(
      opj_create_decompress(boxes ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), opj_destroy_codec);
  const std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(opj_stream_default_create(OPJ_TRUE),
                                                                      opj_stream_destroy);
  if (!codec || !stream) return std::nullopt;
  opj_set_info_handler(codec.get(), silent_message, nullptr);
  opj_set_warning_handler(codec.get(), silent_message, nullptr);
  opj_set_error_handler(codec.get(), silent_message, nullptr);
  opj_dparameters_t parameters{};
  opj_set_default_decoder_parameters(&parameters);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_stream_set_read_function(stream.get(), read_stream);
  opj_stream_set_skip_function(stream.get(), skip_stream);
  opj_stream_set_seek_function(stream.get(), seek_stream);
  opj_image_t* header = nullptr;
  if (!opj_setup_decoder(codec.get(), &parameters)) return std::nullopt;
  const bool read = opj_read_header(stream.get(), codec.get(), &header);
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> image(header, opj_image_destroy);
  if (!read || !image || image->x1 <= image->x0 || image->y1 <= image->y0 || image->numcomps > 4 ||
      !is_size(int64_t{image->y1} - image->y0, int64_t{image->x1} - image->x0))
    return std::nullopt;
  if (!opj_decode(codec.get(), stream.get(), image.get()) || !opj_end_decompress(codec.get(), stream.get()))
    return std::nullopt;
  return picture_of(*image);
}

}  // namespace tilewright::pictures
#endif
