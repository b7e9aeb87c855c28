/* SPDX-License-Identifier: Apache-2.0
 * Values, functions and modules of the C runtime, by the classic stack's names. Functions return 0; otherwise
 * TVMGetLastError says why. */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/c_runtime_types.h>

#define TVM_DLL
#if defined(__GNUC__)
#define TVM_WEAK __attribute__((weak))
#else
#define TVM_WEAK
#endif

#ifdef __cplusplus
extern "C" {
#endif

const char* TVMGetLastError(void);
/* The text is not copied. */
void TVMAPISetLastError(const char* message);

/* Global functions: those of the runtime ("runtime.SystemLib") and those that the program registers. Names are not
 * copied. */
int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle function, int override);
int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out);
/* The handle of a C function, for TVMFuncRegisterGlobal. */
int TVMFuncCreateFromCFunc(TVMBackendPackedCFunc function, TVMFunctionHandle* out);
int TVMFuncCall(TVMFunctionHandle function, TVMValue* args, int* type_codes, int num_args, TVMValue* ret_value,
                int* ret_type_code);
int TVMFuncFree(TVMFunctionHandle function);

int TVMModGetFunction(TVMModuleHandle module, const char* name, int query_imports, TVMFunctionHandle* out);
int TVMModFree(TVMModuleHandle module);

/* Tensors in the platform's memory. */
int TVMArrayAlloc(const tvm_index_t* shape, int ndim, int dtype_code, int dtype_bits, int dtype_lanes, int device_type,
                  int device_id, TVMArrayHandle* out);
int TVMArrayFree(TVMArrayHandle array);
int TVMArrayCopyFromBytes(TVMArrayHandle array, void* data, size_t num_bytes);
int TVMArrayCopyToBytes(TVMArrayHandle array, void* data, size_t num_bytes);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
