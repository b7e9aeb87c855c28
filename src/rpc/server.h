// SPDX-License-Identifier: Apache-2.0
// An RPC server: it listens, checks tokens and tickets, and runs each session in a separate process. TLS ends here: the
// session's process sees frames but never a token.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "rpc/listener.h"
#include "rpc/session_process.h"

namespace tilewright::rpc {

struct ServerOptions {
  std::string host = "0.0.0.0";
  int port = 9090, port_end = 9199;
  std::string key;
  Door door;  // for clients, and for the tracker
  std::string tracker_host;
  int tracker_port = 0;  // 0: no tracker
  std::string custom_address;
  SessionOptions session;
  int sessions = 1;  // concurrent sessions; others wait
  bool silent = false;
};

class Server {
 public:
  // Listens. Errors: those of Listener::open.
  static Result<std::unique_ptr<Server>> create(const ServerOptions& options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  int port() const { return listener_.port(); }
  // Serves until `stop` becomes readable, then ends all sessions.
  void run(int stop);

 private:
  Server(ServerOptions options, Listener listener);
  Result<std::unique_ptr<Channel>> open_door(int socket);
  Status serve_client(int socket, Channel& client);
  Status supervise_pumps(Channel& client, std::chrono::milliseconds limit);
  Status supervise_socket(int socket, std::chrono::milliseconds limit);
  bool take_ticket(const std::string& key);
  bool wait_for_place(int socket);
  void give_place_back();
  void offer_to_tracker();
  void talk_to_tracker(TrackerConnection& tracker);
  void log(const std::string& text) const;

  ServerOptions options_;
  Listener listener_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  std::string ticket_;          // expected from the tracker's client; valid once
  bool ticket_is_new_ = false;  // not offered to the tracker yet
};

}  // namespace tilewright::rpc
