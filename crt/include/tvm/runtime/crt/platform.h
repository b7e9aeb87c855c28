/* SPDX-License-Identifier: Apache-2.0
 * What a platform gives the C runtime; a project's platform.c has them. */
#ifndef TVM_RUNTIME_CRT_PLATFORM_H_
#define TVM_RUNTIME_CRT_PLATFORM_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Before anything else: clocks, serial lines, memory. */
tvm_crt_error_t TVMPlatformInitialize(void);
/* Does not return. */
void TVMPlatformAbort(tvm_crt_error_t code);
/* Aligned for every C type. */
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void** out_ptr);
tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev);
/* One timer at a time; the seconds that passed between the two. */
tvm_crt_error_t TVMPlatformTimerStart(void);
tvm_crt_error_t TVMPlatformTimerStop(double* elapsed_time_seconds);
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t* buffer, size_t num_bytes);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_PLATFORM_H_ */
