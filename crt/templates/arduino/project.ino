// SPDX-License-Identifier: Apache-2.0
// The models of this project as a sketch: it serves a session over Serial.
extern "C" {
#include "src/tvm/runtime/crt/microtvm_rpc_server.h"
#include "src/tvm/runtime/crt/platform.h"
}

static unsigned long timer_start;
static microtvm_rpc_server_t server;

extern "C" {
tvm_crt_error_t TVMPlatformInitialize(void) { return kTvmErrorNoError; }
void TVMPlatformAbort(tvm_crt_error_t) {
  for (;;) {
  }
}
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t, DLDevice, void **) { return kTvmErrorPlatformNoMemory; }
tvm_crt_error_t TVMPlatformMemoryFree(void *, DLDevice) { return kTvmErrorPlatformCheckFailure; }
tvm_crt_error_t TVMPlatformTimerStart(void) {
  timer_start = micros();
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds) {
  *elapsed_time_seconds = 1e-6 * (double)(micros() - timer_start);
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes) {
  for (size_t i = 0; i < num_bytes; ++i) buffer[i] = (uint8_t)random(256);
  return kTvmErrorNoError;
}
}

static ptrdiff_t write_serial(void *, const uint8_t *data, size_t num_bytes) {
  return (ptrdiff_t)Serial.write(data, num_bytes);
}

void setup() {
  Serial.begin(115200);
  server = MicroTVMRpcServerInit(write_serial, nullptr);
}

void loop() {
  while (Serial.available() > 0) {
    const uint8_t byte = (uint8_t)Serial.read(), *at = &byte;
    size_t left = 1;
    (void)MicroTVMRpcServerLoop(server, &at, &left);
  }
}
