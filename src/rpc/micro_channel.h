// SPDX-License-Identifier: Apache-2.0
// A device on a serial line as the other end of a session: the session's frames in packets with checksums
// (crt/include/tvm/runtime/crt/rpc_common.h says how they look).
#pragma once
#include "rpc/channel.h"

namespace tilewright::rpc {

uint16_t packet_crc(std::string_view bytes, uint16_t before = 0xffff);
// A payload as a packet.
std::string make_packet(std::string_view payload);

// Bytes of a line, one by one, to packets.
class PacketReader {
 public:
  explicit PacketReader(size_t most) : most_(most) {}
  // Whether a packet is complete now: payload() has it. What is damaged or too long is dropped.
  bool take(char byte);
  const std::string& payload() const { return payload_; }

 private:
  enum class State { kIdle, kLength, kPayload, kChecksum };
  bool take_inside(char byte);
  size_t most_;
  State state_ = State::kIdle;
  bool escaped_ = false;
  std::string head_, payload_, checksum_;
  uint32_t length_ = 0;
};

// Over a socket that it owns. Asks the device for a session until it answers, `start` long; later a device that is
// silent for `patience` is an error (zero: it may think for ever). Errors: TimeLimit, ConnectionLost.
Result<std::unique_ptr<Channel>> micro_channel(int socket, std::chrono::milliseconds start,
                                               std::chrono::milliseconds patience);

}  // namespace tilewright::rpc
