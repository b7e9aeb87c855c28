/* SPDX-License-Identifier: Apache-2.0 */
#include <tvm/runtime/crt/stack_allocator.h>

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *workspace, uint8_t *memory, size_t num_bytes) {
  const uintptr_t at = (uintptr_t)memory;
  const size_t skipped = (size_t)(-at & (TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES - 1));
  if (skipped > num_bytes) return kTvmErrorPlatformNoMemory;
  workspace->workspace = workspace->next_alloc = memory + skipped;
  workspace->workspace_size = num_bytes - skipped;
  return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t *workspace, size_t num_bytes, void **out_ptr) {
  const size_t left = workspace->workspace_size - (size_t)(workspace->next_alloc - workspace->workspace);
  const size_t take = num_bytes + ((0 - num_bytes) & (TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES - 1));
  if (take < num_bytes || take > left) return kTvmErrorPlatformNoMemory;
  *out_ptr = workspace->next_alloc;
  workspace->next_alloc += take;
  return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *workspace, void *ptr) {
  const uintptr_t at = (uintptr_t)ptr;
  if (at < (uintptr_t)workspace->workspace || at >= (uintptr_t)workspace->next_alloc)
    return kTvmErrorPlatformStackAllocBadFree;
  workspace->next_alloc = (uint8_t *)ptr;
  return kTvmErrorNoError;
}
