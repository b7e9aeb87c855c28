// SPDX-License-Identifier: Apache-2.0
#include "rpc/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <thread>
#include <utility>

#include "base/format.h"

namespace tilewright::rpc {
namespace {

struct Connection {
  std::thread thread;
  std::atomic<bool> done{false};
};

void serve(const ConnectionHandlers& handlers, int socket) {
  const std::string host = peer_host(socket);
  const Status served = handlers.serve(socket, host);
  if (!served.ok() && served.error().code != ErrorCode::kConnectionLost)
    handlers.log(format("{}: {}", host, served.error().str()));
}

}  // namespace

Result<Listener> Listener::open(const Door& door, const std::string& host, int port, int port_end) {
  if (door.plaintext && !is_loopback(host))
    return Diagnostic(ErrorCode::kInvalidArgument, format("plaintext on '{}', which other machines reach", host), {},
                      "--classic-plaintext goes with --host 127.0.0.1 only");
  Token token;
  if (!door.plaintext) token = TW_TRY(load_token(door.token_path));
  int chosen = 0;
  const int socket = TW_TRY(tcp_listen(host, port, port_end, &chosen));
  return Listener(std::move(token), socket, chosen);
}

Listener::Listener(Listener&& other) noexcept
    : token_(std::move(other.token_)), socket_(std::exchange(other.socket_, -1)), port_(other.port_) {}

Listener::~Listener() {
  if (socket_ >= 0) ::close(socket_);
}

void Listener::run(int stop, const ConnectionHandlers& handlers) const {
  std::list<Connection> connections;
  for (;;) {
    if (handlers.turn) handlers.turn();
    std::array<pollfd, 2> waiting{pollfd{socket_, POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), 500) < 0 && errno != EINTR) break;
    if (waiting[1].revents != 0) break;
    connections.remove_if([](Connection& one) {
      if (!one.done) return false;
      one.thread.join();
      return true;
    });
    if ((waiting[0].revents & POLLIN) == 0) continue;
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    if (connections.size() >= handlers.most) {
      ::close(socket);
      continue;
    }
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    Connection& one = connections.emplace_back();
    one.thread = std::thread([&handlers, &one, socket] {
      serve(handlers, socket);
      one.done = true;
    });
  }
  handlers.ending();
  for (Connection& one : connections) one.thread.join();
}

}  // namespace tilewright::rpc
