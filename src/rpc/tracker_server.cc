// SPDX-License-Identifier: Apache-2.0
#include "rpc/tracker_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <list>
#include <thread>

#include "base/format.h"
#include "rpc/tls.h"
#include "rpc/wire.h"

namespace tilewright::rpc {
namespace {

// A device that says nothing for so long is gone; servers ask for their tickets every second.
constexpr std::chrono::milliseconds kLease{5000};
constexpr size_t kMaxPeers = 1024;

struct TrackerPeer {
  std::thread thread;
  std::atomic<bool> done{false};
};

// The kind of a message, without reading the rest: "[3, ...".
char kind_of(std::string_view message) { return message.size() > 1 ? message[1] : ' '; }

}  // namespace

Result<std::unique_ptr<TrackerServer>> TrackerServer::create(const TrackerOptions& options) {
  if (options.door.plaintext && !is_loopback(options.host))
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("plaintext on '{}', which other machines reach", options.host), {},
                      "--classic-plaintext goes with --host 127.0.0.1 only");
  Token token;
  if (!options.door.plaintext) token = TW_TRY(load_token(options.door.token_path));
  int port = 0;
  const int listener = TW_TRY(tcp_listen(options.host, options.port, options.port_end, &port));
  return std::unique_ptr<TrackerServer>(new TrackerServer(options, std::move(token), listener, port));
}

TrackerServer::TrackerServer(TrackerOptions options, Token token, int listener, int port)
    : options_(std::move(options)), token_(std::move(token)), listener_(listener), port_(port), table_(kLease) {}

TrackerServer::~TrackerServer() { ::close(listener_); }

void TrackerServer::log(const std::string& text) const {
  if (!options_.silent) std::fprintf(stderr, "tilewright rpc-tracker: %s\n", text.c_str());
}

void TrackerServer::run(int stop) {
  std::list<TrackerPeer> peers;
  while (!stopping_) {
    std::array<pollfd, 2> waiting{pollfd{listener_, POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), 500) < 0 && errno != EINTR) break;
    if (waiting[1].revents != 0) break;
    {
      std::lock_guard lock(mutex_);
      table_.expire(std::chrono::steady_clock::now());
    }
    peers.remove_if([](TrackerPeer& one) {
      if (!one.done) return false;
      one.thread.join();
      return true;
    });
    if ((waiting[0].revents & POLLIN) == 0) continue;
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    if (peers.size() >= kMaxPeers) {
      ::close(socket);
      continue;
    }
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    TrackerPeer& one = peers.emplace_back();
    one.thread = std::thread([this, &one, socket] {
      const std::string host = peer_host(socket);
      const Status served = serve_peer(socket);
      if (!served.ok() && served.error().code != ErrorCode::kConnectionLost)
        log(format("{}: {}", host, served.error().str()));
      one.done = true;
    });
  }
  stopping_ = true;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [peer, channel] : channels_) channel->close();
  }
  for (TrackerPeer& one : peers) one.thread.join();
}

Status TrackerServer::serve_peer(int socket) {
  const std::string host = peer_host(socket);
  std::unique_ptr<Channel> channel;
  Token token;
  if (options_.door.plaintext)
    channel = socket_channel(socket);
  else
    channel = TW_TRY(tls_accept(socket, token_, options_.door.patience, &token));
  int32_t magic = 0;
  TW_TRY_STATUS(channel->read({reinterpret_cast<char*>(&magic), sizeof magic}));
  if (magic != kTrackerMagic) return Diagnostic(ErrorCode::kProtocolError, "a client that does not ask a tracker");
  TW_TRY_STATUS(channel->write({reinterpret_cast<const char*>(&magic), sizeof magic}));
  TrackerTable::Peer peer = 0;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return Ok{};
    peer = table_.connect(host, std::chrono::steady_clock::now());
    channels_[peer] = channel.get();
  }
  Status talked = converse(*channel, peer, is_client_only(token));
  std::lock_guard lock(mutex_);
  table_.disconnect(peer);
  channels_.erase(peer);
  return talked;
}

Status TrackerServer::converse(Channel& channel, TrackerTable::Peer peer, bool client_only) {
  for (;;) {
    const std::string message = TW_TRY(read_message(channel));
    const char kind = kind_of(message);
    if (client_only && (kind == '3' || kind == '5'))
      return Diagnostic(kTokenRefused, "somebody offers a device with a token that is for clients only");
    std::lock_guard lock(mutex_);
    const auto answers = TW_TRY(table_.receive(peer, message, std::chrono::steady_clock::now()));
    for (const auto& answer : answers) {
      const auto other = channels_.find(answer.to);
      if (other != channels_.end()) static_cast<void>(write_message(*other->second, answer.text).ok());
    }
  }
}

}  // namespace tilewright::rpc
