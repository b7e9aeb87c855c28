// SPDX-License-Identifier: Apache-2.0
// A tracker process: connections and timers around a TrackerTable.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "rpc/listener.h"
#include "rpc/tracker_table.h"

namespace tilewright::rpc {

struct TrackerOptions {
  std::string host = "0.0.0.0";
  int port = 9190, port_end = 9199;
  Door door;
  bool silent = false;
};

class TrackerServer {
 public:
  // Listens. Errors: those of Listener::open.
  static Result<std::unique_ptr<TrackerServer>> create(const TrackerOptions& options);
  TrackerServer(const TrackerServer&) = delete;
  TrackerServer& operator=(const TrackerServer&) = delete;
  int port() const { return listener_.port(); }
  // Serves until `stop` becomes readable.
  void run(int stop);

 private:
  TrackerServer(TrackerOptions options, Listener listener);
  Status serve_peer(int socket, const std::string& host);
  Status converse(Channel& channel, TrackerTable::Peer peer, bool client_only);
  void log(const std::string& text) const;

  TrackerOptions options_;
  Listener listener_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  TrackerTable table_;
  std::map<TrackerTable::Peer, Channel*> channels_;
};

}  // namespace tilewright::rpc
