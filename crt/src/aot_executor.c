/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <tvm/runtime/crt/aot_executor.h>

int32_t TVMAotTensorIndex(const TVMAotTensor *tensors, int32_t count, const char *name, size_t name_bytes) {
  for (int32_t i = 0; i < count; ++i)
    if (strlen(tensors[i].name) == name_bytes && memcmp(tensors[i].name, name, name_bytes) == 0) return i;
  return -1;
}
