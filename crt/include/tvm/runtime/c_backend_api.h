/* SPDX-License-Identifier: Apache-2.0
 * What generated functions ask of the runtime. */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for intermediate values of a call, from TVMPlatformMemoryAllocate. Null: there is none. */
void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t num_bytes, int dtype_code, int dtype_bits);
int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_C_BACKEND_API_H_ */
