// SPDX-License-Identifier: Apache-2.0
#include "rpc/values.h"

#include <vector>

namespace tilewright::rpc {
namespace {

struct OwnedTensor {
  DLManagedTensor managed{};
  std::vector<int64_t> shape;
  void (*free)(void*) = nullptr;
  void* context = nullptr;
};

}  // namespace

Diagnostic last_error() {
  tw_error_info info{};
  info.size = sizeof info;
  tw_last_error(&info);
  return {static_cast<ErrorCode>(info.code), info.message ? info.message : "", info.where ? info.where : "",
          info.hint ? info.hint : ""};
}

Status checked(int32_t status) {
  if (status != 0) return last_error();
  return Ok{};
}

int32_t reported(const Diagnostic& error) {
  return tw_set_last_error(static_cast<int32_t>(error.code), error.message.c_str(), error.where.c_str(),
                           error.hint.c_str());
}

OwnedValue OwnedValue::of(int64_t i) {
  OwnedValue v;
  v.value_.kind = TW_INT;
  v.value_.as.i = i;
  return v;
}
OwnedValue OwnedValue::text(std::string_view text) {
  OwnedValue v;
  tw_value_set_str(&v.value_, text.data(), text.size());
  return v;
}
OwnedValue OwnedValue::bytes(std::string_view bytes) {
  OwnedValue v;
  tw_value_set_bytes(&v.value_, bytes.data(), bytes.size());
  return v;
}

Result<OwnedValue> call_function(tw_function* function, const tw_value* args, size_t count) {
  OwnedValue result;
  TW_TRY_STATUS(checked(tw_function_call(function, args, static_cast<int32_t>(count), result.out())));
  return result;
}

DLManagedTensor* managed_tensor(void* data, DLDevice device, DLDataType dtype, const int64_t* shape, size_t rank,
                                uint64_t byte_offset, void (*free)(void*), void* context) {
  auto* own = new OwnedTensor;
  own->shape.assign(shape, shape + rank);
  own->free = free;
  own->context = context;
  own->managed.dl_tensor = {data, device, static_cast<int32_t>(rank), dtype, own->shape.data(), nullptr, byte_offset};
  own->managed.manager_ctx = own;
  own->managed.deleter = [](DLManagedTensor* self) {
    auto* tensor = static_cast<OwnedTensor*>(self->manager_ctx);
    if (tensor->free) tensor->free(tensor->context);
    delete tensor;
  };
  return &own->managed;
}

}  // namespace tilewright::rpc
