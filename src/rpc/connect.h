// SPDX-License-Identifier: Apache-2.0
// From addresses to connections: of a client to a server or a tracker, and of those who listen.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "rpc/channel.h"
#include "rpc/token.h"

namespace tilewright::rpc {

// How a door is opened: with a token; without, for programs of the classic stack on this machine only.
struct Door {
  bool plaintext = false;
  std::string token_path;  // empty: the user's default, made on first use
  std::chrono::milliseconds patience{5000};
};

// Errors: InvalidArgument (no such host), ConnectionLost (nobody listens), TimeLimit.
Result<int> tcp_connect(const std::string& host, int port, std::chrono::milliseconds patience);
bool is_loopback(const std::string& host);
// A socket that listens on the first free port of the range. Error: CannotWrite (all are taken).
Result<int> tcp_listen(const std::string& host, int port, int port_end, int* chosen);
// "10.0.0.7" of whoever is at the other end.
std::string peer_host(int socket);

// A connection without or with TLS. Errors: those of tcp_connect and tls_connect; InvalidArgument (plaintext to another
// machine). `later`: how long the other side may be silent; 0: for ever.
Result<std::unique_ptr<Channel>> connect_channel(const std::string& host, int port, const Door& door,
                                                 std::chrono::milliseconds later = {});
// The same as a session: `key` is what the server calls itself, or a tracker's ticket. Errors: TokenRefused (a ticket
// that is not, or no more), InvalidArgument (another key). A session that ends after `limit` is not waited for longer.
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
// Its messages: i32 length, JSON.
Status write_message(Channel& channel, const std::string& text);
Result<std::string> read_message(Channel& channel);

}  // namespace tilewright::rpc
