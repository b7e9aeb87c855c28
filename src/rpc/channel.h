// SPDX-License-Identifier: Apache-2.0
// A connection as a stream of bytes that is read and written with a deadline.
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
  // What is there, at least one byte. Errors: ConnectionLost, TimeLimit.
  virtual Result<size_t> read_some(std::span<char> out) = 0;
  // All of `out`, all of `bytes`. A read and a write may go on in two threads. Errors: ConnectionLost, TimeLimit.
  Status read(std::span<char> out);
  virtual Status write(std::string_view bytes) = 0;
  // The descriptor that came first of those not taken yet; -1: none. The caller's to close.
  virtual int take_descriptor() { return -1; }
  // Ends what this side says; the other may still speak.
  virtual void finish() = 0;
  // Ends both directions, in any thread: a read that waits fails.
  virtual void close() = 0;
};

// Called after signals and several times a second while wait_for waits, in any thread; its error ends the wait. For
// programs whose interpreter looks at signals only when it runs. Set once, before threads wait.
void set_wait_check(std::function<Status()> check);
// Waits until the socket can be read or written (poll's events). Errors: ConnectionLost, TimeLimit; the check's.
Status wait_for(int socket, short events, std::chrono::milliseconds patience);
// The error of a peer that went away.
Diagnostic connection_lost(const std::string& why);
// Over a socket that it owns. A read or write that makes no progress for `patience` is an error; zero waits for ever.
std::unique_ptr<Channel> socket_channel(int socket, std::chrono::milliseconds patience = {});
// Over one that also brings descriptors of files.
std::unique_ptr<Channel> descriptor_channel(int socket);

}  // namespace tilewright::rpc
