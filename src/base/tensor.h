// SPDX-License-Identifier: Apache-2.0
// Host tensors: compact, row-major, 64-byte aligned, reference counted. A DLTensor is a C view of one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace tilewright {

class Tensor {
 public:
  Tensor() = default;
  // Uninitialised storage; the shape must have passed checked_element_count (else an internal error).
  Tensor(DataType dtype, std::vector<int64_t> shape);
  static Tensor zeros(DataType dtype, std::vector<int64_t> shape);
  // A tensor over memory that `owner` keeps alive, such as a mapped file; `data` must be readable for its whole size.
  static Tensor view(DataType dtype, std::vector<int64_t> shape, const void* data, std::shared_ptr<const void> owner);
  template <class T>
  static Tensor from(DataType dtype, std::vector<int64_t> shape, std::span<const T> values);
  template <class T>
  static Tensor scalar(DataType dtype, T value) {
    return from<T>(dtype, {}, std::span<const T>(&value, 1));
  }
  static Tensor strings(std::vector<int64_t> shape, std::vector<std::string> values);

  bool defined() const { return dtype_.lanes != 0 && (data_ != nullptr || strings_ != nullptr); }
  DataType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return size_; }  // number of elements
  uint64_t bytes() const { return dtype_.bytes_for(static_cast<uint64_t>(size_)); }
  const std::byte* raw() const { return data_.get(); }
  // Writable bytes; only for tensors that were just created and are not shared.
  std::byte* mutable_raw() { return const_cast<std::byte*>(data_.get()); }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(raw()), static_cast<size_t>(size_)};
  }
  template <class T>
  std::span<T> as_mutable() {
    return {reinterpret_cast<T*>(mutable_raw()), static_cast<size_t>(size_)};
  }
  const std::vector<std::string>& string_values() const { return *strings_; }
  // Element i as a double or int64, whatever the dtype (not strings).
  double at_double(int64_t i) const;
  int64_t at_int(int64_t i) const;
  // Stores a value rounded to the dtype (to nearest even; integers wrap like a C cast from int64).
  void set_double(int64_t i, double value);
  void set_int(int64_t i, int64_t value);
  // The same data in another shape with equal element count.
  Tensor reshaped(std::vector<int64_t> shape) const;

 private:
  DataType dtype_{TypeCode::kFloat, 32, 0};
  std::vector<int64_t> shape_;
  int64_t size_ = 0;
  std::shared_ptr<const std::byte> data_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

template <class T>
Tensor Tensor::from(DataType dtype, std::vector<int64_t> shape, std::span<const T> values) {
  Tensor t(dtype, std::move(shape));
  TW_ICHECK(static_cast<size_t>(t.size()) == values.size() && t.bytes() == values.size_bytes(), "Tensor::from size");
  if (!values.empty()) __builtin_memcpy(t.mutable_raw(), values.data(), values.size_bytes());
  return t;
}

// "1x3x224x224"; "scalar" for rank 0.
std::string shape_str(std::span<const int64_t> shape);

}  // namespace tilewright
