/* SPDX-License-Identifier: Apache-2.0
 * The C runtime as a whole. */
#ifndef TVM_RUNTIME_CRT_CRT_H_
#define TVM_RUNTIME_CRT_CRT_H_

#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Before any other function: registers the runtime's own functions, once. */
tvm_crt_error_t TVMInitializeRuntime(void);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_CRT_H_ */
