/* SPDX-License-Identifier: Apache-2.0
 * The models of this project as a program of this machine: it serves a session over its standard input and output. */
#include <crt_config.h>
#include <stdlib.h>
#include <time.h>
#include <tvm/runtime/crt/microtvm_rpc_server.h>
#include <tvm/runtime/crt/platform.h>
#include <unistd.h>

static struct timespec timer_start;

tvm_crt_error_t TVMPlatformInitialize(void) { return kTvmErrorNoError; }
void TVMPlatformAbort(tvm_crt_error_t code) { exit((int)code != 0); }
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void **out_ptr) {
  (void)dev;
  *out_ptr = malloc(num_bytes);
  return *out_ptr ? kTvmErrorNoError : kTvmErrorPlatformNoMemory;
}
tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev) {
  (void)dev;
  free(ptr);
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformTimerStart(void) {
  clock_gettime(CLOCK_MONOTONIC, &timer_start);
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *elapsed_time_seconds =
      (double)(now.tv_sec - timer_start.tv_sec) + 1e-9 * (double)(now.tv_nsec - timer_start.tv_nsec);
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes) {
  for (size_t i = 0; i < num_bytes; ++i) buffer[i] = (uint8_t)(getpid() >> (i % 2));
  return kTvmErrorNoError;
}

static ptrdiff_t write_line(void *context, const uint8_t *data, size_t num_bytes) {
  (void)context;
  return write(STDOUT_FILENO, data, num_bytes);
}

int main(void) {
  uint8_t bytes[512];
  ssize_t have;
  if (TVMPlatformInitialize() != kTvmErrorNoError) return 1;
  const microtvm_rpc_server_t server = MicroTVMRpcServerInit(write_line, NULL);
  while ((have = read(STDIN_FILENO, bytes, sizeof bytes)) > 0) {
    const uint8_t *at = bytes;
    size_t left = (size_t)have;
    /* What is damaged on the line is dropped; the host asks again or gives up. */
    (void)MicroTVMRpcServerLoop(server, &at, &left);
    if (MicroTVMRpcServerHasEnded(server)) return 0;
  }
  return 0;
}
