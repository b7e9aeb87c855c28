// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>
#include <cstring>

namespace accelerator {
namespace {

// The output size of a convolution; 0 when there is none.
int64_t extent(int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
  const int64_t room = size + 2 * pad - kernel;
  return stride <= 0 || room < 0 ? 0 : room / stride + 1;
}

}  // namespace

std::string check(const Program& p) {
  if (p.memory < 0 || p.memory > (1 << 28)) return "the program asks for too much memory";
  if (p.num_operands < 0 || p.counts.size() != static_cast<size_t>(p.num_operands))
    return "the list of operands is damaged";
  if (p.constants.size() > static_cast<size_t>(p.memory)) return "the constants do not fit the memory";
  auto inside = [&](int64_t address, int64_t count) {
    return address >= 0 && count >= 0 && count <= p.memory && address <= p.memory - count;
  };
  for (const Instruction& i : p.code) {
    const int32_t* o = i.operand;
    for (int k = 0; k < kOperands; ++k)
      if (o[k] < 0 || o[k] > (1 << 28)) return "an instruction has an impossible operand";
    auto product = [](std::initializer_list<int64_t> sizes) {  // saturates above what memory can be
      int64_t n = 1;
      for (int64_t s : sizes) n = s == 0 ? 0 : n > (int64_t{1} << 29) / s ? int64_t{1} << 29 : n * s;
      return n;
    };
    bool fits = false;
    switch (i.opcode) {
      case Opcode::kLoad:
      case Opcode::kStore:
        fits = o[0] < p.num_operands && o[2] <= p.counts[static_cast<size_t>(o[0])] && inside(o[1], o[2]);
        break;
      case Opcode::kDense:
        fits = inside(o[0], product({o[3], o[4]})) && inside(o[1], product({o[4], o[5]})) &&
               inside(o[2], product({o[3], o[5]}));
        break;
      case Opcode::kConv2d:
        fits = inside(o[0], product({o[3], o[4], o[5]})) && inside(o[1], product({o[6], o[3], o[7], o[8]})) &&
               inside(o[2], product({o[6], extent(o[4], o[7], o[9], o[10]), extent(o[5], o[8], o[9], o[10])})) &&
               o[9] > 0;
        break;
      case Opcode::kBias:
        fits = inside(o[0], product({o[2], o[3], o[4]})) && inside(o[1], o[3]);
        break;
      case Opcode::kRelu:
        fits = inside(o[0], o[1]);
        break;
    }
    if (!fits) return "an instruction leaves its memory or is unknown";
  }
  return "";
}

VectorUnit::VectorUnit(const Program& program) : program_(program), memory_(static_cast<size_t>(program.memory)) {
  std::copy(program.constants.begin(), program.constants.end(), memory_.begin());
}

void VectorUnit::run(const std::vector<float*>& operands) {
  float* m = memory_.data();
  for (const Instruction& i : program_.code) {
    const int32_t* o = i.operand;
    switch (i.opcode) {
      case Opcode::kLoad:
        std::memcpy(m + o[1], operands[static_cast<size_t>(o[0])], static_cast<size_t>(o[2]) * sizeof(float));
        break;
      case Opcode::kStore:
        std::memcpy(operands[static_cast<size_t>(o[0])], m + o[1], static_cast<size_t>(o[2]) * sizeof(float));
        break;
      case Opcode::kDense:
        for (int64_t r = 0; r < o[3]; ++r)
          for (int64_t j = 0; j < o[5]; ++j) {
            float sum = 0;
            for (int64_t k = 0; k < o[4]; ++k) sum += m[o[0] + r * o[4] + k] * m[o[1] + j * o[4] + k];
            m[o[2] + r * o[5] + j] = sum;
          }
        break;
      case Opcode::kConv2d: {
        const int64_t channels = o[3], height = o[4], width = o[5], kh = o[7], kw = o[8], stride = o[9], pad = o[10];
        const int64_t oh = extent(height, kh, stride, pad), ow = extent(width, kw, stride, pad);
        for (int64_t f = 0; f < o[6]; ++f)
          for (int64_t y = 0; y < oh; ++y)
            for (int64_t x = 0; x < ow; ++x) {
              float sum = 0;
              for (int64_t c = 0; c < channels; ++c)
                for (int64_t a = 0; a < kh; ++a)
                  for (int64_t b = 0; b < kw; ++b) {
                    const int64_t row = y * stride + a - pad, column = x * stride + b - pad;
                    if (row < 0 || row >= height || column < 0 || column >= width) continue;
                    sum += m[o[0] + (c * height + row) * width + column] *
                           m[o[1] + ((f * channels + c) * kh + a) * kw + b];
                  }
              m[o[2] + (f * oh + y) * ow + x] = sum;
            }
        break;
      }
      case Opcode::kBias:
        for (int64_t b = 0; b < o[2]; ++b)
          for (int64_t c = 0; c < o[3]; ++c)
            for (int64_t n = 0; n < o[4]; ++n) m[o[0] + (b * o[3] + c) * o[4] + n] += m[o[1] + c];
        break;
      case Opcode::kRelu:
        for (int64_t n = 0; n < o[1]; ++n) m[o[0] + n] = std::max(m[o[0] + n], 0.0f);
        break;
    }
  }
}

}  // namespace accelerator
