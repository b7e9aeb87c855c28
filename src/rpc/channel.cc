// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"

namespace tilewright::rpc {
namespace {

class SocketChannel : public Channel {
 public:
  SocketChannel(int socket, std::chrono::milliseconds patience) : socket_(socket), patience_(patience) {}
  ~SocketChannel() override { ::close(socket_); }

  Result<size_t> read_some(std::span<char> out) override {
    for (;;) {
      const ssize_t n = ::recv(socket_, out.data(), out.size(), MSG_DONTWAIT);
      if (n == 0) return connection_lost("the other side closed it");
      if (n > 0) return static_cast<size_t>(n);
      TW_TRY_STATUS(wait_after(errno, POLLIN));
    }
  }

  Status write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n >= 0)
        bytes.remove_prefix(static_cast<size_t>(n));
      else
        TW_TRY_STATUS(wait_after(errno, POLLOUT));
    }
    return Ok{};
  }

  void finish() override { ::shutdown(socket_, SHUT_WR); }
  void close() override { ::shutdown(socket_, SHUT_RDWR); }

 private:
  Status wait_after(int error, short events) const {
    if (error == EINTR) return Ok{};
    if (error != EAGAIN && error != EWOULDBLOCK) return connection_lost(std::strerror(error));
    return wait_for(socket_, events, patience_);
  }

  int socket_;
  std::chrono::milliseconds patience_;
};

}  // namespace

Status Channel::read(std::span<char> out) {
  while (!out.empty()) out = out.subspan(TW_TRY(read_some(out)));
  return Ok{};
}

Diagnostic connection_lost(const std::string& why) {
  return {ErrorCode::kConnectionLost, format("the connection is gone: {}", why), "remote"};
}

Status wait_for(int socket, short events, std::chrono::milliseconds patience) {
  pollfd waiting{socket, events, 0};
  const int timeout = patience.count() > 0 ? static_cast<int>(patience.count()) : -1;
  const int ready = ::poll(&waiting, 1, timeout);
  if (ready == 0)
    return Diagnostic(ErrorCode::kTimeLimit, format("the other side was silent for {} ms", patience.count()), "remote",
                      "give the session more time, or look at what the other side does");
  if (ready < 0 && errno != EINTR) return connection_lost(std::strerror(errno));
  return Ok{};
}

std::unique_ptr<Channel> socket_channel(int socket, std::chrono::milliseconds patience) {
  return std::make_unique<SocketChannel>(socket, patience);
}

}  // namespace tilewright::rpc
