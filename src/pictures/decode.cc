// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string_view>

#include "pictures/picture.h"

namespace tilewright::pictures {
namespace {

constexpr const char* kHere = nullptr;
#ifdef TW_JPEG
constexpr const char* kJpeg = kHere;
#else
constexpr const char* kJpeg = "libjpeg-turbo (Debian's libjpeg-dev)";
std::optional<Picture> decode_jpeg(Bytes) { return std::nullopt; }
#endif
#ifdef TW_PNG
constexpr const char* kPng = kHere;
#else
constexpr const char* kPng = "libpng (Debian's libpng-dev)";
std::optional<Picture> decode_png(Bytes) { return std::nullopt; }
#endif
#ifdef TW_WEBP
constexpr const char* kWebp = kHere;
#else
constexpr const char* kWebp = "libwebp (Debian's libwebp-dev)";
std::optional<Picture> decode_webp(Bytes) { return std::nullopt; }
#endif
#ifdef TW_TIFF
constexpr const char* kTiff = kHere;
#else
constexpr const char* kTiff = "libtiff (Debian's libtiff-dev)";
std::optional<Picture> decode_tiff(Bytes) { return std::nullopt; }
#endif
#ifdef TW_OPENJPEG
constexpr const char* kJpeg2000 = kHere;
#else
constexpr const char* kJpeg2000 = "openjpeg 2 (Debian's libopenjp2-7-dev)";
std::optional<Picture> decode_jpeg2000(Bytes) { return std::nullopt; }
#endif

using namespace std::string_view_literals;

struct Format {
  std::string_view magic;  // a '?' stands for any byte
  std::optional<Picture> (*decode)(Bytes);
  const char* missing;
};
const Format kFormats[] = {
    {"BM"sv, decode_bmp, kHere},
    {"\xff\xd8\xff"sv, decode_jpeg, kJpeg},
    {"\x89PNG\r\n\x1a\n"sv, decode_png, kPng},
    {"RIFF????WEBP"sv, decode_webp, kWebp},
    {"II*\0"sv, decode_tiff, kTiff},
    {"MM\0*"sv, decode_tiff, kTiff},
    {"II+\0"sv, decode_tiff, kTiff},
    {"MM\0+"sv, decode_tiff, kTiff},
    {"\0\0\0\x0cjP  \r\n\x87\n"sv, decode_jpeg2000, kJpeg2000},
    {"\xff\x4f\xff\x51"sv, decode_jpeg2000, kJpeg2000},
};

bool begins_with(Bytes bytes, std::string_view magic) {
  if (bytes.size() < magic.size()) return false;
  for (size_t i = 0; i < magic.size(); ++i)
    if (magic[i] != '?' && bytes[i] != static_cast<uint8_t>(magic[i])) return false;
  return true;
}

}  // namespace

Decoded decode(Bytes bytes) {
  if (bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6') return {decode_pnm(bytes), nullptr};
  for (const Format& f : kFormats) {
    if (!begins_with(bytes, f.magic)) continue;
    if (f.missing) return {std::nullopt, f.missing};
    return {f.decode(bytes), nullptr};
  }
  return {};
}

}  // namespace tilewright::pictures
