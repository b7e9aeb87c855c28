// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/reference.h"

namespace tilewright::relay {

double unit_roundoff(DataType dtype) {
  switch (dtype.code) {
    case TypeCode::kFloat:
      return dtype.bits == 64 ? 0x1p-53 : dtype.bits == 32 ? 0x1p-24 : 0x1p-11;
    case TypeCode::kBFloat:
      return 0x1p-8;
    case TypeCode::kFloat8E4M3FN:
    case TypeCode::kFloat8E4M3FNUZ:
      return 0x1p-4;
    case TypeCode::kFloat8E5M2:
    case TypeCode::kFloat8E5M2FNUZ:
      return 0x1p-3;
    case TypeCode::kFloat8E8M0:
    case TypeCode::kFloat4E2M1:
      return 0x1p-2;
    case TypeCode::kInt:
    case TypeCode::kUInt:
    case TypeCode::kBool:
    case TypeCode::kComplex:
    case TypeCode::kString:
    case TypeCode::kHandle:
      break;
  }
  return 0;
}

const TensorTypeNode& out_tensor(const EvalArgs& args, size_t i) {
  const auto* tensor = as_tensor(args.out_type);
  if (const auto* tuple = as_tuple(args.out_type)) tensor = as_tensor(tuple->fields.at(i));
  TW_ICHECK(tensor, "output type");
  return *tensor;
}
std::vector<int64_t> out_shape(const EvalArgs& args, size_t i) {
  auto shape = static_shape(out_tensor(args, i).shape);
  TW_ICHECK(shape, "an evaluated call needs a constant shape");
  return *shape;
}
Value out_value(const EvalArgs& args, size_t i) { return make_value(out_tensor(args, i).dtype, out_shape(args, i)); }

int64_t wrap_int(DataType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits >= 64) return value;
  const int shift = 64 - dtype.bits;
  auto up = static_cast<uint64_t>(value) << shift;
  return dtype.is_uint() ? static_cast<int64_t>(up >> shift) : static_cast<int64_t>(up) >> shift;
}

int64_t float_to_int(DataType to, double x) {
  if (to.is_bool()) return x != 0;
  if (std::isnan(x)) return 0;
  if (to == kUInt64 && x >= 0x1p63) return x >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(x));
  if (x >= 0x1p63) return wrap_int(to, INT64_MAX);
  if (x < -0x1p63) return wrap_int(to, INT64_MIN);
  return wrap_int(to, static_cast<int64_t>(x));
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) out[i - 1] = out[i] * shape[i];
  return out;
}

std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& shape, const std::vector<int64_t>& out) {
  std::vector<int64_t> own = row_major_strides(shape), strides(out.size(), 0);
  TW_ICHECK(out.size() >= shape.size(), "broadcast to a lower rank");
  const size_t lead = out.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) strides[lead + i] = shape[i] == 1 ? 0 : own[i];
  return strides;
}

Value strided_copy(const Value& in, std::vector<int64_t> shape, const std::vector<int64_t>& strides, int64_t offset) {
  Value out = make_value(in.dtype, std::move(shape));
  if (!in.bound.empty()) out.bound.resize(out.f.size());
  auto copy = [&](auto& to, const auto& from) {
    if (!to.empty()) walk<1>(out.shape, {strides}, [&](int64_t o, const int64_t* at) { to[o] = from[offset + at[0]]; });
  };
  copy(out.f, in.f);
  copy(out.bound, in.bound);
  copy(out.i, in.i);
  copy(out.s, in.s);
  return out;
}

Value pick(const Value& in, std::vector<int64_t> shape, const std::vector<int64_t>& index) {
  Value out = make_value(in.dtype, std::move(shape));
  if (!in.bound.empty()) out.bound.resize(out.f.size());
  auto copy = [&](auto& to, const auto& from) {
    for (size_t j = 0; j < to.size(); ++j)
      if (index[j] >= 0) to[j] = from[static_cast<size_t>(index[j])];
  };
  copy(out.f, in.f);
  copy(out.bound, in.bound);
  copy(out.i, in.i);
  copy(out.s, in.s);
  return out;
}

Value reshaped(Value v, std::vector<int64_t> shape) {
  v.shape = std::move(shape);
  return v;
}

int64_t product(const std::vector<int64_t>& dims, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= dims[i];
  return n;
}

}  // namespace tilewright::relay
