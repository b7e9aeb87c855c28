// SPDX-License-Identifier: Apache-2.0
// What a tracker knows and decides: which devices offer themselves under which key, who waits for one, who gets it. The
// messages are the classic stack's JSON, in and out; connections and clocks are the caller's.
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

  // A peer that says nothing for `lease` loses the tickets it offers.
  explicit TrackerTable(std::chrono::milliseconds lease) : lease_(lease) {}
  // A new connection from `host`, and its end: tickets and waiting requests of its go.
  Peer connect(std::string host, Time now);
  void disconnect(Peer peer);
  // What the message brings about: the sender's answer, where it need not wait, and what others waited for. A device
  // goes to the request of the highest priority, of those to the oldest, and each ticket goes once. Errors:
  // ProtocolError, after which the connection should end; the table is as it was.
  Result<std::vector<Answer>> receive(Peer peer, std::string_view message, Time now);
  // Takes the tickets of silent peers back.
  void expire(Time now);

 private:
  struct Client {
    std::string host, key;  // key: what a server calls itself; empty for others
    std::string address;    // of a server, as JSON
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
    std::deque<Request> waiting;  // in the order they are served
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
