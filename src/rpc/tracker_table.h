// SPDX-License-Identifier: Apache-2.0
// A tracker's state and decisions: which devices are offered under which key, which requests wait, and who gets a
// device. Messages are the classic stack's JSON; the caller provides connections and time.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright::rpc {

inline constexpr size_t kMaxTrackerMessage = 64 << 10;

class TrackerTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Peer = uint64_t;
  struct Answer {
    Peer to;
    std::string text;
  };

  // A peer silent for `lease` loses the tickets that it offers.
  explicit TrackerTable(std::chrono::milliseconds lease) : lease_(lease) {}
  // Adds a connection from `host`; disconnect removes its tickets and requests.
  Peer connect(std::string host, Time now);
  void disconnect(Peer peer);
  // The answers that a message causes: to the sender, unless it must wait, and to others that waited. A device goes to
  // the request with the highest priority, among those to the oldest; each ticket is used once. Errors: ProtocolError,
  // after which the connection should be closed; the table is unchanged.
  Result<std::vector<Answer>> receive(Peer peer, std::string_view message, Time now);
  // Withdraws the tickets of silent peers.
  void expire(Time now);

 private:
  struct Client {
    std::string host, key;  // key: a server's; empty for others
    std::string address;    // a server's, as JSON
    Time heard;
    bool waits = false;
  };
  struct Ticket {
    Peer owner;
    std::string match_key, answer;
  };
  struct Request {
    Peer owner;
    int64_t priority;
  };
  struct Queue {
    std::deque<Ticket> free;
    std::deque<Request> waiting;  // in serving order
  };
  struct Reader;

  std::string summary() const;
  std::string pending(Peer peer) const;
  bool is_offered(const std::string& match_key) const;
  void match(Queue& queue, std::vector<Answer>* answers);
  void take_back(Peer peer);

  std::chrono::milliseconds lease_;
  Peer last_ = 0;
  std::map<Peer, Client> clients_;
  std::map<std::string, Queue> queues_;
};

}  // namespace tilewright::rpc
