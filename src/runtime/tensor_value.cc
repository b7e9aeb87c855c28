// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_value.h"

#include <cstring>

#include "base/tensor.h"
#include "runtime/dltensor.h"

namespace tilewright::runtime {
namespace {

struct Managed {
  DLManagedTensor tensor;
  std::vector<int64_t> shape;
  std::shared_ptr<const void> owner;
};

}  // namespace

Value view_value(const plan::TensorInfo& info, void* data, std::shared_ptr<const void> owner) {
  auto* managed = new Managed{{}, info.shape, std::move(owner)};
  managed->tensor.dl_tensor = {
      data, {kDLCPU, 0}, static_cast<int32_t>(info.shape.size()), to_dlpack(info.dtype), managed->shape.data(), nullptr,
      0};
  managed->tensor.manager_ctx = managed;
  managed->tensor.deleter = [](DLManagedTensor* self) { delete static_cast<Managed*>(self->manager_ctx); };
  return Value::ndarray(&managed->tensor);
}

Value copy_value(const plan::TensorInfo& info, const void* data) {
  auto copy = std::make_shared<Tensor>(Tensor::zeros(info.dtype, info.shape));
  if (uint64_t bytes = byte_size(info)) std::memcpy(copy->mutable_raw(), data, bytes);
  void* raw = copy->mutable_raw();
  return view_value(info, raw, std::move(copy));
}

Value tensor_list(const std::vector<plan::TensorInfo>& tensors) {
  std::vector<Value> items;
  for (const auto& t : tensors) {
    std::vector<Value> item;
    item.push_back(Value::string(t.name));
    item.push_back(Value::shape(t.shape));
    item.push_back(Value::string(t.dtype.str()));
    items.push_back(Value::array(std::move(item)));
  }
  return Value::array(std::move(items));
}

}  // namespace tilewright::runtime
