/* SPDX-License-Identifier: Apache-2.0
 * Calls of packed functions with their arguments in one value. */
#ifndef TVM_RUNTIME_CRT_PACKED_FUNC_H_
#define TVM_RUNTIME_CRT_PACKED_FUNC_H_

#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/platform.h>

#define TVM_CRT_MAX_ARGS 10

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  TVMValue values[TVM_CRT_MAX_ARGS];
  int tcodes[TVM_CRT_MAX_ARGS];
  int values_count; /* more than TVM_CRT_MAX_ARGS are an error of the call */
} TVMArgs;

typedef struct TVMPackedFunc {
  TVMFunctionHandle fexec; /* null: not found, and a call fails */
  TVMArgs args;
  TVMArgs ret_value;
} TVMPackedFunc;

TVMArgs TVMArgs_Create(TVMValue* values, uint32_t* tcodes, uint32_t values_count);
/* Null unless argument `index` is a module. */
TVMModuleHandle TVMArgs_AsModuleHandle(const TVMArgs* args, size_t index);

int TVMPackedFunc_InitGlobalFunc(TVMPackedFunc* pf, const char* name, const TVMArgs* args);
int TVMPackedFunc_InitModuleFunc(TVMPackedFunc* pf, TVMModuleHandle module, const char* name, const TVMArgs* args);
int TVMPackedFunc_Call(TVMPackedFunc* pf);
void TVMPackedFunc_SetArgs(TVMPackedFunc* pf, const TVMArgs* args);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_PACKED_FUNC_H_ */
