/* SPDX-License-Identifier: Apache-2.0
 * The models of this project on an MPS2 board with the image AN386: it serves a session over UART 0. */
#include <crt_config.h>
#include <tvm/runtime/crt/microtvm_rpc_server.h>
#include <tvm/runtime/crt/platform.h>

#include "mps2_an386.h"

tvm_crt_error_t TVMPlatformInitialize(void) {
  UART_DIVIDER = 16;
  UART_CONTROL = 3; /* send and receive */
  return kTvmErrorNoError;
}
void TVMPlatformAbort(tvm_crt_error_t code) {
  (void)code;
  for (;;) {
  }
}
/* Everything has its place before the program starts. */
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void **out_ptr) {
  (void)dev;
  (void)num_bytes, (void)out_ptr;
  return kTvmErrorPlatformNoMemory;
}
tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev) {
  (void)dev;
  (void)ptr;
  return kTvmErrorPlatformCheckFailure;
}
tvm_crt_error_t TVMPlatformTimerStart(void) {
  SYSTICK_CONTROL = 0;
  SYSTICK_RELOAD = SYSTICK_PERIOD - 1;
  SYSTICK_VALUE = 0;
  systick_wraps = 0;
  SYSTICK_CONTROL = 7; /* on, with an interrupt when it wraps, by the processor's clock */
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds) {
  uint32_t wraps, value;
  do { /* a wrap between the two reads would count twice or not at all */
    wraps = systick_wraps;
    value = SYSTICK_VALUE;
  } while (wraps != systick_wraps);
  SYSTICK_CONTROL = 0;
  *elapsed_time_seconds = ((double)wraps * SYSTICK_PERIOD + (SYSTICK_PERIOD - 1 - value)) / CLOCK_HZ;
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes) {
  for (size_t i = 0; i < num_bytes; ++i) buffer[i] = (uint8_t)(SYSTICK_VALUE + i); /* tells sessions apart, no more */
  return kTvmErrorNoError;
}

static ptrdiff_t write_uart(void *context, const uint8_t *data, size_t num_bytes) {
  (void)context;
  for (size_t i = 0; i < num_bytes; ++i) {
    while (UART_STATE & 1u) {
    }
    UART_DATA = data[i];
  }
  return (ptrdiff_t)num_bytes;
}

int main(void) {
  (void)TVMPlatformInitialize();
  const microtvm_rpc_server_t server = MicroTVMRpcServerInit(write_uart, 0);
  for (;;) {
    while (!(UART_STATE & 2u)) {
    }
    const uint8_t byte = (uint8_t)UART_DATA, *at = &byte;
    size_t left = 1;
    (void)MicroTVMRpcServerLoop(server, &at, &left);
  }
}
