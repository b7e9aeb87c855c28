/* SPDX-License-Identifier: Apache-2.0
 * The models of this project under Zephyr: it serves a session over the console's UART. */
#include <crt_config.h>
#include <tvm/runtime/crt/microtvm_rpc_server.h>
#include <tvm/runtime/crt/platform.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/reboot.h>
#include <zephyr/timing/timing.h>

static const struct device *const uart = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));
static timing_t timer_start;

tvm_crt_error_t TVMPlatformInitialize(void) {
  timing_init();
  return device_is_ready(uart) ? kTvmErrorNoError : kTvmErrorPlatformCheckFailure;
}
void TVMPlatformAbort(tvm_crt_error_t code) {
  (void)code;
  k_panic();
}
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
  timing_start();
  timer_start = timing_counter_get();
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds) {
  timing_t stop = timing_counter_get();
  *elapsed_time_seconds = 1e-9 * (double)timing_cycles_to_ns(timing_cycles_get(&timer_start, &stop));
  timing_stop();
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes) {
  for (size_t i = 0; i < num_bytes; ++i) buffer[i] = (uint8_t)(k_cycle_get_32() + i);
  return kTvmErrorNoError;
}

static ptrdiff_t write_uart(void *context, const uint8_t *data, size_t num_bytes) {
  (void)context;
  for (size_t i = 0; i < num_bytes; ++i) uart_poll_out(uart, data[i]);
  return (ptrdiff_t)num_bytes;
}

int main(void) {
  if (TVMPlatformInitialize() != kTvmErrorNoError) return 1;
  const microtvm_rpc_server_t server = MicroTVMRpcServerInit(write_uart, 0);
  for (;;) {
    uint8_t byte;
    if (uart_poll_in(uart, &byte) != 0) continue;
    const uint8_t *at = &byte;
    size_t left = 1;
    (void)MicroTVMRpcServerLoop(server, &at, &left);
  }
}
