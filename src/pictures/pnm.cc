// SPDX-License-Identifier: Apache-2.0
// Portable bitmaps, grey maps and pixel maps (P1 to P6), text and binary.
#include "pictures/picture.h"

namespace tilewright::pictures {
namespace {

// Skips white space and comments between the header's numbers.
class PnmReader {
 public:
  explicit PnmReader(Bytes bytes) : bytes_(bytes), at_(2) {}

  // Negative if there is none, or it exceeds 2^26.
  int64_t number() {
    skip();
    if (at_ >= bytes_.size() || !is_digit(bytes_[at_])) return -1;
    int64_t v = 0;
    while (at_ < bytes_.size() && is_digit(bytes_[at_])) {
      v = v * 10 + (bytes_[at_++] - '0');
      if (v > kMostPixels) return -1;
    }
    return v;
  }
  // A single digit: those of text bitmaps need no separators.
  int64_t digit() {
    skip();
    return at_ < bytes_.size() && is_digit(bytes_[at_]) ? bytes_[at_++] - '0' : -1;
  }
  // The data behind the one byte of white space that ends the header.
  Bytes rest() const { return at_ < bytes_.size() ? bytes_.subspan(at_ + 1) : Bytes(); }
  size_t left() const { return bytes_.size() - at_; }

 private:
  static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
  static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  void skip() {
    while (at_ < bytes_.size() && (is_space(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#')
        while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
      else
        ++at_;
    }
  }

  Bytes bytes_;
  size_t at_;
};

uint8_t scaled(int64_t v, int64_t most) {
  if (v >= most) return 255;
  return static_cast<uint8_t>(most == 255 ? v : (v * 255 + most / 2) / most);
}

// Binary value i, below 65536.
int64_t raw_value(Bytes data, size_t i, bool wide) { return wide ? data[2 * i] << 8 | data[2 * i + 1] : data[i]; }

}  // namespace

std::optional<Picture> decode_pnm(Bytes bytes) {
  if (bytes.size() < 3) return std::nullopt;
  const int kind = bytes[1] - '0';  // 1 bits, 2 grey, 3 colours; 4 to 6 the same in binary
  if (bytes[0] != 'P' || kind < 1 || kind > 6) return std::nullopt;
  PnmReader reader(bytes);
  const bool one_bit = kind == 1 || kind == 4, text = kind < 4;
  const int64_t width = reader.number(), height = reader.number(), most = one_bit ? 1 : reader.number();
  if (!is_size(height, width) || most < 1 || most > 65535) return std::nullopt;
  const int64_t channels = kind == 3 || kind == 6 ? 3 : 1, values = height * width * channels;
  const bool wide = most > 255;
  const Bytes data = reader.rest();
  const int64_t row_bytes = one_bit ? (width + 7) / 8 : width * channels * (wide ? 2 : 1);
  if (text ? static_cast<int64_t>(reader.left()) < values : static_cast<int64_t>(data.size()) < row_bytes * height)
    return std::nullopt;
  Picture out(height, width);
  for (int64_t i = 0; i < values; ++i) {
    const int64_t y = i / channels / width, x = i / channels % width;
    int64_t v = 0;
    if (text)
      v = one_bit ? reader.digit() : reader.number();
    else if (one_bit)
      v = data[static_cast<size_t>(y * row_bytes + x / 8)] >> (7 - x % 8) & 1;
    else
      v = raw_value(data, static_cast<size_t>(i), wide);
    if (v < 0) return std::nullopt;
    const uint8_t level = one_bit ? (v ? 0 : 255) : scaled(v, most);
    if (channels == 3)
      out.pixels[static_cast<size_t>(i)] = level;
    else
      for (int c = 0; c < 3; ++c) out.at(y, x)[c] = level;
  }
  return out;
}

}  // namespace tilewright::pictures
