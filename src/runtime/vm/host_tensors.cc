// SPDX-License-Identifier: Apache-2.0
// Data movement with computed indices.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/format.h"
#include "runtime/vm/host_functions.h"

namespace tilewright::runtime::vm {
namespace {

using Ints = std::vector<int64_t>;

Ints strides_of(const Ints& shape) {
  Ints out(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) out[d - 1] = out[d] * shape[d];
  return out;
}

// out[index] = data at base + sum of index * step, in elements; `outside` (may be null) where an index is out of the
// data's range along an axis.
template <size_t kBytes>
void gather(std::byte* out, const std::byte* data, const Ints& shape, const Ints& steps, int64_t base) {
  const auto rank = static_cast<int64_t>(shape.size());
  Ints index(shape.size(), 0);
  const int64_t inner = rank ? shape.back() : 1, step = rank ? steps.back() : 0;
  int64_t total = 1;
  for (int64_t d : shape) total *= d;
  for (int64_t done = 0, at = base; done < total; done += inner) {
    for (int64_t i = 0; i < inner; ++i, out += kBytes)
      std::memcpy(out, data + (at + i * step) * static_cast<int64_t>(kBytes), kBytes);
    for (int64_t d = rank - 2; d >= 0; --d) {
      const auto k = static_cast<size_t>(d);
      at += steps[k];
      if (++index[k] < shape[k]) break;
      at -= steps[k] * shape[k];
      index[k] = 0;
    }
  }
}
Result<Tensor> gathered(HostCall& c, const Tensor& x, const Ints& shape, const Ints& steps, int64_t base) {
  TW_TRY_STATUS(check_copyable(x));
  Tensor out = TW_TRY(c.pool.allocate(x.dtype(), shape));
  if (out.size() == 0) return out;
  switch (x.dtype().bytes()) {
    case 1:
      gather<1>(out.mutable_raw(), x.raw(), shape, steps, base);
      break;
    case 2:
      gather<2>(out.mutable_raw(), x.raw(), shape, steps, base);
      break;
    case 4:
      gather<4>(out.mutable_raw(), x.raw(), shape, steps, base);
      break;
    case 8:
      gather<8>(out.mutable_raw(), x.raw(), shape, steps, base);
      break;
    case 16:
      gather<16>(out.mutable_raw(), x.raw(), shape, steps, base);
      break;
    default:
      return host_error(format("elements of {} bytes", x.dtype().bytes()));
  }
  return out;
}

Status reshape(HostCall& c) {
  const Tensor x = TW_TRY(c.tensor(0));
  Ints shape = TW_TRY(c.integers(1));
  const bool zero_is_empty = TW_TRY(c.attribute("allowzero", 0)) != 0;
  int64_t known = 1;
  std::ptrdiff_t open = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !zero_is_empty) {
      if (d >= x.shape().size())
        return host_error(format("the target shape copies dimension {} of a tensor with {}", d, x.rank()));
      shape[d] = x.shape()[d];
    }
    if (shape[d] == -1 && open < 0)
      open = static_cast<std::ptrdiff_t>(d);
    else if (shape[d] < 0 || __builtin_mul_overflow(known, shape[d], &known))
      return host_error(format("a tensor {} cannot become {}", shape_str(x.shape()), shape_str(shape)));
  }
  if (open >= 0) {
    if (known == 0 || x.size() % known != 0)
      return host_error(format("a tensor {} cannot become {}", shape_str(x.shape()), shape_str(shape)));
    shape[static_cast<size_t>(open)] = x.size() / known;
    known = x.size();
  }
  if (known != x.size())
    return host_error(format("a tensor {} cannot become {}", shape_str(x.shape()), shape_str(shape)));
  c.give(0, make_tensor(x.reshaped(std::move(shape))));
  return Ok{};
}

Status expand(HostCall& c) {
  const Tensor x = TW_TRY(c.tensor(0));
  Ints target = TW_TRY(c.integers(1)), dims = x.shape(), steps = strides_of(dims);
  const size_t rank = std::max(target.size(), dims.size());
  target.insert(target.begin(), rank - target.size(), 1);
  steps.insert(steps.begin(), rank - dims.size(), 0);
  dims.insert(dims.begin(), rank - dims.size(), 1);
  for (size_t d = 0; d < rank; ++d) {
    if (target[d] < 0 || (target[d] != dims[d] && target[d] != 1 && dims[d] != 1))
      return host_error(format("{} does not broadcast to {}", shape_str(x.shape()), shape_str(target)));
    if (dims[d] == 1)
      steps[d] = 0;
    else
      target[d] = dims[d];
  }
  c.give(0, make_tensor(TW_TRY(gathered(c, x, target, steps, 0))));
  return Ok{};
}

