// SPDX-License-Identifier: Apache-2.0
#include "rpc/handle_table.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "rpc/wire.h"

namespace tilewright::rpc {

HandleTable::~HandleTable() { clear(); }

void HandleTable::clear() {
  const auto entries = std::exchange(entries_, {});  // detached first: freeing may access this table again
  for (const auto& [handle, entry] : entries) free_entry(entry);
}

void HandleTable::free_entry(const Entry& entry) {
  tw_function_free(entry.function);
  tw_module_free(entry.module);
  if (entry.tensor && entry.tensor->deleter) entry.tensor->deleter(entry.tensor);
  if (entry.own_bytes) std::free(entry.bytes.data());
}

uint64_t HandleTable::insert(const Entry& entry) {
  entries_.emplace(++last_, entry);
  return last_;
}

uint64_t HandleTable::add(tw_function* function) {
  Entry entry;
  entry.function = function;
  return insert(entry);
}
uint64_t HandleTable::add(tw_module* module) {
  Entry entry;
  entry.module = module;
  return insert(entry);
}
uint64_t HandleTable::add(DLManagedTensor* tensor, std::span<char> bytes) {
  Entry entry;
  entry.tensor = tensor;
  entry.bytes = bytes;
  entry.is_memory = true;
  return insert(entry);
}
uint64_t HandleTable::borrow(std::span<char> bytes) { return add(static_cast<DLManagedTensor*>(nullptr), bytes); }

Result<uint64_t> HandleTable::allocate(uint64_t bytes, uint64_t alignment) {
  uint64_t aligned = 64;
  while (aligned < alignment && aligned < 4096) aligned *= 2;
  void* memory = nullptr;
  // One byte extra, so that empty tensors have an address, too.
  if (bytes > (uint64_t{1} << 46) || ::posix_memalign(&memory, aligned, bytes + 1) != 0)
    return Diagnostic(ErrorCode::kLimitExceeded, format("no memory for a tensor of {} bytes", bytes), "remote",
                      "free tensors of the session, or raise the server's --memory");
  std::memset(memory, 0, bytes);
  Entry entry;
  entry.bytes = {static_cast<char*>(memory), bytes};
  entry.own_bytes = entry.is_memory = true;
  return insert(entry);
}

Result<const HandleTable::Entry*> HandleTable::find(uint64_t handle, const char* kind) const {
  const auto found = entries_.find(handle);
  if (found == entries_.end())
    return Diagnostic(ErrorCode::kInvalidArgument, format("the session has no {} {}", kind, handle), "remote",
                      "it was freed, or belongs to another session");
  return &found->second;
}

namespace {
Diagnostic other_kind(uint64_t handle, const char* kind) {
  return {ErrorCode::kInvalidArgument, format("number {} of the session is no {}", handle, kind), "remote"};
}
}  // namespace

Result<tw_function*> HandleTable::function(uint64_t handle) const {
  const Entry* entry = TW_TRY(find(handle, "function"));
  if (!entry->function) return other_kind(handle, "function");
  return entry->function;
}
Result<tw_module*> HandleTable::module(uint64_t handle) const {
  const Entry* entry = TW_TRY(find(handle, "module"));
  if (!entry->module) return other_kind(handle, "module");
  return entry->module;
}
Result<std::span<char>> HandleTable::memory(uint64_t handle) const {
  const Entry* entry = TW_TRY(find(handle, "tensor"));
  if (!entry->is_memory) return other_kind(handle, "tensor");
  return entry->bytes;
}

Status HandleTable::release(uint64_t handle) {
  TW_TRY(find(handle, "object"));
  const auto node = entries_.extract(handle);  // detached first: freeing may access this table again
  free_entry(node.mapped());
  return Ok{};
}

}  // namespace tilewright::rpc
