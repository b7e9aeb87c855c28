/* SPDX-License-Identifier: Apache-2.0
 * Memory of one array, in whole pages, freed in any order: for tensors that the other end of a session asks for. */
#ifndef TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The table of pages lies at the start of the pool; a page's entry says how many pages its piece has (0: free, or not
 * the first of its piece). */
typedef struct {
  uint16_t* pages;
  uint8_t* memory;
  size_t num_pages, page_size_bytes_log2;
} PageMemoryManager;

/* The pool must be aligned to 8 bytes. kTvmErrorPlatformNoMemory: it holds no page. */
tvm_crt_error_t PageMemoryManagerCreate(PageMemoryManager* manager, uint8_t* pool, size_t pool_bytes,
                                        size_t page_size_bytes_log2);
tvm_crt_error_t PageMemoryManagerAllocate(PageMemoryManager* manager, size_t num_bytes, void** out_ptr);
/* kTvmErrorPlatformCheckFailure: the address is not of a piece that is in use. */
tvm_crt_error_t PageMemoryManagerFree(PageMemoryManager* manager, void* ptr);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_ */