Status tile(HostCall& c) {
  const Tensor x = TW_TRY(c.tensor(0));
  const Ints reps = TW_TRY(c.integers(1));
  if (reps.size() != x.shape().size())
    return host_error(format("{} repeats for a tensor with {} axes", reps.size(), x.rank()));
  // Splits every axis in two: the repetition, and the position in it.
  Ints shape, steps, out;
  const Ints own = strides_of(x.shape());
  for (size_t d = 0; d < reps.size(); ++d) {
    int64_t size;
    if (reps[d] < 0 || __builtin_mul_overflow(reps[d], x.shape()[d], &size))
      return host_error(format("axis {} repeated {} times", d, reps[d]));
    shape.insert(shape.end(), {reps[d], x.shape()[d]});
    steps.insert(steps.end(), {0, own[d]});
    out.push_back(size);
  }
  c.give(0, make_tensor(TW_TRY(gathered(c, x, shape, steps, 0)).reshaped(std::move(out))));
  return Ok{};
}

// Operands: the shape, the value.
Status constant_of_shape(HostCall& c) {
  const Ints shape = TW_TRY(c.integers(0));
  const Tensor value = TW_TRY(c.tensor(1));
  for (int64_t d : shape)
    if (d < 0) return host_error(format("a shape holds {}", d));
  if (value.size() != 1) return host_error("the value is not one element");
  c.give(0, make_tensor(TW_TRY(gathered(c, value, shape, Ints(shape.size(), 0), 0))));
  return Ok{};
}

Status range(HostCall& c) {
  const Tensor start = TW_TRY(c.tensor(0));
  const Tensor limit = TW_TRY(c.tensor(1));
  const Tensor delta = TW_TRY(c.tensor(2));
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1)
    return host_error("a range of something else than numbers");
  const DataType dtype = start.dtype();
  if (dtype.is_integral()) {
    const int64_t from = start.at_int(0), to = limit.at_int(0), step = delta.at_int(0);
    if (step == 0) return host_error("a range in steps of 0");
    // Distances may exceed int64: distance and step are unsigned magnitudes.
    const bool up = step > 0;
    const uint64_t distance = (up ? to <= from : to >= from) ? 0
                              : up                           ? static_cast<uint64_t>(to) - static_cast<uint64_t>(from)
                                                             : static_cast<uint64_t>(from) - static_cast<uint64_t>(to);
    const uint64_t by = up ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
    const uint64_t n = distance / by + (distance % by != 0 ? 1 : 0);
    if (n > (uint64_t{1} << 40)) return Diagnostic(ErrorCode::kLimitExceeded, "a range is too long");
    Tensor out = TW_TRY(c.pool.allocate(dtype, {static_cast<int64_t>(n)}));
    for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, from + i * step);
    c.give(0, make_tensor(std::move(out)));
    return Ok{};
  }
  const double from = start.at_double(0), step = delta.at_double(0), n = std::ceil((limit.at_double(0) - from) / step);
  if (!(n < 1e12)) return host_error(format("a range of {} steps of {}", n, step));
  Tensor out = TW_TRY(c.pool.allocate(dtype, {static_cast<int64_t>(std::max(n, 0.0))}));
  for (int64_t i = 0; i < out.size(); ++i) out.set_double(i, from + static_cast<double>(i) * step);
  c.give(0, make_tensor(std::move(out)));
  return Ok{};
}

