// SPDX-License-Identifier: Apache-2.0
#include "rpc/micro_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"

namespace tilewright::rpc {
namespace {

constexpr char kPacketEscape = '\xff', kPacketStart = '\xfd', kPacketNothing = '\xfe';
constexpr size_t kMostOfPacket = size_t{64} << 20;
constexpr std::chrono::milliseconds kAskAgain{300};
enum class Message : uint8_t { kStart = 0, kStarted = 1, kEnd = 2, kLog = 3, kNormal = 0x10 };

class MicroChannel : public Channel {
 public:
  MicroChannel(int socket, std::chrono::milliseconds patience) : socket_(socket), patience_(patience) {}
  ~MicroChannel() override { ::close(socket_); }

  // The device may still be starting, or be sending the rest of an abandoned answer.
  Status begin(std::chrono::milliseconds limit) {
    static std::atomic<unsigned> sessions{static_cast<unsigned>(getpid())};
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
      const auto nonce = static_cast<uint8_t>(sessions++ % 255 + 1);
      session_[0] = static_cast<char>(nonce), session_[1] = 0;
      TW_TRY_STATUS(send(make_packet(message(Message::kStart, {}))));
      const auto again = std::chrono::steady_clock::now() + kAskAgain;
      for (;;) {
        const auto now = std::chrono::steady_clock::now();
        if (now >= end)
          return Diagnostic(ErrorCode::kTimeLimit,
                            format("the device did not begin a session within {} ms", limit.count()), "remote",
                            "is its program built and running, and is this its serial line?");
        if (now >= again) break;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(std::min(again, end) - now);
        auto came = packet(std::max(left, std::chrono::milliseconds(1)));
        if (!came.ok() && came.error().code != ErrorCode::kTimeLimit) return std::move(came).error();
        if (!came.ok() || !*came || kind() != Message::kStarted || reader_.payload()[0] != session_[0]) continue;
        session_[1] = reader_.payload()[1];
        return Ok{};
      }
    }
  }

  Result<size_t> read_some(std::span<char> out) override {
    while (at_ == ready_.size()) {
      if (!TW_TRY(packet(patience_))) continue;
      if (kind() == Message::kLog) std::fprintf(stderr, "device: %s\n", reader_.payload().c_str() + kHead);
      if (kind() != Message::kNormal || reader_.payload().compare(0, 2, session_, 2) != 0) continue;
      ready_ = reader_.payload().substr(kHead);
      at_ = 0;
    }
    const size_t n = std::min(out.size(), ready_.size() - at_);
    std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(at_), n, out.begin());
    at_ += n;
    return n;
  }

  // Sends each complete frame as a packet.
  Status write(std::string_view bytes) override {
    waiting_ += bytes;
    for (;;) {
      uint64_t length = 0;
      if (waiting_.size() < sizeof length) return Ok{};
      std::memcpy(&length, waiting_.data(), sizeof length);
      if (waiting_.size() - sizeof length < length) return Ok{};
      const size_t whole = sizeof length + static_cast<size_t>(length);
      TW_TRY_STATUS(send(make_packet(message(Message::kNormal, std::string_view(waiting_).substr(0, whole)))));
      waiting_.erase(0, whole);
    }
  }

  void finish() override { ::shutdown(socket_, SHUT_WR); }
  void close() override {
    if (!closed_.exchange(true)) static_cast<void>(send(make_packet(message(Message::kEnd, {}))).ok());
    ::shutdown(socket_, SHUT_RDWR);
  }

 private:
  static constexpr size_t kHead = 3;  // two bytes for the session, one for the kind

  std::string message(Message kind, std::string_view body) const {
    std::string out(session_, 2);
    out += static_cast<char>(kind);
    return out.append(body);
  }
  Message kind() const { return static_cast<Message>(static_cast<uint8_t>(reader_.payload()[2])); }

