/* SPDX-License-Identifier: Apache-2.0
 * Packets on a serial line, and sessions in them. A packet is 0xff 0xfd, a length of four bytes, that many bytes of
 * payload and their CRC (CCITT, over the length too); a byte 0xff inside is sent twice, and 0xff 0xfe means nothing.
 * A payload starts with the session's number (a byte of each side) and the kind of the message. */
#ifndef TVM_RUNTIME_CRT_RPC_COMMON_H_
#define TVM_RUNTIME_CRT_RPC_COMMON_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes to the line: how many bytes it took, at least one; less than 0: it is broken. */
typedef ptrdiff_t (*microtvm_rpc_channel_write_t)(void* context, const uint8_t* data, size_t num_bytes);

uint16_t MicroTVMCrc(uint16_t before, const uint8_t* data, size_t num_bytes); /* of a new packet: before 0xffff */

/* ---- writing: start says how long the payload is, write gives it in pieces, finish ends it. */
typedef struct {
  microtvm_rpc_channel_write_t write;
  void* context;
  uint32_t left;
  uint16_t crc;
} MicroTVMFramer;
tvm_crt_error_t MicroTVMFramerStart(MicroTVMFramer* framer, uint32_t payload_bytes);
tvm_crt_error_t MicroTVMFramerWrite(MicroTVMFramer* framer, const void* data, size_t num_bytes);
tvm_crt_error_t MicroTVMFramerFinish(MicroTVMFramer* framer);

/* ---- reading: bytes go in one by one. */
typedef struct {
  uint8_t* buffer;
  uint32_t capacity;
  uint32_t length, have; /* of the payload */
  uint16_t crc, received_crc;
  uint8_t state, escaped, counted;
} MicroTVMUnframer;
void MicroTVMUnframerInit(MicroTVMUnframer* unframer, uint8_t* buffer, uint32_t capacity);
/* 1: a whole packet lies in buffer[0 .. length); else 0. What is damaged or too long is dropped, and *error says so. */
int MicroTVMUnframerByte(MicroTVMUnframer* unframer, uint8_t byte, tvm_crt_error_t* error);

enum {
  kMicroTVMStartSessionInit = 0x00,
  kMicroTVMStartSessionReply = 0x01,
  kMicroTVMTerminateSession = 0x02,
  kMicroTVMLog = 0x03,
  kMicroTVMNormal = 0x10
};
#define MICROTVM_SESSION_HEADER_BYTES 3

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_RPC_COMMON_H_ */
