// SPDX-License-Identifier: Apache-2.0
// A connection as a byte stream with deadlines for reads and writes.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tilewright::rpc {

class Channel {
 public:
  virtual ~Channel() = default;
  // Reads what is available, at least one byte. Errors: ConnectionLost, TimeLimit.
  virtual Result<size_t> read_some(std::span<char> out) = 0;
  // Reads all of `out`, writes all of `bytes`. One thread may read while another writes. Errors: ConnectionLost,
  // TimeLimit.
  Status read(std::span<char> out);
  virtual Status write(std::string_view bytes) = 0;
  // The oldest received file descriptor that was not taken yet, or -1. The caller must close it.
  virtual int take_descriptor() { return -1; }
  // Closes the sending direction; the peer may still send.
  virtual void finish() = 0;
  // Closes both directions, from any thread: a waiting read fails.
  virtual void close() = 0;
};

// A check called after signals and several times per second while wait_for waits, in any thread; its error ends the
// wait. For programs whose interpreter handles signals only when it runs. Set once, before threads wait.
void set_wait_check(std::function<Status()> check);
// Waits until the socket is readable or writable (poll's events). Errors: ConnectionLost, TimeLimit; the check's.
Status wait_for(int socket, short events, std::chrono::milliseconds patience);
// The error for a peer that went away.
Diagnostic connection_lost(const std::string& why);
// A channel that owns a socket. A read or write without progress for `patience` is an error; zero waits forever.
std::unique_ptr<Channel> socket_channel(int socket, std::chrono::milliseconds patience = {});
// The same, also receiving file descriptors.
std::unique_ptr<Channel> descriptor_channel(int socket);

}  // namespace tilewright::rpc
