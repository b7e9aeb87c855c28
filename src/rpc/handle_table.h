// SPDX-License-Identifier: Apache-2.0
// Objects lent to the peer, functions, modules, tensors and memory, by handles that start at 1 and are never reused. A
// handle from outside is looked up, never dereferenced.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/result.h"
#include "tilewright/c_api.h"

namespace tilewright::rpc {

class HandleTable {
 public:
  HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;
  ~HandleTable();
  // Each takes ownership of the reference.
  uint64_t add(tw_function* function);
  uint64_t add(tw_module* module);
  // A tensor with its bytes; only tensors that own their memory have a deleter.
  uint64_t add(DLManagedTensor* tensor, std::span<char> bytes);
  // Registers memory owned by someone else, until it is released.
  uint64_t borrow(std::span<char> bytes);
  // Zeroed memory. Error: LimitExceeded.
  Result<uint64_t> allocate(uint64_t bytes, uint64_t alignment);

  // Error: InvalidArgument (no such handle, or of another kind).
  Result<tw_function*> function(uint64_t handle) const;
  Result<tw_module*> module(uint64_t handle) const;
  Result<std::span<char>> memory(uint64_t handle) const;
  // Removes and frees an entry. Error: InvalidArgument.
  Status release(uint64_t handle);
  // Removes and frees all entries.
  void clear();
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    tw_function* function = nullptr;
    tw_module* module = nullptr;
    DLManagedTensor* tensor = nullptr;
    std::span<char> bytes;
    bool own_bytes = false, is_memory = false;
  };
  uint64_t insert(const Entry& entry);
  Result<const Entry*> find(uint64_t handle, const char* kind) const;
  static void free_entry(const Entry& entry);

  uint64_t last_ = 0;
  std::unordered_map<uint64_t, Entry> entries_;
};

}  // namespace tilewright::rpc
