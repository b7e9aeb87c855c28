// SPDX-License-Identifier: Apache-2.0
#include "topi/pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "topi/view.h"

namespace tilewright::topi {

namespace {

// Packing copies bits, so that there is one version per element size.
template <class F>
void with_element(DataType dtype, const F& f) {
  switch (dtype.bytes()) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
  }
  TW_ICHECK(false, "pack: element size");
}

bool is_bfloat(uint32_t bits) { return (bits & 0xffff) == 0; }

// Normal half-precision numbers have ten fraction bits and exponents from -14 to 15; subnormal ones are multiples of
// 2^-24.
bool is_half(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x38800000) return magnitude < 0x47800000 && (bits & 0x1fff) == 0;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
  return scaled == std::floor(scaled);
}

}  // namespace

DataType small_dtype_of(const Tensor& values) {
  if (values.dtype() != kFloat32) return values.dtype();
  const auto bits = values.as<uint32_t>();
  if (std::all_of(bits.begin(), bits.end(), is_half)) return kFloat16;
  return std::all_of(bits.begin(), bits.end(), is_bfloat) ? kBFloat16 : kFloat32;
}

Tensor converted(const Tensor& values, DataType dtype) {
  if (values.dtype() == dtype) return values;
  Tensor out(dtype, values.shape());
  for (int64_t i = 0; i < values.size(); ++i) out.set_double(i, values.at_double(i));
  return out;
}

Tensor pack_conv2d_weights(const Tensor& weights, int lanes, int64_t ic_block) {
  TW_ICHECK(weights.rank() == 4, "pack_conv2d_weights: (OC, IC, kh, kw)");
  const auto& s = weights.shape();
  const int64_t oc = s[0], ic = s[1], taps = s[2] * s[3], v = lanes;
  const int64_t oc_blocks = ceil_div(oc, v), ic_blocks = ceil_div(ic, ic_block);
  Tensor packed(weights.dtype(), {oc_blocks, ic_blocks, s[2], s[3], ic_block, v});
  with_element(weights.dtype(), [&]<class T>(T) {
    const T* from = reinterpret_cast<const T*>(weights.raw());
    T* to = reinterpret_cast<T*>(packed.mutable_raw());
    if (oc % v || ic % ic_block) std::memset(to, 0, packed.bytes());
    for (int64_t ob = 0; ob < oc_blocks; ++ob)
      for (int64_t ib = 0; ib < ic_blocks; ++ib) {
        T* block = to + (ob * ic_blocks + ib) * taps * ic_block * v;
        const int64_t os = std::min(v, oc - ob * v), is = std::min(ic_block, ic - ib * ic_block);
        const T* source = from + (ob * v * ic + ib * ic_block) * taps;
        // In the destination's order: writes are the expensive side.
        for (int64_t t = 0; t < taps; ++t)
          for (int64_t i = 0; i < is; ++i) {
            T* row = block + (t * ic_block + i) * v;
            const T* column = source + i * taps + t;
            for (int64_t o = 0; o < os; ++o) row[o] = column[o * ic * taps];
          }
      }
  });
  return packed;
}

Tensor pack_depthwise_weights(const Tensor& weights, int lanes) {
  TW_ICHECK(weights.rank() == 4 && weights.shape()[1] == 1, "pack_depthwise_weights: (C, 1, kh, kw)");
  const auto& s = weights.shape();
  const int64_t taps = s[2] * s[3], v = lanes, blocks = ceil_div(s[0], v);
  Tensor packed = Tensor::zeros(weights.dtype(), {blocks, s[2], s[3], v});
  with_element(weights.dtype(), [&]<class T>(T) {
    const T* from = reinterpret_cast<const T*>(weights.raw());
    T* to = reinterpret_cast<T*>(packed.mutable_raw());
    for (int64_t c = 0; c < s[0]; ++c)
      for (int64_t t = 0; t < taps; ++t) to[(c / v * taps + t) * v + c % v] = from[c * taps + t];
  });
  return packed;
}

Tensor pack_dense(const Tensor& b, bool transposed, int64_t width) {
  TW_ICHECK(b.rank() == 2, "pack_dense: a matrix");
  const int64_t k = b.shape()[transposed ? 1 : 0], n = b.shape()[transposed ? 0 : 1];
  const int64_t panels = ceil_div(n, width);
  Tensor packed(b.dtype(), {panels, k, width});
  with_element(b.dtype(), [&]<class T>(T) {
    const T* from = reinterpret_cast<const T*>(b.raw());
    T* to = reinterpret_cast<T*>(packed.mutable_raw());
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t n0 = panel * width, real = std::min(width, n - n0);
      T* rows = to + panel * k * width;
      if (!transposed) {
        for (int64_t i = 0; i < k; ++i) {
          std::memcpy(rows + i * width, from + i * n + n0, real * sizeof(T));
          std::fill(rows + i * width + real, rows + (i + 1) * width, T{});
        }
        continue;
      }
      // Blocks of one cache line along k, so that each source line is read once.
      constexpr int64_t kLine = 64 / sizeof(T);
      for (int64_t i0 = 0; i0 < k; i0 += kLine) {
        const int64_t i1 = std::min(k, i0 + kLine);
        for (int64_t i = i0; i < i1; ++i) {
          const T* column = from + n0 * k + i;
          T* row = rows + i * width;
          for (int64_t j = 0; j < real; ++j) row[j] = column[j * k];
          std::fill(row + real, row + width, T{});
        }
      }
    }
  });
  return packed;
}

Tensor pack_channels(const Tensor& value, int channel_axis, int lanes) {
  TW_ICHECK(channel_axis >= 0 && channel_axis < value.rank(), "pack_channels: axis");
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < channel_axis; ++i) outer *= value.shape()[i];
  for (int i = channel_axis + 1; i < value.rank(); ++i) inner *= value.shape()[i];
  const int64_t channels = value.shape()[channel_axis], v = lanes, blocks = ceil_div(channels, v);
  std::vector<int64_t> shape = value.shape();
  shape[channel_axis] = blocks;
  shape.push_back(v);
  Tensor packed = Tensor::zeros(value.dtype(), shape);
  with_element(value.dtype(), [&]<class T>(T) {
    const T* from = reinterpret_cast<const T*>(value.raw());
    T* to = reinterpret_cast<T*>(packed.mutable_raw());
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < inner; ++i)
          to[((o * blocks + c / v) * inner + i) * v + c % v] = from[(o * channels + c) * inner + i];
  });
  return packed;
}

}  // namespace tilewright::topi
