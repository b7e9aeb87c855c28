// SPDX-License-Identifier: Apache-2.0
// A connection as a stream of bytes that is read and written with a deadline.
#pragma once
#include <chrono>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"

namespace tilewright::rpc {

class Channel {
 public:
  virtual ~Channel() = default;
  // All of `out`, all of `bytes`. Errors: ConnectionLost, TimeLimit.
  virtual Status read(std::span<char> out) = 0;
  virtual Status write(std::string_view bytes) = 0;
  // Ends both directions, in any thread: a read that waits fails.
  virtual void close() = 0;
};

// Over a socket that it owns. A read or write that makes no progress for `patience` is an error; zero waits for ever.
std::unique_ptr<Channel> socket_channel(int socket, std::chrono::milliseconds patience = {});

}  // namespace tilewright::rpc
