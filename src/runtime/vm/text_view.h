// SPDX-License-Identifier: Apache-2.0
// String tensors across the C interface between runtime and compiler.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "runtime/dltensor.h"
#include "tilewright/text_tensor.h"

namespace tilewright::runtime::vm {

// A view of a tensor, valid while both live.
class TextView {
 public:
  explicit TextView(const Tensor& t) : shape_(t.shape()) {
    tensor_.tensor = {
        nullptr, {kDLCPU, 0}, static_cast<int32_t>(shape_.size()), {kDLOpaqueHandle, 0, 0}, shape_.data(), nullptr, 0};
    if (!t.dtype().is_string()) {
      tensor_.tensor.dtype = to_dlpack(t.dtype());
      tensor_.tensor.data = const_cast<std::byte*>(t.raw());
      return;
    }
    for (const std::string& s : t.string_values()) {
      texts_.push_back(s.data());
      lengths_.push_back(s.size());
    }
    static const char* const kNone = "";
    tensor_.texts = texts_.empty() ? &kNone : texts_.data();
    tensor_.text_lengths = lengths_.data();
  }
  TextView(TextView&&) = default;
  const tw_text_tensor& tensor() const { return tensor_; }

 private:
  std::vector<int64_t> shape_;
  std::vector<const char*> texts_;
  std::vector<uint64_t> lengths_;
  tw_text_tensor tensor_{};
};

// A copy. Errors: DtypeMismatch.
inline Result<Tensor> tensor_of(const tw_text_tensor& t) {
  std::vector<int64_t> shape(t.tensor.shape, t.tensor.shape + t.tensor.ndim);
  if (t.texts) {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    std::vector<std::string> values;
    for (int64_t i = 0; i < n; ++i) values.emplace_back(t.texts[i], t.text_lengths[i]);
    return Tensor::strings(std::move(shape), std::move(values));
  }
  Tensor out(TW_TRY(from_dlpack(t.tensor.dtype)), std::move(shape));
  if (out.bytes())
    std::memcpy(out.mutable_raw(), static_cast<const std::byte*>(t.tensor.data) + t.tensor.byte_offset, out.bytes());
  return out;
}

}  // namespace tilewright::runtime::vm
