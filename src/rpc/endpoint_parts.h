// SPDX-License-Identifier: Apache-2.0
// Keeps a frame's values alive during a call; shared by the files of Endpoint.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "rpc/endpoint.h"

namespace tilewright::rpc {

// A tensor's layout, with its data pointer as a handle. Error: InvalidArgument (not compact).
Result<WireTensor> describe_tensor(const DLTensor& tensor);
// The bytes of a tensor in this process. Errors: InvalidArgument.
Result<std::span<char>> host_bytes(const DLTensor& tensor);

// Releases its reference at the end.
class HeldFunction {
 public:
  explicit HeldFunction(tw_function* owned) : function_(owned) {}
  HeldFunction(const HeldFunction&) = delete;
  HeldFunction& operator=(const HeldFunction&) = delete;
  ~HeldFunction() { tw_function_free(function_); }
  tw_function* get() const { return function_; }

 private:
  tw_function* function_;
};

struct Endpoint::Lent {
  std::deque<std::string> texts;
  std::deque<DLTensor> tensors;
  std::deque<std::vector<int64_t>> shapes;
  std::deque<std::vector<tw_value>> lists;
  std::deque<HeldFunction> functions;
};

struct Endpoint::Wire {
  explicit Wire(HandleTable* table) : table(table) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() {
    for (const uint64_t handle : borrowed) static_cast<void>(table->release(handle).ok());
  }
  // Lends a local tensor to the peer for the duration of a call.
  Result<WireTensor> lend(const DLTensor& tensor, HandleTable* handles) {
    WireTensor wire = TW_TRY(describe_tensor(tensor));
    wire.data = handles->borrow(TW_TRY(host_bytes(tensor)));
    borrowed.push_back(wire.data);
    return wire;
  }
  HandleTable* table;
  std::vector<uint64_t> borrowed;
  OwnedValue result;
};

}  // namespace tilewright::rpc
