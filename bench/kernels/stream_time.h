// SPDX-License-Identifier: Apache-2.0
// Measures the time to read and write given numbers of bytes: the memory side of a roofline. Which level of memory
// holds the data depends on how much of the shared cache other processes leave, so it is measured at the same time and
// in the same situation as the kernel: its data was just written by the previous step, and the next step reads its
// result.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fma_peak.h"

namespace tilewright::topi::testing {

class StreamTime {
 public:
  // The minimum over some rounds, in seconds.
  double measure(double read_bytes, double write_bytes) {
    const auto read = words(read_bytes), written = words(write_bytes);
    for (auto* v : {&source_, &data_}) grow(v, read);
    for (auto* v : {&result_, &sink_}) grow(v, written);
    double best = 1e30;
    const double end = now() + 0.02;
    for (int round = 0; round < 3 || (round < 200 && now() < end); ++round) {
      pass(source_.data(), read, data_.data(), read);
      const double begin = now();
      pass(data_.data(), read, result_.data(), written);
      best = std::min(best, now() - begin);
      pass(result_.data(), written, sink_.data(), written);
    }
    return best;
  }

 private:
  static constexpr size_t kLine = 16, kPiece = 64;  // words of a cache line; lines read or written at a time
  using Words = std::vector<uint32_t>;
  static size_t words(double bytes) {
    return (static_cast<size_t>(bytes / 4) + kLine * kPiece) / (kLine * kPiece) * (kLine * kPiece);
  }
  static void grow(Words* v, size_t count) {
    if (v->size() < count) v->resize(count, 1);
  }
  // Alternates between pieces of both streams in proportion, like a kernel's reads and writes.
  static void pass(const uint32_t* from, size_t read, uint32_t* to, size_t written) {
    const size_t pieces = std::max(read, written) / (kLine * kPiece);
    uint32_t lanes[kLine] = {};
    size_t at = 0, out = 0;
    for (size_t i = 1; i <= pieces; ++i) {
      for (const size_t until = read * i / pieces / kLine * kLine; at < until; at += kLine)
        for (size_t lane = 0; lane < kLine; ++lane) lanes[lane] ^= from[at + lane];
      for (const size_t until = written * i / pieces / kLine * kLine; out < until; out += kLine)
        std::memcpy(to + out, lanes, sizeof lanes);
    }
  }
  Words source_, data_, result_, sink_;
};

}  // namespace tilewright::topi::testing
