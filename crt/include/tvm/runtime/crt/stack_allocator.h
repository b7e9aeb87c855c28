/* SPDX-License-Identifier: Apache-2.0
 * Memory of one array whose pieces are freed in the opposite order of their allocation: for workspaces. */
#ifndef TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES 16

typedef struct {
  uint8_t* next_alloc; /* the first byte that is free */
  uint8_t* workspace;
  size_t workspace_size;
} tvm_workspace_t;

/* Bytes before the first that is aligned are not used. */
tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t* workspace, uint8_t* memory, size_t num_bytes);
tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t* workspace, size_t num_bytes, void** out_ptr);
/* kTvmErrorPlatformStackAllocBadFree: the address lies outside, or beyond what is allocated. */
tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t* workspace, void* ptr);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_ */
