// SPDX-License-Identifier: Apache-2.0
// A session over a serial line: frames are sent in packets with checksums, in the format of
// crt/include/tvm/runtime/crt/rpc_common.h.
#pragma once
#include "rpc/channel.h"

namespace tilewright::rpc {

uint16_t packet_crc(std::string_view bytes, uint16_t before = 0xffff);
// A payload as a packet.
std::string make_packet(std::string_view payload);

// Reassembles packets from the bytes of a line.
class PacketReader {
 public:
  explicit PacketReader(size_t most) : most_(most) {}
  // Whether a packet is complete: payload() returns it. Damaged and overlong packets are dropped.
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

// A channel that owns a socket. Requests a session until the device answers, for up to `start`; afterwards silence of
// `patience` is an error (zero: no limit). Errors: TimeLimit, ConnectionLost.
Result<std::unique_ptr<Channel>> micro_channel(int socket, std::chrono::milliseconds start,
                                               std::chrono::milliseconds patience);

}  // namespace tilewright::rpc
