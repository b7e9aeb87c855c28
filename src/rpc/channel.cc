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

Diagnostic lost(const char* why) {
  return {ErrorCode::kConnectionLost, format("the connection is gone: {}", why), "remote"};
}

class SocketChannel : public Channel {
 public:
  SocketChannel(int socket, std::chrono::milliseconds patience) : socket_(socket), patience_(patience) {}
  ~SocketChannel() override { ::close(socket_); }

  Status read(std::span<char> out) override {
    while (!out.empty()) {
      const ssize_t n = ::recv(socket_, out.data(), out.size(), MSG_DONTWAIT);
      if (n == 0) return lost("the other side closed it");
      if (n > 0)
        out = out.subspan(static_cast<size_t>(n));
      else
        TW_TRY_STATUS(wait_after(errno, POLLIN));
    }
    return Ok{};
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

  void close() override { ::shutdown(socket_, SHUT_RDWR); }

 private:
  Status wait_after(int error, short events) const {
    if (error == EINTR) return Ok{};
    if (error != EAGAIN && error != EWOULDBLOCK) return lost(std::strerror(error));
    pollfd waiting{socket_, events, 0};
    const int timeout = patience_.count() > 0 ? static_cast<int>(patience_.count()) : -1;
    const int ready = ::poll(&waiting, 1, timeout);
    if (ready == 0)
      return Diagnostic(ErrorCode::kTimeLimit, format("the other side was silent for {} ms", patience_.count()),
                        "remote", "give the session more time, or look at what the other side does");
    if (ready < 0 && errno != EINTR) return lost(std::strerror(errno));
    return Ok{};
  }

  int socket_;
  std::chrono::milliseconds patience_;
};

}  // namespace

std::unique_ptr<Channel> socket_channel(int socket, std::chrono::milliseconds patience) {
  return std::make_unique<SocketChannel>(socket, patience);
}

}  // namespace tilewright::rpc
