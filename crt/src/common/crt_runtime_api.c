/* SPDX-License-Identifier: Apache-2.0
 * Functions, modules and tensors by handles. A function's handle is the address of its entry: a pointer to a C function
 * cannot be a handle itself in C99. */
#include <crt_config.h>
#include <string.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/packed_func.h>
#include <tvm/runtime/crt/platform.h>

#ifndef TVM_CRT_GLOBAL_FUNCTIONS
#define TVM_CRT_GLOBAL_FUNCTIONS 8
#endif
#ifndef TVM_CRT_MAX_FUNCTIONS
#define TVM_CRT_MAX_FUNCTIONS 64
#endif

typedef struct {
  TVMBackendPackedCFunc call;
} Function;

static const char* last_error = "";
static Function functions[TVM_CRT_MAX_FUNCTIONS];
static int32_t function_count;
static struct {
  const char* name;
  TVMFunctionHandle function;
} globals[TVM_CRT_GLOBAL_FUNCTIONS];
static int32_t global_count;

static const DLDevice kProcessor = {kDLCPU, 0};

static int failed(const char* why) {
  last_error = why;
  return -1;
}
const char* TVMGetLastError(void) { return last_error; }
void TVMAPISetLastError(const char* message) { last_error = message; }

int TVMFuncCreateFromCFunc(TVMBackendPackedCFunc function, TVMFunctionHandle* out) {
  for (int32_t i = 0; i < function_count; ++i)
    if (functions[i].call == function) {
      *out = &functions[i];
      return 0;
    }
  if (function_count == TVM_CRT_MAX_FUNCTIONS) return failed("more functions than TVM_CRT_MAX_FUNCTIONS");
  functions[function_count].call = function;
  *out = &functions[function_count++];
  return 0;
}
int TVMFuncFree(TVMFunctionHandle function) {
  (void)function;
  return 0;
}

int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle function, int override) {
  for (int32_t i = 0; i < global_count; ++i)
    if (strcmp(globals[i].name, name) == 0) {
      if (!override) return failed("a global function of this name is there already");
      globals[i].function = function;
      return 0;
    }
  if (global_count == TVM_CRT_GLOBAL_FUNCTIONS) return failed("more global functions than TVM_CRT_GLOBAL_FUNCTIONS");
  globals[global_count].name = name;
  globals[global_count++].function = function;
  return 0;
}
int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out) {
  *out = NULL;
  for (int32_t i = 0; i < global_count; ++i)
    if (strcmp(globals[i].name, name) == 0) *out = globals[i].function;
  return *out ? 0 : failed("no global function has this name");
}
int TVMFuncCall(TVMFunctionHandle function, TVMValue* args, int* type_codes, int num_args, TVMValue* ret_value,
                int* ret_type_code) {
  const Function* called = (const Function*)function;
  int32_t code = kTVMNullptr;
  int error;
  if (!called) return failed("a call of no function");
  error = called->call(args, type_codes, num_args, ret_value, &code, NULL);
  *ret_type_code = code;
  return error;
}

/* ---- modules */
TVMBackendPackedCFunc TVMFuncRegistry_Lookup(const TVMFuncRegistry* registry, const char* name) {
  const unsigned char* head = (const unsigned char*)registry->names;
  const uint32_t count = (uint32_t)head[0] | (uint32_t)head[1] << 8;
  const char* at = registry->names + 2;
  for (uint32_t i = 0; i < count; ++i, at += strlen(at) + 1)
    if (strcmp(at, name) == 0) return registry->funcs[i];
  return NULL;
}
int TVMModGetFunction(TVMModuleHandle module, const char* name, int query_imports, TVMFunctionHandle* out) {
  TVMBackendPackedCFunc found;
  (void)query_imports; /* modules of devices import none */
  *out = NULL;
  if (!module) return failed("a function of no module");
  found = TVMFuncRegistry_Lookup(((const TVMModule*)module)->registry, name);
  return found ? TVMFuncCreateFromCFunc(found, out) : failed("the module has no function of this name");
}
int TVMModFree(TVMModuleHandle module) {
  (void)module;
  return 0;
}

static int32_t system_lib(TVMValue* args, int32_t* type_codes, int32_t num_args, TVMValue* out, int32_t* out_code,
                          void* resource) {
  (void)args, (void)type_codes, (void)num_args, (void)resource;
  out->v_handle = (void*)(uintptr_t)TVMSystemLibEntryPoint();
  *out_code = kTVMModuleHandle;
  return 0;
}
tvm_crt_error_t TVMInitializeRuntime(void) {
  TVMFunctionHandle handle;
  if (TVMFuncCreateFromCFunc(system_lib, &handle) != 0 || TVMFuncRegisterGlobal("runtime.SystemLib", handle, 1) != 0)
    return kTvmErrorPlatformNoMemory;
  return kTvmErrorNoError;
}

