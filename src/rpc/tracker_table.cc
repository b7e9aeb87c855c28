// SPDX-License-Identifier: Apache-2.0
#include "rpc/tracker_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace tilewright::rpc {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxText = 256, kMaxTickets = 64;

enum TrackerMessage { kPing = 1, kStop, kPut, kRequest, kUpdateInfo, kSummary, kPending };

Diagnostic wrong(const std::string& what) { return {ErrorCode::kProtocolError, format("a tracker got {}", what)}; }

// JSON in ASCII, as the classic stack writes it.
std::string json_text(const std::string& text) { return Json(text).dump(-1, ' ', true); }

std::string address_text(const std::string& host, int64_t port) { return format("[{}, {}]", json_text(host), port); }

bool is_text(const Json& j) { return j.is_string() && j.get_ref<const std::string&>().size() <= kMaxText; }

bool is_port(const Json& j) { return j.is_number_integer() && j.get<int64_t>() > 0 && j.get<int64_t>() < 65536; }

}  // namespace

// A message whose parts are checked on access.
struct TrackerTable::Reader {
  const Json& message;

  Result<std::string> text(size_t i, const char* what) const {
    if (i >= message.size() || !is_text(message[i])) return wrong(format("a message without {}", what));
    return message[i].get<std::string>();
  }
};

TrackerTable::Peer TrackerTable::connect(std::string host, Time now) {
  clients_[++last_] = Client{std::move(host), {}, {}, now};
  return last_;
}

void TrackerTable::take_back(Peer peer) {
  for (auto& [key, queue] : queues_) std::erase_if(queue.free, [&](const Ticket& t) { return t.owner == peer; });
}

void TrackerTable::disconnect(Peer peer) {
  take_back(peer);
  clients_.erase(peer);
  for (auto& [key, queue] : queues_) std::erase_if(queue.waiting, [&](const Request& r) { return r.owner == peer; });
  std::erase_if(queues_, [](const auto& item) { return item.second.free.empty() && item.second.waiting.empty(); });
}

void TrackerTable::expire(Time now) {
  for (const auto& [peer, client] : clients_)
    if (now - client.heard > lease_) take_back(peer);
}

void TrackerTable::match(Queue& queue, std::vector<Answer>* answers) {
  while (!queue.free.empty() && !queue.waiting.empty()) {
    const Peer owner = queue.waiting.front().owner;
    answers->push_back({owner, format("[0, {}]", queue.free.front().answer)});
    clients_.at(owner).waits = false;
    queue.free.pop_front();
    queue.waiting.pop_front();
  }
}

bool TrackerTable::is_offered(const std::string& match_key) const {
  return std::any_of(queues_.begin(), queues_.end(), [&](const auto& item) {
    const auto& free = item.second.free;
    return std::any_of(free.begin(), free.end(), [&](const Ticket& t) { return t.match_key == match_key; });
  });
}

std::string TrackerTable::pending(Peer peer) const {
  std::string out;
  for (const auto& [key, queue] : queues_)
    for (const Ticket& t : queue.free)
      if (t.owner == peer) out += (out.empty() ? "" : ", ") + json_text(t.match_key);
  return "[" + out + "]";
}

std::string TrackerTable::summary() const {
  std::string queues, servers;
  for (const auto& [key, queue] : queues_)
    queues += format("{}{}: {{\"free\": {}, \"pending\": {}}}", queues.empty() ? "" : ", ", json_text(key),
                     queue.free.size(), queue.waiting.size());
  for (const auto& [peer, client] : clients_)
    if (!client.key.empty())
      servers +=
          format("{}{{\"key\": {}, \"addr\": {}}}", servers.empty() ? "" : ", ", json_text(client.key), client.address);
  return format("[0, {{\"queue_info\": {{{}}}, \"server_info\": [{}]}}]", queues, servers);
}

Result<std::vector<TrackerTable::Answer>> TrackerTable::receive(Peer peer, std::string_view text, Time now) {
  if (text.size() > kMaxTrackerMessage) return wrong(format("a message of {} bytes", text.size()));
  const Json message = Json::parse(text, nullptr, false);
  if (!message.is_array() || message.empty() || !message[0].is_number_integer()) return wrong("what is no message");
  Client& client = clients_.at(peer);
  if (client.waits) return wrong("a message from a client that waits for a device");
  const Reader read{message};
  std::vector<Answer> answers;
  switch (message[0].get<int64_t>()) {
    case kPing:
      answers.push_back({peer, "0"});
      break;
    case kStop:  // clients are authenticated: they may stop the tracker
      answers.push_back({peer, "-1"});
      break;
    case kPut: {
      const std::string key = TW_TRY(read.text(1, "a key"));
      if (message.size() < 3 || !message[2].is_array() || message[2].size() != 2 || !is_port(message[2][0]) ||
          !is_text(message[2][1]))
        return wrong("an offer without port and match key");
      const std::string match_key = message[2][1].get<std::string>();
      std::string host = client.host;
      if (message.size() > 3 && !message[3].is_null()) host = TW_TRY(read.text(3, "an address"));
      if (is_offered(match_key)) return wrong("a ticket that is offered already");
      Queue& queue = queues_[key];
      if (queue.free.size() >= kMaxTickets) return wrong("more tickets than it keeps for one key");
      const int64_t port = message[2][0].get<int64_t>();
      queue.free.push_back({peer, match_key, format("[{}, {}, {}]", json_text(host), port, json_text(match_key))});
      answers.push_back({peer, "0"});
      match(queue, &answers);
      break;
    }
    case kRequest: {
      const std::string key = TW_TRY(read.text(1, "a key"));
      if (message.size() != 4 || !message[3].is_number_integer()) return wrong("a request without priority");
      const auto priority = message[3].get<int64_t>();
      Queue& queue = queues_[key];
      auto place = std::find_if(queue.waiting.begin(), queue.waiting.end(),
                                [&](const Request& r) { return r.priority < priority; });
      queue.waiting.insert(place, {peer, priority});
      client.waits = true;
      match(queue, &answers);
      break;
    }
    case kUpdateInfo: {
      const bool fits = message.size() == 2 && message[1].is_object() && message[1].contains("key") &&
                        is_text(message[1]["key"]) && message[1].contains("addr") && message[1]["addr"].is_array() &&
                        message[1]["addr"].size() == 2 && is_port(message[1]["addr"][1]);
      if (!fits) return wrong("information without key and address");
      const Json& host = message[1]["addr"][0];
      if (!host.is_null() && !is_text(host)) return wrong("an address without host");
      client.key = message[1]["key"].get<std::string>();
      client.address =
          address_text(host.is_null() ? client.host : host.get<std::string>(), message[1]["addr"][1].get<int64_t>());
      answers.push_back({peer, "0"});
      break;
    }
    case kSummary:
      answers.push_back({peer, summary()});
      break;
    case kPending:
      answers.push_back({peer, pending(peer)});
      break;
    default:
      return wrong("a message of unknown kind");
  }
  client.heard = now;
  return answers;
}

}  // namespace tilewright::rpc
