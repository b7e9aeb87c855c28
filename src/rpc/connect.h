// SPDX-License-Identifier: Apache-2.0
// Establishes connections: of clients to servers and trackers, and listening sockets.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "rpc/channel.h"
#include "rpc/token.h"

namespace tilewright::rpc {

// How a connection is authenticated: by a token, or not at all, for classic programs on this machine only.
struct Door {
  bool plaintext = false;
  std::string token_path;  // empty: the user's default, created on first use
  std::chrono::milliseconds patience{5000};
};

// Errors: InvalidArgument (no such host), ConnectionLost (refused), TimeLimit.
Result<int> tcp_connect(const std::string& host, int port, std::chrono::milliseconds patience);
bool is_loopback(const std::string& host);
// A socket listening on the first free port of the range. Error: CannotWrite (all are taken).
Result<int> tcp_listen(const std::string& host, int port, int port_end, int* chosen);
// The peer's address, as "10.0.0.7".
std::string peer_host(int socket);

// A connection with or without TLS. Errors: those of tcp_connect and tls_connect; InvalidArgument (plaintext to another
// machine). `later`: how long the peer may be silent afterwards; 0: forever.
Result<std::unique_ptr<Channel>> connect_channel(const std::string& host, int port, const Door& door,
                                                 std::chrono::milliseconds later = {});
// Opens a session: `key` is the server's key, or a tracker's ticket. Errors: TokenRefused (an invalid or used ticket),
// InvalidArgument (another key). If the session ends after `limit`, calls do not wait longer.
Result<std::unique_ptr<Channel>> connect_session(const std::string& host, int port, const std::string& key,
                                                 std::chrono::milliseconds limit, const Door& door);

// A tracker's client: one message, one answer.
class TrackerConnection {
 public:
  static Result<std::unique_ptr<TrackerConnection>> open(const std::string& host, int port, const Door& door);
  // Errors: ConnectionLost, TimeLimit, ProtocolError.
  Result<std::string> ask(const std::string& message);
  void close() { channel_->close(); }

 private:
  explicit TrackerConnection(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}
  std::unique_ptr<Channel> channel_;
};
// Tracker messages: i32 length, JSON.
Status write_message(Channel& channel, const std::string& text);
Result<std::string> read_message(Channel& channel);

}  // namespace tilewright::rpc
