/* SPDX-License-Identifier: Apache-2.0 */
#include <tvm/runtime/crt/page_allocator.h>

/* Pieces of more pages than an entry can say do not exist: num_pages is limited to 0x7fff. The high bit marks pages
 * that belong to a piece without being its first. */
#define INNER_PAGE 0x8000u

tvm_crt_error_t PageMemoryManagerCreate(PageMemoryManager *manager, uint8_t *pool, size_t pool_bytes,
                                        size_t page_size_bytes_log2) {
  const size_t page = (size_t)1 << page_size_bytes_log2;
  size_t count = pool_bytes / (page + sizeof(uint16_t)), table;
  if (count > 0x7fff) count = 0x7fff;
  table = (count * sizeof(uint16_t) + 7) / 8 * 8;
  while (count > 0 && table + count * page > pool_bytes) --count;
  if (count == 0) return kTvmErrorPlatformNoMemory;
  manager->pages = (uint16_t *)(void *)pool;
  manager->memory = pool + table;
  manager->num_pages = count;
  manager->page_size_bytes_log2 = page_size_bytes_log2;
  for (size_t i = 0; i < count; ++i) manager->pages[i] = 0;
  return kTvmErrorNoError;
}

tvm_crt_error_t PageMemoryManagerAllocate(PageMemoryManager *manager, size_t num_bytes, void **out_ptr) {
  const size_t page = (size_t)1 << manager->page_size_bytes_log2;
  const size_t need = num_bytes == 0 ? 1 : num_bytes / page + (num_bytes % page != 0);
  size_t run = 0;
  for (size_t i = 0; i < manager->num_pages; ++i) {
    run = manager->pages[i] == 0 ? run + 1 : 0;
    if (run < need) continue;
    const size_t first = i + 1 - need;
    manager->pages[first] = (uint16_t)need;
    for (size_t k = first + 1; k <= i; ++k) manager->pages[k] = INNER_PAGE;
    *out_ptr = manager->memory + (first << manager->page_size_bytes_log2);
    return kTvmErrorNoError;
  }
  return kTvmErrorPlatformNoMemory;
}

tvm_crt_error_t PageMemoryManagerFree(PageMemoryManager *manager, void *ptr) {
  const uintptr_t at = (uintptr_t)ptr, begin = (uintptr_t)manager->memory;
  const size_t first = (size_t)(at - begin) >> manager->page_size_bytes_log2;
  if (at < begin || first >= manager->num_pages || begin + (first << manager->page_size_bytes_log2) != at ||
      manager->pages[first] == 0 || manager->pages[first] == INNER_PAGE)
    return kTvmErrorPlatformCheckFailure;
  for (size_t k = first + manager->pages[first]; k-- > first;) manager->pages[k] = 0;
  return kTvmErrorNoError;
}
