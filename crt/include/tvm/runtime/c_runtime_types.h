/* SPDX-License-Identifier: Apache-2.0
 * Values and functions of the packed convention, by the classic stack's names. */
#ifndef TVM_RUNTIME_C_RUNTIME_TYPES_H_
#define TVM_RUNTIME_C_RUNTIME_TYPES_H_

#include <dlpack/dlpack.h>
#include <stdint.h>

typedef enum {
  kTVMArgInt = 0,
  kTVMArgFloat = 2,
  kTVMOpaqueHandle = 3,
  kTVMNullptr = 4,
  kTVMDataType = 5,
  kDLDevice = 6,
  kTVMDLTensorHandle = 7,
  kTVMObjectHandle = 8,
  kTVMModuleHandle = 9,
  kTVMPackedFuncHandle = 10,
  kTVMStr = 11,
  kTVMBytes = 12,
  kTVMNDArrayHandle = 13
} TVMArgTypeCode;

typedef int64_t tvm_index_t;
typedef DLDevice TVMDevice;
typedef DLTensor* TVMArrayHandle;
typedef void* TVMFunctionHandle;
typedef void* TVMModuleHandle;

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

/* A packed function: arguments and their type codes, then the result and its. */
typedef int32_t (*TVMBackendPackedCFunc)(TVMValue* args, int32_t* type_codes, int32_t num_args, TVMValue* out_ret_value,
                                         int32_t* out_ret_tcode, void* resource_handle);

#endif /* TVM_RUNTIME_C_RUNTIME_TYPES_H_ */