  Status send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n >= 0)
        bytes.remove_prefix(static_cast<size_t>(n));
      else if (errno != EINTR)
        return connection_lost(std::strerror(errno));
    }
    return Ok{};
  }

  // Whether a packet was completed; partial data counts as progress, too.
  Result<bool> packet(std::chrono::milliseconds patience) {
    while (line_at_ == line_.size()) {
      TW_TRY_STATUS(wait_for(socket_, POLLIN, patience));
      char bytes[4096];
      const ssize_t n = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (n == 0) return connection_lost("the device's program ended");
      if (n < 0 && errno != EAGAIN && errno != EINTR) return connection_lost(std::strerror(errno));
      line_.assign(bytes, n > 0 ? static_cast<size_t>(n) : 0);
      line_at_ = 0;
    }
    while (line_at_ < line_.size())
      if (reader_.take(line_[line_at_++])) return reader_.payload().size() >= kHead;
    return false;
  }

  int socket_;
  std::chrono::milliseconds patience_;
  char session_[2] = {0, 0};
  PacketReader reader_{kMostOfPacket};
  std::string line_, ready_, waiting_;
  size_t line_at_ = 0, at_ = 0;
  std::atomic<bool> closed_{false};
};

}  // namespace

uint16_t packet_crc(std::string_view bytes, uint16_t crc) {
  for (const char c : bytes) {
    crc = static_cast<uint16_t>(crc ^ static_cast<uint16_t>(static_cast<uint8_t>(c) << 8));
    for (int bit = 0; bit < 8; ++bit) crc = static_cast<uint16_t>((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
  }
  return crc;
}

std::string make_packet(std::string_view payload) {
  const auto length = static_cast<uint32_t>(payload.size());
  std::string body;
  for (int i = 0; i < 4; ++i) body += static_cast<char>(length >> (8 * i));
  body += payload;
  const uint16_t crc = packet_crc(body);
  body += {static_cast<char>(crc & 0xff), static_cast<char>(crc >> 8)};
  std::string out = {kPacketEscape, kPacketStart};
  for (const char c : body) {
    if (c == kPacketEscape) out += c;
    out += c;
  }
  return out;
}

bool PacketReader::take(char byte) {
  if (!escaped_) {
    if (byte != kPacketEscape) return take_inside(byte);
    escaped_ = true;
    return false;
  }
  escaped_ = false;
  if (byte == kPacketEscape) return take_inside(byte);
  if (byte == kPacketStart) {
    state_ = State::kLength;
    head_.clear(), payload_.clear(), checksum_.clear();
  } else if (byte != kPacketNothing) {
    state_ = State::kIdle;
  }
  return false;
}

bool PacketReader::take_inside(char byte) {
  switch (state_) {
    case State::kIdle:
      return false;
    case State::kLength:
      head_ += byte;
      if (head_.size() < 4) return false;
      length_ = 0;
      for (int i = 0; i < 4; ++i)
        length_ |= static_cast<uint32_t>(static_cast<uint8_t>(head_[static_cast<size_t>(i)])) << (8 * i);
      state_ = length_ > most_ ? State::kIdle : length_ == 0 ? State::kChecksum : State::kPayload;
      return false;
    case State::kPayload:
      payload_ += byte;
      if (payload_.size() == length_) state_ = State::kChecksum;
      return false;
    case State::kChecksum:
      checksum_ += byte;
      if (checksum_.size() < 2) return false;
      state_ = State::kIdle;
      const uint16_t crc = packet_crc(payload_, packet_crc(head_));
      return checksum_[0] == static_cast<char>(crc & 0xff) && checksum_[1] == static_cast<char>(crc >> 8);
  }
  return false;
}

Result<std::unique_ptr<Channel>> micro_channel(int socket, std::chrono::milliseconds start,
                                               std::chrono::milliseconds patience) {
  auto channel = std::make_unique<MicroChannel>(socket, patience);
  TW_TRY_STATUS(channel->begin(start));
  return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace tilewright::rpc
