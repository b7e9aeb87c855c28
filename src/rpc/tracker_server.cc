// SPDX-License-Identifier: Apache-2.0
#include "rpc/tracker_server.h"

#include <cstdio>

#include "base/format.h"
#include "rpc/tls.h"
#include "rpc/wire.h"

namespace tilewright::rpc {
namespace {

// A device silent for this long is gone; servers ask about their tickets every second.
constexpr std::chrono::milliseconds kLease{5000};
constexpr size_t kMaxPeers = 1024;

// The type of a message, from its first characters: "[3, ...".
char kind_of(std::string_view message) { return message.size() > 1 ? message[1] : ' '; }

}  // namespace

Result<std::unique_ptr<TrackerServer>> TrackerServer::create(const TrackerOptions& options) {
  Listener listener = TW_TRY(Listener::open(options.door, options.host, options.port, options.port_end));
  return std::unique_ptr<TrackerServer>(new TrackerServer(options, std::move(listener)));
}

TrackerServer::TrackerServer(TrackerOptions options, Listener listener)
    : options_(std::move(options)), listener_(std::move(listener)), table_(kLease) {}

void TrackerServer::log(const std::string& text) const {
  if (!options_.silent) std::fprintf(stderr, "tilewright rpc-tracker: %s\n", text.c_str());
}

void TrackerServer::run(int stop) {
  listener_.run(stop, {.most = kMaxPeers,
                       .serve = [this](int socket, const std::string& host) { return serve_peer(socket, host); },
                       .turn =
                           [this] {
                             std::lock_guard lock(mutex_);
                             table_.expire(std::chrono::steady_clock::now());
                           },
                       .ending =
                           [this] {
                             stopping_ = true;
                             std::lock_guard lock(mutex_);
                             for (const auto& [peer, channel] : channels_) channel->close();
                           },
                       .log = [this](const std::string& text) { log(text); }});
}

Status TrackerServer::serve_peer(int socket, const std::string& host) {
  std::unique_ptr<Channel> channel;
  Token token;
  if (options_.door.plaintext)
    channel = socket_channel(socket);
  else
    channel = TW_TRY(tls_accept(socket, listener_.token(), options_.door.patience, &token));
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
