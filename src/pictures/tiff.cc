// SPDX-License-Identifier: Apache-2.0
#ifdef TW_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "pictures/picture.h"

namespace tilewright::pictures {
namespace {

struct TiffFile {
  Bytes bytes;
  uint64_t at = 0;
};

tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t count) {
  auto& file = *static_cast<TiffFile*>(handle);
  if (file.at >= file.bytes.size() || count <= 0) return 0;
  const uint64_t taken = std::min<uint64_t>(static_cast<uint64_t>(count), file.bytes.size() - file.at);
  std::memcpy(to, file.bytes.data() + file.at, taken);
  file.at += taken;
  return static_cast<tmsize_t>(taken);
}
tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  auto& file = *static_cast<TiffFile*>(handle);
  file.at = offset + (whence == SEEK_CUR ? file.at : whence == SEEK_END ? file.bytes.size() : 0);
  return file.at;
}
int close_tiff(thandle_t) { return 0; }
toff_t size_of_tiff(thandle_t handle) { return static_cast<TiffFile*>(handle)->bytes.size(); }
int silent(TIFF*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

std::optional<Picture> decode_tiff(Bytes bytes) {
  TiffFile file{bytes};
  std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) return std::nullopt;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), tmsize_t{1} << 29);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), silent, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), silent, nullptr);
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(
      TIFFClientOpenExt("picture", "rm", &file, read_tiff, write_nothing, seek_tiff, close_tiff, size_of_tiff, nullptr,
                        nullptr, options.get()),
      TIFFClose);
  if (!tiff) return std::nullopt;
  uint32_t width = 0, height = 0;
  if (!TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) || !is_size(height, width))
    return std::nullopt;
  std::vector<uint32_t> pixels(static_cast<size_t>(width) * height);
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, 1)) return std::nullopt;
  Picture out(height, width);
  uint8_t* to = out.pixels.data();
  for (const uint32_t p : pixels) {
    *to++ = static_cast<uint8_t>(TIFFGetR(p));
    *to++ = static_cast<uint8_t>(TIFFGetG(p));
    *to++ = static_cast<uint8_t>(TIFFGetB(p));
  }
  return out;
}

}  // namespace tilewright::pictures
#endif
