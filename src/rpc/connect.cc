// SPDX-License-Identifier: Apache-2.0
#include "rpc/connect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "rpc/tls.h"
#include "rpc/tracker_table.h"
#include "rpc/wire.h"

namespace tilewright::rpc {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> addresses_of(const std::string& host, int port, bool to_listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), format("{}", port).c_str(), &hints, &list);
  if (status != 0)
    return Diagnostic(ErrorCode::kInvalidArgument, format("no address for '{}': {}", host, ::gai_strerror(status)));
  return Addresses(list);
}

void speak_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Result<int> connect_to(const addrinfo& address, const std::string& name, std::chrono::milliseconds patience) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return connection_lost(std::strerror(errno));
  int why = ::connect(socket, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (why == EINPROGRESS) {
    const Status ready = wait_for(socket, POLLOUT, patience);
    socklen_t size = sizeof why;
    if (!ready.ok() && ready.error().code != ErrorCode::kTimeLimit) {
      ::close(socket);
      return ready.error();
    }
    if (!ready.ok() || ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &why, &size) != 0)
      why = ready.ok() ? errno : ETIMEDOUT;
  }
  if (why == 0) {
    speak_at_once(socket);
    return socket;
  }
  ::close(socket);
  return Diagnostic(why == ETIMEDOUT ? ErrorCode::kTimeLimit : ErrorCode::kConnectionLost,
                    format("no connection to {}: {}", name, std::strerror(why)), {},
                    "see that the server runs there, and that the port is right");
}

template <class T>
Status read_number(Channel& channel, T* out) {
  return channel.read({reinterpret_cast<char*>(out), sizeof *out});
}

}  // namespace

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

Result<int> tcp_connect(const std::string& host, int port, std::chrono::milliseconds patience) {
  const Addresses list = TW_TRY(addresses_of(host, port, false));
  Result<int> socket = connection_lost("no address");
  for (const addrinfo* one = list.get(); one && !socket.ok(); one = one->ai_next)
    socket = connect_to(*one, format("{}:{}", host, port), patience);
  return socket;
}

Result<int> tcp_listen(const std::string& host, int port, int port_end, int* chosen) {
  int why = 0;
  for (int number = port; number <= std::max(port, port_end); ++number) {
    const Addresses list = TW_TRY(addresses_of(host, number, true));
    const int socket = ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return connection_lost(std::strerror(errno));
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::bind(socket, list->ai_addr, list->ai_addrlen) == 0 && ::listen(socket, 64) == 0 &&
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) == 0) {
      *chosen = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                  : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
      return socket;
    }
    why = errno;
    ::close(socket);
  }
  return Diagnostic(ErrorCode::kCannotWrite,
                    format("no port from {} to {} can be used: {}", port, port_end, std::strerror(why)), host,
                    "name a free one with --port");
}

std::string peer_host(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  char text[NI_MAXHOST] = "";
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0)
    ::getnameinfo(reinterpret_cast<sockaddr*>(&peer), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

Result<std::unique_ptr<Channel>> connect_channel(const std::string& host, int port, const Door& door,
                                                 std::chrono::milliseconds later) {
  if (door.plaintext && !is_loopback(host))
    return Diagnostic(ErrorCode::kInvalidArgument, format("plaintext to '{}', which is another machine", host), {},
                      "plaintext is for this machine only; use TLS and a token");
  if (door.plaintext) return socket_channel(TW_TRY(tcp_connect(host, port, door.patience)), later);
  const Token token = TW_TRY(load_token(door.token_path));
  return tls_connect(TW_TRY(tcp_connect(host, port, door.patience)), token, door.patience, later);
}

Result<std::unique_ptr<Channel>> connect_session(const std::string& host, int port, const std::string& key,
                                                 std::chrono::milliseconds limit, const Door& door) {
  const auto patience = limit.count() > 0 ? limit + std::chrono::seconds(1) : limit;
  auto channel = TW_TRY(connect_channel(host, port, door, patience));
  const std::string name =
      "client:" + key +
      (limit.count() > 0 ? format(" -timeout={}", static_cast<double>(limit.count()) / 1000) : std::string());
  ByteWriter hello;
  hello.write(kSessionMagic);
  hello.write(static_cast<int32_t>(name.size()));
  hello.write_bytes(name.data(), name.size());
  TW_TRY_STATUS(channel->write(hello.str()));
  int32_t answer = 0, size = 0;
  TW_TRY_STATUS(read_number(*channel, &answer));  // a busy server makes its clients wait
  if (answer == kSessionMagic + 2 && key.find(':') != std::string::npos)
    return Diagnostic(kTokenRefused, "the server does not take this ticket: it was used, or is for another one", {},
                      "ask the tracker for a new one");
  if (answer == kSessionMagic + 2 && door.plaintext)
    return Diagnostic(ErrorCode::kProtocolError,
                      format("the server takes no plaintext, or has another key than '{}'", key), {},
                      "a server with TLS is connected to without plaintext");
  if (answer == kSessionMagic + 2)
    return Diagnostic(ErrorCode::kInvalidArgument, format("the server has another key than '{}'", key), {},
                      "give the key that the server was started with; one with a tracker is asked for there");
  if (answer == kSessionMagic + 1)
    return Diagnostic(ErrorCode::kInvalidArgument, format("the key '{}' is in use", key));
  if (answer != kSessionMagic)
    return Diagnostic(
        ErrorCode::kProtocolError, format("{}:{} is no server of sessions", host, port), {},
        door.plaintext ? "a server with TLS is connected to without plaintext" : "see that the port is right");
  TW_TRY_STATUS(read_number(*channel, &size));
  if (size < 0 || size > 4096) return Diagnostic(ErrorCode::kProtocolError, "a server whose key is too long");
  std::string server_key(static_cast<size_t>(size), '\0');
  TW_TRY_STATUS(channel->read(server_key));
  if (!server_key.starts_with("server:"))
    return Diagnostic(ErrorCode::kProtocolError, format("{}:{} is no server of sessions", host, port));
  return channel;
}

Status write_message(Channel& channel, const std::string& text) {
  ByteWriter out;
  out.write(static_cast<int32_t>(text.size()));
  out.write_bytes(text.data(), text.size());
  return channel.write(out.str());
}

Result<std::string> read_message(Channel& channel) {
  int32_t size = 0;
  TW_TRY_STATUS(read_number(channel, &size));
  if (size < 0 || static_cast<size_t>(size) > 16 * kMaxTrackerMessage)
    return Diagnostic(ErrorCode::kProtocolError, format("a tracker's message of {} bytes", size));
  std::string text(static_cast<size_t>(size), '\0');
  TW_TRY_STATUS(channel.read(text));
  return text;
}

Result<std::unique_ptr<TrackerConnection>> TrackerConnection::open(const std::string& host, int port,
                                                                   const Door& door) {
  auto channel = TW_TRY(connect_channel(host, port, door));
  ByteWriter hello;
  hello.write(kTrackerMagic);
  TW_TRY_STATUS(channel->write(hello.str()));
  int32_t magic = 0;
  TW_TRY_STATUS(read_number(*channel, &magic));
  if (magic != kTrackerMagic) return Diagnostic(ErrorCode::kProtocolError, format("{}:{} is no tracker", host, port));
  return std::unique_ptr<TrackerConnection>(new TrackerConnection(std::move(channel)));
}

Result<std::string> TrackerConnection::ask(const std::string& message) {
  TW_TRY_STATUS(write_message(*channel_, message));
  return read_message(*channel_);
}

}  // namespace tilewright::rpc
