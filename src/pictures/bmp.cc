// SPDX-License-Identifier: Apache-2.0
// Windows bitmaps: palettes of 1, 4 and 8 bits with or without run-length encoding, 16, 24 and 32 bits with or without
// masks.
#include <array>
#include <bit>
#include <cstdlib>

#include "pictures/picture.h"

namespace tilewright::pictures {
namespace {

enum Compression : uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kMasksAlpha = 6 };

class BmpReader {
 public:
  explicit BmpReader(Bytes bytes) : bytes_(bytes) {}

  std::optional<Picture> read() {
    if (!header()) return std::nullopt;
    Picture out(height_, width_);
    const bool good = compression_ == kRuns8 || compression_ == kRuns4 ? runs(&out) : rows(&out);
    if (!good) return std::nullopt;
    return out;
  }

 private:
  uint32_t little(size_t at, int count) const {
    uint32_t v = 0;
    for (int i = 0; i < count; ++i)
      if (at + static_cast<size_t>(i) < bytes_.size()) v |= uint32_t{bytes_[at + static_cast<size_t>(i)]} << (8 * i);
    return v;
  }

  bool header() {
    if (bytes_.size() < 26) return false;
    pixels_at_ = little(10, 4);
    const uint32_t header_size = little(14, 4);
    const bool core = header_size == 12;  // OS/2 format, with 16-bit sizes
    if ((!core && header_size < 40) || header_size > 124 || bytes_.size() < 14 + size_t{header_size}) return false;
    const auto height = core ? int64_t{little(20, 2)} : int64_t{static_cast<int32_t>(little(22, 4))};
    width_ = core ? int64_t{little(18, 2)} : int64_t{static_cast<int32_t>(little(18, 4))};
    height_ = std::llabs(height);
    from_top_ = height < 0;
    bits_ = little(core ? 24 : 28, 2);
    compression_ = core ? kPlain : little(30, 4);
    const bool masked = compression_ == kMasks || compression_ == kMasksAlpha;
    if (!is_size(height_, width_) || !supported(masked)) return false;
    if (bits_ == 16) masks_ = {0x7c00, 0x03e0, 0x001f};
    if (masked)  // at the same offset behind a 40-byte header and inside a longer one
      for (size_t c = 0; c < 3; ++c) masks_[c] = little(54 + 4 * c, 4);
    if (bits_ <= 8) palette(core, header_size);
    return pixels_at_ >= 14 + header_size && pixels_at_ <= bytes_.size();
  }
  bool supported(bool masked) const {
    switch (bits_) {
      case 1:
      case 24:
        return compression_ == kPlain;
      case 4:
        return compression_ == kPlain || compression_ == kRuns4;
      case 8:
        return compression_ == kPlain || compression_ == kRuns8;
      case 16:
      case 32:
        return compression_ == kPlain || masked;
      default:
        return false;
    }
  }
  void palette(bool core, uint32_t header_size) {
    const size_t entry = core ? 3 : 4, begin = 14 + size_t{header_size};
    for (size_t i = 0; i < size_t{1} << bits_; ++i) {
      const size_t at = begin + i * entry;
      if (at + 3 > pixels_at_ || at + 3 > bytes_.size()) return;  // missing entries are black
      palette_[i] = {bytes_[at + 2], bytes_[at + 1], bytes_[at]};
    }
  }

  uint8_t* row(Picture* out, int64_t from_bottom) const {
    return out->at(from_top_ ? from_bottom : height_ - 1 - from_bottom, 0);
  }
  void put(uint8_t* to, uint32_t index) const {
    for (size_t c = 0; c < 3; ++c) to[c] = palette_[index & 255][c];
  }
  static uint8_t masked(uint32_t v, uint32_t mask) {
    if (!mask) return 0;
    const uint64_t most = mask >> std::countr_zero(mask), part = (v & mask) >> std::countr_zero(mask);
    return static_cast<uint8_t>((part * 255 + most / 2) / most);
  }

  bool rows(Picture* out) const {
    const int64_t stride = (width_ * bits_ + 31) / 32 * 4;
    const int64_t needed = stride * (height_ - 1) + (width_ * bits_ + 7) / 8;
    if (static_cast<int64_t>(bytes_.size() - pixels_at_) < needed) return false;
    for (int64_t y = 0; y < height_; ++y) {
      const uint8_t* from = bytes_.data() + pixels_at_ + y * stride;
      uint8_t* to = row(out, y);
      for (int64_t x = 0; x < width_; ++x, to += 3) pixel(from, x, to);
    }
    return true;
  }
  void pixel(const uint8_t* from, int64_t x, uint8_t* to) const {
    if (bits_ <= 8) {
      const int64_t bit = x * bits_;
      put(to, from[bit / 8] >> (8 - bits_ - bit % 8) & ((1u << bits_) - 1));
    } else if (bits_ == 24 || (bits_ == 32 && compression_ == kPlain)) {
      const uint8_t* p = from + x * (bits_ / 8);
      for (int c = 0; c < 3; ++c) to[c] = p[2 - c];
    } else {
      const uint8_t* p = from + x * (bits_ / 8);
      const uint32_t v = bits_ == 16 ? p[0] | uint32_t{p[1]} << 8
                                     : p[0] | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
      for (size_t c = 0; c < 3; ++c) to[c] = masked(v, masks_[c]);
    }
  }

  // Run-length encoding: pairs of count and value; a count of zero is followed by a command: end of row, end of image,
  // a move, or literal values.
  bool runs(Picture* out) const {
    const bool four = compression_ == kRuns4;
    for (int64_t y = 0; y < height_; ++y)  // pixels outside of runs have the first colour
      for (int64_t x = 0; x < width_; ++x) put(out->at(y, x), 0);
    int64_t x = 0, y = 0;
    auto set = [&](uint32_t index) {
      if (y < height_ && x < width_) put(row(out, y) + x * 3, index);
      ++x;
    };
    for (size_t at = pixels_at_; at + 1 < bytes_.size() && y < height_;) {
      const uint8_t count = bytes_[at], value = bytes_[at + 1];
      at += 2;
      if (count > 0) {
        for (int i = 0; i < count; ++i) set(four ? (i % 2 ? value & 15 : value >> 4) : value);
      } else if (value == 0) {
        x = 0;
        ++y;
      } else if (value == 1) {
        return true;
      } else if (value == 2) {
        if (at + 1 >= bytes_.size()) return false;
        x += bytes_[at];
        y += bytes_[at + 1];
        at += 2;
      } else {
        const size_t length = four ? (size_t{value} + 1) / 2 : value;
        if (at + length > bytes_.size()) return false;
        for (size_t i = 0; i < value; ++i)
          set(four ? (i % 2 ? bytes_[at + i / 2] & 15 : bytes_[at + i / 2] >> 4) : bytes_[at + i]);
        at += (length + 1) / 2 * 2;
      }
    }
    return y >= height_;  // the end marker may be missing, rows may not
  }

  Bytes bytes_;
  int64_t width_ = 0, height_ = 0;
  uint32_t bits_ = 0, compression_ = 0, pixels_at_ = 0;
  bool from_top_ = false;
  std::array<uint32_t, 3> masks_{0xff0000, 0xff00, 0xff};
  std::array<std::array<uint8_t, 3>, 256> palette_{};
};

}  // namespace

std::optional<Picture> decode_bmp(Bytes bytes) { return BmpReader(bytes).read(); }

}  // namespace tilewright::pictures