/* ---- calls with their arguments in one value */
TVMArgs TVMArgs_Create(TVMValue* values, uint32_t* tcodes, uint32_t values_count) {
  TVMArgs out;
  memset(&out, 0, sizeof out);
  out.values_count = (int)values_count;
  for (uint32_t i = 0; i < values_count && i < TVM_CRT_MAX_ARGS; ++i) {
    out.values[i] = values[i];
    out.tcodes[i] = (int)tcodes[i];
  }
  return out;
}
TVMModuleHandle TVMArgs_AsModuleHandle(const TVMArgs* args, size_t index) {
  const int has = index < TVM_CRT_MAX_ARGS && (int)index < args->values_count;
  return has && args->tcodes[index] == kTVMModuleHandle ? args->values[index].v_handle : NULL;
}
void TVMPackedFunc_SetArgs(TVMPackedFunc* pf, const TVMArgs* args) { pf->args = *args; }
int TVMPackedFunc_InitGlobalFunc(TVMPackedFunc* pf, const char* name, const TVMArgs* args) {
  memset(pf, 0, sizeof *pf);
  TVMPackedFunc_SetArgs(pf, args);
  return TVMFuncGetGlobal(name, &pf->fexec);
}
int TVMPackedFunc_InitModuleFunc(TVMPackedFunc* pf, TVMModuleHandle module, const char* name, const TVMArgs* args) {
  memset(pf, 0, sizeof *pf);
  TVMPackedFunc_SetArgs(pf, args);
  return TVMModGetFunction(module, name, 0, &pf->fexec);
}
int TVMPackedFunc_Call(TVMPackedFunc* pf) {
  if (pf->args.values_count > TVM_CRT_MAX_ARGS) return failed("a call with more than TVM_CRT_MAX_ARGS arguments");
  pf->ret_value.values_count = 1;
  pf->ret_value.tcodes[0] = kTVMNullptr;
  return TVMFuncCall(pf->fexec, pf->args.values, pf->args.tcodes, pf->args.values_count, &pf->ret_value.values[0],
                     &pf->ret_value.tcodes[0]);
}

/* ---- memory */
void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t num_bytes, int dtype_code, int dtype_bits) {
  void* out = NULL;
  (void)device_type, (void)device_id, (void)dtype_code, (void)dtype_bits;
  if (num_bytes > SIZE_MAX || TVMPlatformMemoryAllocate((size_t)num_bytes, kProcessor, &out) != kTvmErrorNoError) {
    last_error = "the platform has no memory for a function's workspace";
    return NULL;
  }
  return out;
}
int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr) {
  (void)device_type, (void)device_id;
  return TVMPlatformMemoryFree(ptr, kProcessor) == kTvmErrorNoError ? 0 : failed("memory that was not in use is freed");
}

/* Bytes of a compact tensor; SIZE_MAX: more than there can be. */
static size_t bytes_of(const DLTensor* t) {
  uint64_t bits = t->dtype.bits == 1 ? 8 : t->dtype.bits; /* bool */
  bits *= t->dtype.lanes;
  for (int32_t i = 0; i < t->ndim; ++i) {
    if (t->shape[i] < 0 || (t->shape[i] > 0 && bits > UINT64_MAX / 8 / (uint64_t)t->shape[i])) return SIZE_MAX;
    bits *= (uint64_t)t->shape[i];
  }
  bits = (bits + 7) / 8;
  return bits >= SIZE_MAX ? SIZE_MAX : (size_t)bits;
}
int TVMArrayAlloc(const tvm_index_t* shape, int ndim, int dtype_code, int dtype_bits, int dtype_lanes, int device_type,
                  int device_id, TVMArrayHandle* out) {
  void* memory = NULL;
  const size_t head = sizeof(DLTensor) + (size_t)ndim * sizeof(int64_t);
  if (ndim < 0 || ndim > TVM_CRT_MAX_NDIM) return failed("a tensor of more than TVM_CRT_MAX_NDIM dimensions");
  if (TVMPlatformMemoryAllocate(head, kProcessor, &memory) != kTvmErrorNoError)
    return failed("the platform has no memory for a tensor");
  DLTensor* t = (DLTensor*)memory;
  memset(t, 0, sizeof *t);
  t->shape = (int64_t*)(t + 1);
  t->ndim = ndim;
  for (int i = 0; i < ndim; ++i) t->shape[i] = shape[i];
  t->dtype.code = (uint8_t)dtype_code, t->dtype.bits = (uint8_t)dtype_bits, t->dtype.lanes = (uint16_t)dtype_lanes;
  t->device.device_type = (DLDeviceType)device_type, t->device.device_id = device_id;
  const size_t bytes = bytes_of(t);
  if (bytes == SIZE_MAX || TVMPlatformMemoryAllocate(bytes ? bytes : 1, kProcessor, &t->data) != kTvmErrorNoError) {
    (void)TVMPlatformMemoryFree(memory, kProcessor);
    return failed("the platform has no memory for a tensor");
  }
  *out = t;
  return 0;
}
int TVMArrayFree(TVMArrayHandle array) {
  const int data = TVMPlatformMemoryFree(array->data, kProcessor) == kTvmErrorNoError;
  return TVMPlatformMemoryFree(array, kProcessor) == kTvmErrorNoError && data
             ? 0
             : failed("a tensor that is not in use is freed");
}
int TVMArrayCopyFromBytes(TVMArrayHandle array, void* data, size_t num_bytes) {
  if (num_bytes != bytes_of(array)) return failed("the bytes are not as many as the tensor's");
  memcpy((uint8_t*)array->data + array->byte_offset, data, num_bytes);
  return 0;
}
int TVMArrayCopyToBytes(TVMArrayHandle array, void* data, size_t num_bytes) {
  if (num_bytes != bytes_of(array)) return failed("the bytes are not as many as the tensor's");
  memcpy(data, (const uint8_t*)array->data + array->byte_offset, num_bytes);
  return 0;
}
