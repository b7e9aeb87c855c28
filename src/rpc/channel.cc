// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/format.h"

namespace tilewright::rpc {
namespace {

std::atomic<const std::function<Status()>*> wait_check{nullptr};  // never freed

class SocketChannel : public Channel {
 public:
  SocketChannel(int socket, std::chrono::milliseconds patience) : socket_(socket), patience_(patience) {}
  ~SocketChannel() override { ::close(socket_); }

  Result<size_t> read_some(std::span<char> out) override {
    for (;;) {
      const ssize_t n = receive(out);
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

 protected:
  virtual ssize_t receive(std::span<char> out) { return ::recv(socket_, out.data(), out.size(), MSG_DONTWAIT); }
  int socket_;

 private:
  Status wait_after(int error, short events) const {
    if (error == EINTR) return Ok{};
    if (error != EAGAIN && error != EWOULDBLOCK) return connection_lost(std::strerror(error));
    return wait_for(socket_, events, patience_);
  }

  std::chrono::milliseconds patience_;
};

class DescriptorChannel : public SocketChannel {
 public:
  explicit DescriptorChannel(int socket) : SocketChannel(socket, {}) {}
  ~DescriptorChannel() override {
    for (const int descriptor : descriptors_) ::close(descriptor);
  }
  int take_descriptor() override {
    if (descriptors_.empty()) return -1;
    const int first = descriptors_.front();
    descriptors_.pop_front();
    return first;
  }

 private:
  ssize_t receive(std::span<char> out) override {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec piece{out.data(), out.size()};
    msghdr message{};
    message.msg_iov = &piece, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    for (cmsghdr* head = n < 0 ? nullptr : CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
      descriptors_.push_back(descriptor);
    }
    return n;
  }
  std::deque<int> descriptors_;
};

}  // namespace

Status Channel::read(std::span<char> out) {
  while (!out.empty()) out = out.subspan(TW_TRY(read_some(out)));
  return Ok{};
}

Diagnostic connection_lost(const std::string& why) {
  return {ErrorCode::kConnectionLost, format("the connection is gone: {}", why), "remote"};
}

void set_wait_check(std::function<Status()> check) { wait_check = new std::function<Status()>(std::move(check)); }

Status wait_for(int socket, short events, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kGlance{200};
  const auto* const check = wait_check.load();
  const auto end = patience.count() > 0 ? Clock::now() + patience : Clock::time_point::max();
  for (;;) {
    const auto left =
        end == Clock::time_point::max()
            ? std::chrono::milliseconds(-1)
            : std::max(std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()), std::chrono::milliseconds(0));
    const auto timeout = check && (left.count() < 0 || left > kGlance) ? kGlance : left;
    pollfd waiting{socket, events, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(timeout.count()));
    if (ready > 0) return Ok{};
    if (ready < 0 && errno != EINTR) return connection_lost(std::strerror(errno));
    if (check) TW_TRY_STATUS((*check)());
    if (Clock::now() >= end)
      return Diagnostic(ErrorCode::kTimeLimit, format("the other side was silent for {} ms", patience.count()),
                        "remote", "give the session more time, or look at what the other side does");
    if (ready < 0 && !check) return Ok{};
  }
}

std::unique_ptr<Channel> socket_channel(int socket, std::chrono::milliseconds patience) {
  return std::make_unique<SocketChannel>(socket, patience);
}

std::unique_ptr<Channel> descriptor_channel(int socket) { return std::make_unique<DescriptorChannel>(socket); }

}  // namespace tilewright::rpc
