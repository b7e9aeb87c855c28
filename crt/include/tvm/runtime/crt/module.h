/* SPDX-License-Identifier: Apache-2.0
 * Modules of the C runtime: tables of packed functions. */
#ifndef TVM_RUNTIME_CRT_MODULE_H_
#define TVM_RUNTIME_CRT_MODULE_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The names: two bytes with their number, the low one first, then each name with its zero. */
typedef struct {
  const char* names;
  const TVMBackendPackedCFunc* funcs;
} TVMFuncRegistry;

typedef struct {
  const TVMFuncRegistry* registry;
} TVMModule;

/* The functions of the models that are linked into the program: generated code defines it. */
const TVMModule* TVMSystemLibEntryPoint(void);

/* The function of this name; null: the module has none. */
TVMBackendPackedCFunc TVMFuncRegistry_Lookup(const TVMFuncRegistry* registry, const char* name);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_MODULE_H_ */