Status slice(HostCall& c) {
  const Tensor x = TW_TRY(c.tensor(0));
  const Ints starts = TW_TRY(c.integers(1)), ends = TW_TRY(c.integers(2));
  Ints axes(starts.size()), steps(starts.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (c.has(3)) axes = TW_TRY(c.integers(3));
  if (c.has(4)) steps = TW_TRY(c.integers(4));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return host_error(
        format("{} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(), axes.size(), steps.size()));
  Ints shape = x.shape(), strides = strides_of(shape);
  int64_t base = 0;
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<bool> seen(shape.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < -rank || axes[i] >= rank) return host_error(format("axis {} of {} axes", axes[i], rank));
    const auto d = static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    if (seen[d]) return host_error(format("axis {} twice", d));
    seen[d] = true;
    const int64_t size = shape[d], step = steps[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) return host_error(format("a step is {}", step));
    auto place = [&](int64_t v, int64_t low, int64_t high) {
      return std::clamp(v < 0 ? (v < -size ? -1 : v + size) : std::min(v, size), low, high);
    };
    const int64_t begin = step > 0 ? place(starts[i], 0, size) : place(starts[i], -1, size - 1);
    const int64_t end = step > 0 ? place(ends[i], 0, size) : place(ends[i], -1, size - 1);
    const int64_t n =
        step > 0 ? (end > begin ? (end - begin - 1) / step + 1 : 0) : (begin > end ? (begin - end - 1) / -step + 1 : 0);
    if (n > 0) base += begin * strides[d];
    if (n > 1) strides[d] *= step;
    shape[d] = n;
  }
  c.give(0, make_tensor(TW_TRY(gathered(c, x, shape, strides, base))));
  return Ok{};
}

// Operands data, pads, value, axes: constant padding; negative pads crop.
Status pad(HostCall& c) {
  const Tensor x = TW_TRY(c.tensor(0));
  TW_TRY_STATUS(check_copyable(x));
  const Ints pads = TW_TRY(c.integers(1));
  const auto rank = static_cast<int64_t>(x.shape().size());
  Ints axes;
  if (c.has(3))
    axes = TW_TRY(c.integers(3));
  else
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  if (pads.size() != 2 * axes.size()) return host_error(format("{} pads for {} axes", pads.size(), axes.size()));
  Ints shape = x.shape(), kept = x.shape(), from(shape.size(), 0), to(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < -rank || axes[i] >= rank) return host_error(format("axis {} of {} axes", axes[i], rank));
    const auto d = static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    const int64_t before = pads[i], after = pads[i + axes.size()];
    if (!checked_add(shape[d], before, &shape[d]) || !checked_add(shape[d], after, &shape[d]) || shape[d] < 0 ||
        before < -x.shape()[d])
      return host_error(format("axis {} of {} elements padded by {} and {}", d, x.shape()[d], before, after));
    to[d] = std::max<int64_t>(before, 0);
    from[d] = std::max<int64_t>(-before, 0);
    kept[d] = std::max<int64_t>(0, std::min(x.shape()[d] - from[d], shape[d] - to[d]));
  }
  Tensor value = c.has(2) ? TW_TRY(c.tensor(2)) : Tensor::zeros(x.dtype(), {});
  if (value.size() != 1 || value.dtype() != x.dtype())
    return host_error("the padding is not one element of the tensor's type");
  Tensor out = TW_TRY(gathered(c, value, shape, Ints(shape.size(), 0), 0));
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < rank; ++d) rows *= kept[static_cast<size_t>(d)];
  if (rank == 0 || kept.back() == 0) rows = 0;
  if (rank == 0) out = x;
  const Ints in_strides = strides_of(x.shape()), out_strides = strides_of(shape);
  const auto width = static_cast<int64_t>(x.dtype().bytes());
  Ints index(shape.size(), 0);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t a = 0, b = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      a += (index[d] + from[d]) * in_strides[d];
      b += (index[d] + to[d]) * out_strides[d];
    }
    std::memcpy(out.mutable_raw() + b * width, x.raw() + a * width, static_cast<size_t>(kept.back() * width));
    for (int64_t d = rank - 2; d >= 0 && ++index[static_cast<size_t>(d)] == kept[static_cast<size_t>(d)]; --d)
      index[static_cast<size_t>(d)] = 0;
  }
  c.give(0, make_tensor(std::move(out)));
  return Ok{};
}

constexpr HostEntry kTensorFunctions[] = {
    {"Reshape", reshape}, {"Expand", expand}, {"Tile", tile}, {"ConstantOfShape", constant_of_shape},
    {"Range", range},     {"Slice", slice},   {"Pad", pad},
};

}  // namespace

std::span<const HostEntry> tensor_functions() { return kTensorFunctions; }

}  // namespace tilewright::runtime::vm
