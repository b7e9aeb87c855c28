/* SPDX-License-Identifier: Apache-2.0
 * What functions of the C runtime return: 0, or a category in the second byte and a code in the first. */
#ifndef TVM_RUNTIME_CRT_ERROR_CODES_H_
#define TVM_RUNTIME_CRT_ERROR_CODES_H_

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  kTvmErrorNoError = 0,
  kTvmErrorFramingInvalidState = 0x0200,
  kTvmErrorFramingShortPacket = 0x0201,
  kTvmErrorFramingInvalidEscape = 0x0202,
  kTvmErrorFramingPayloadOverflow = 0x0203,
  kTvmErrorFramingCrcMismatch = 0x0204,
  kTvmErrorWriteStreamShortWrite = 0x0300,
  kTvmErrorSessionInvalidState = 0x0400,
  kTvmErrorPlatformCheckFailure = 0x0500,
  kTvmErrorPlatformNoMemory = 0x0501,
  kTvmErrorPlatformTimerBadState = 0x0502,
  kTvmErrorPlatformStackAllocBadFree = 0x0503,
  kTvmErrorExecutorModuleBadContext = 0x0700,
  kTvmErrorExecutorModuleNoSuchInput = 0x0701,
  kTvmErrorFunctionCallWrongArgType = 0x0800,
  kTvmErrorFunctionCallNumArguments = 0x0801
} tvm_crt_error_t;

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_ERROR_CODES_H_ */
