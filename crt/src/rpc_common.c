/* SPDX-License-Identifier: Apache-2.0 */
#include <tvm/runtime/crt/rpc_common.h>

enum { kEscape = 0xff, kPacketStart = 0xfd, kNothing = 0xfe };
enum { kIdle, kLength, kPayload, kCrc };

uint16_t MicroTVMCrc(uint16_t crc, const uint8_t *data, size_t num_bytes) {
  for (size_t i = 0; i < num_bytes; ++i) {
    crc = (uint16_t)(crc ^ (uint16_t)((unsigned)data[i] << 8));
    for (int bit = 0; bit < 8; ++bit) crc = (uint16_t)((crc & 0x8000u) ? ((unsigned)crc << 1) ^ 0x1021u : (unsigned)crc << 1);
  }
  return crc;
}

static tvm_crt_error_t write_all(const MicroTVMFramer *framer, const uint8_t *data, size_t num_bytes) {
  while (num_bytes > 0) {
    const ptrdiff_t taken = framer->write(framer->context, data, num_bytes);
    if (taken <= 0) return kTvmErrorWriteStreamShortWrite;
    data += taken;
    num_bytes -= (size_t)taken;
  }
  return kTvmErrorNoError;
}

static tvm_crt_error_t write_escaped(const MicroTVMFramer *framer, const uint8_t *data, size_t num_bytes) {
  static const uint8_t twice[2] = {kEscape, kEscape};
  size_t begin = 0;
  for (size_t i = 0; i <= num_bytes; ++i) {
    if (i < num_bytes && data[i] != kEscape) continue;
    tvm_crt_error_t error = write_all(framer, data + begin, i - begin);
    if (error == kTvmErrorNoError && i < num_bytes) error = write_all(framer, twice, sizeof twice);
    if (error != kTvmErrorNoError) return error;
    begin = i + 1;
  }
  return kTvmErrorNoError;
}

tvm_crt_error_t MicroTVMFramerStart(MicroTVMFramer *framer, uint32_t payload_bytes) {
  static const uint8_t start[2] = {kEscape, kPacketStart};
  uint8_t length[4];
  for (int i = 0; i < 4; ++i) length[i] = (uint8_t)(payload_bytes >> (8 * i));
  framer->left = payload_bytes;
  framer->crc = MicroTVMCrc(0xffff, length, sizeof length);
  const tvm_crt_error_t error = write_all(framer, start, sizeof start);
  return error != kTvmErrorNoError ? error : write_escaped(framer, length, sizeof length);
}

tvm_crt_error_t MicroTVMFramerWrite(MicroTVMFramer *framer, const void *data, size_t num_bytes) {
  if (num_bytes > framer->left) return kTvmErrorFramingPayloadOverflow;
  framer->left -= (uint32_t)num_bytes;
  framer->crc = MicroTVMCrc(framer->crc, (const uint8_t *)data, num_bytes);
  return write_escaped(framer, (const uint8_t *)data, num_bytes);
}

tvm_crt_error_t MicroTVMFramerFinish(MicroTVMFramer *framer) {
  const uint8_t crc[2] = {(uint8_t)framer->crc, (uint8_t)(framer->crc >> 8)};
  if (framer->left != 0) return kTvmErrorFramingInvalidState;
  return write_escaped(framer, crc, sizeof crc);
}

void MicroTVMUnframerInit(MicroTVMUnframer *unframer, uint8_t *buffer, uint32_t capacity) {
  const MicroTVMUnframer fresh = {0};
  *unframer = fresh;
  unframer->buffer = buffer;
  unframer->capacity = capacity;
}

static void begin_packet(MicroTVMUnframer *u) {
  u->state = kLength;
  u->counted = 0;
  u->length = u->have = 0;
  u->crc = 0xffff;
  u->received_crc = 0;
}

/* A byte of a packet, escapes resolved. */
static int take(MicroTVMUnframer *u, uint8_t byte, tvm_crt_error_t *error) {
  switch (u->state) {
    case kLength:
      u->crc = MicroTVMCrc(u->crc, &byte, 1);
      u->length |= (uint32_t)byte << (8 * u->counted);
      if (++u->counted < 4) return 0;
      u->counted = 0;
      u->state = u->length == 0 ? kCrc : kPayload;
      if (u->length > u->capacity) {
        u->state = kIdle;
        *error = kTvmErrorFramingPayloadOverflow;
      }
      return 0;
    case kPayload:
      u->crc = MicroTVMCrc(u->crc, &byte, 1);
      u->buffer[u->have++] = byte;
      if (u->have == u->length) u->state = kCrc;
      return 0;
    case kCrc:
      u->received_crc = (uint16_t)(u->received_crc | (unsigned)byte << (8 * u->counted));
      if (++u->counted < 2) return 0;
      u->state = kIdle;
      if (u->received_crc == u->crc) return 1;
      *error = kTvmErrorFramingCrcMismatch;
      return 0;
    default:
      return 0; /* noise between packets */
  }
}

int MicroTVMUnframerByte(MicroTVMUnframer *u, uint8_t byte, tvm_crt_error_t *error) {
  *error = kTvmErrorNoError;
  if (!u->escaped) {
    if (byte != kEscape) return take(u, byte, error);
    u->escaped = 1;
    return 0;
  }
  u->escaped = 0;
  if (byte == kEscape) return take(u, byte, error);
  if (byte == kPacketStart) {
    if (u->state != kIdle) *error = kTvmErrorFramingShortPacket;
    begin_packet(u);
  } else if (byte != kNothing) {
    u->state = kIdle;
    *error = kTvmErrorFramingInvalidEscape;
  }
  return 0;
}
