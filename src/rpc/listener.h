// SPDX-License-Identifier: Apache-2.0
// The listening side of a server and of a tracker: one socket, a thread for each connection.
#pragma once
#include <functional>
#include <string>

#include "rpc/connect.h"

namespace tilewright::rpc {

struct ConnectionHandlers {
  size_t most;  // connections at a time; whoever comes beyond them is sent away
  // On a thread of its own; the socket is its own, too. An error is logged, unless the other side just went.
  std::function<Status(int socket, const std::string& host)> serve;
  // Between connections, twice a second at least; may be empty.
  std::function<void()> turn;
  // Nobody is let in any more: those who are served shall come to an end, for they are waited for now.
  std::function<void()> ending;
  std::function<void(const std::string&)> log;
};

class Listener {
 public:
  // Listens on the first free port of the range. Errors: those of tcp_listen and load_token; InvalidArgument (plaintext
  // where other machines reach it).
  static Result<Listener> open(const Door& door, const std::string& host, int port, int port_end);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();
  int port() const { return port_; }
  const Token& token() const { return token_; }  // empty for plaintext
  // Serves until `stop` becomes readable.
  void run(int stop, const ConnectionHandlers& handlers) const;

 private:
  Listener(Token token, int socket, int port) : token_(std::move(token)), socket_(socket), port_(port) {}
  Token token_;
  int socket_, port_;
};

}  // namespace tilewright::rpc
