// SPDX-License-Identifier: Apache-2.0
// Values of the reference interpreter: construction and conversion from and to tensors.
#include <algorithm>

#include "base/checked.h"
#include "relay/op.h"

namespace tilewright::relay {

int64_t Value::size() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Value make_value(DataType dtype, std::vector<int64_t> shape) {
  Value v;
  v.dtype = dtype;
  v.shape = std::move(shape);
  auto n = static_cast<size_t>(checked_element_count(v.shape).value());
  if (dtype.is_string())
    v.s.resize(n);
  else if (dtype.is_float())
    v.f.resize(n);
  else
    v.i.resize(n);
  return v;
}

Value value_from(const Tensor& tensor) {
  Value v = make_value(tensor.dtype(), tensor.shape());
  const int64_t n = tensor.size();
  if (v.dtype.is_string()) {
    v.s = tensor.string_values();
  } else if (v.dtype == kFloat32) {
    auto data = tensor.as<float>();
    std::copy(data.begin(), data.end(), v.f.begin());
  } else if (v.is_float()) {
    for (int64_t i = 0; i < n; ++i) v.f[i] = tensor.at_double(i);
  } else {
    for (int64_t i = 0; i < n; ++i) v.i[i] = tensor.at_int(i);
  }
  return v;
}

Tensor to_tensor(const Value& value) {
  if (value.dtype.is_string()) return Tensor::strings(value.shape, value.s);
  Tensor t = Tensor::zeros(value.dtype, value.shape);
  const int64_t n = t.size();
  if (value.dtype == kFloat32) {
    auto out = t.as_mutable<float>();
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(value.f[i]);
  } else if (value.is_float()) {
    for (int64_t i = 0; i < n; ++i) t.set_double(i, value.f[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) t.set_int(i, value.i[i]);
  }
  return t;
}

}  // namespace tilewright::relay
