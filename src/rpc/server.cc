// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <openssl/rand.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/format.h"
#include "rpc/tls.h"
#include "rpc/upload_relay.h"
#include "rpc/wire.h"

namespace tilewright::rpc {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kGrace{2000};  // for a session whose client has disconnected
constexpr milliseconds kFarewell{500};
constexpr milliseconds kTrackerPing{1000};
constexpr int kUnusedPings = 10;  // after so many pings an unused ticket is replaced
constexpr unsigned char kTlsStart = 0x16;

std::string new_ticket(const std::string& key) {
  std::array<unsigned char, 16> random{};
  RAND_bytes(random.data(), static_cast<int>(random.size()));
  std::string text = key + ":";
  for (const unsigned char byte : random) text += format("{:02x}", byte);
  return text;
}

// Parses "client:KEY -timeout=3".
struct ClientKey {
  std::string key;
  milliseconds limit{0};
};
Result<ClientKey> read_client_key(std::string_view text) {
  constexpr std::string_view kStart = "client:", kTimeout = "-timeout=";
  if (!text.starts_with(kStart)) return Diagnostic(ErrorCode::kProtocolError, "a client that does not say so");
  text.remove_prefix(kStart.size());
  ClientKey out;
  const size_t space = text.find(' ');
  out.key = text.substr(0, space);
  const size_t timeout = text.find(kTimeout);
  if (timeout != std::string_view::npos) {
    const std::string_view number = text.substr(timeout + kTimeout.size());
    double seconds = 0;
    if (std::from_chars(number.data(), number.data() + number.size(), seconds).ec != std::errc() || seconds < 0 ||
        seconds > 1e7)
      return Diagnostic(ErrorCode::kProtocolError, "a client whose timeout is no number");
    out.limit = milliseconds(static_cast<int64_t>(seconds * 1000));
  }
  return out;
}

void send_code(Channel& client, int32_t code) {
  static_cast<void>(client.write({reinterpret_cast<const char*>(&code), sizeof code}).ok());
}

}  // namespace

Result<std::unique_ptr<Server>> Server::create(const ServerOptions& options) {
  Listener listener = TW_TRY(Listener::open(options.door, options.host, options.port, options.port_end));
  return std::unique_ptr<Server>(new Server(options, std::move(listener)));
}

Server::Server(ServerOptions options, Listener listener)
    : options_(std::move(options)), listener_(std::move(listener)) {}

void Server::log(const std::string& text) const {
  if (options_.silent) return;
  std::fprintf(stderr, "tilewright rpc-server: %s\n", text.c_str());
}

void Server::run(int stop) {
  std::thread tracker;
  if (options_.tracker_port != 0) {
    ticket_ = new_ticket(options_.key);
    ticket_is_new_ = true;
    tracker = std::thread([this] { offer_to_tracker(); });
  }
  listener_.run(stop, {.most = 64,  // whoever opens more than that means no good
                       .serve = [this](int socket, const std::string&) -> Status {
                         const auto client = TW_TRY(open_door(socket));
                         return serve_client(socket, *client);
                       },
                       .turn = {},
                       .ending =
                           [this] {
                             {
                               std::lock_guard lock(mutex_);
                               stopping_ = true;
                             }
                             changed_.notify_all();
                           },
                       .log = [this](const std::string& text) { log(text); }});
  if (tracker.joinable()) tracker.join();
}

Result<std::unique_ptr<Channel>> Server::open_door(int socket) {
  if (options_.door.plaintext) return socket_channel(socket, options_.door.patience);
  unsigned char first = 0;
  const Status there = wait_for(socket, POLLIN, options_.door.patience);
  if (there.ok() && ::recv(socket, &first, 1, MSG_PEEK) == 1 && first == kTlsStart) {
    Token peer;
    return tls_accept(socket, listener_.token(), options_.door.patience, &peer);
  }
  // A classic client is refused by its own protocol.
  const auto plain = socket_channel(socket, milliseconds(200));
  if (there.ok()) send_code(*plain, kSessionMagic + 2);
  plain->finish();
  std::array<char, 64> rest{};
  static_cast<void>(plain->read_some(rest).ok());
  return Diagnostic(ErrorCode::kProtocolError, "a client without TLS was sent away", {},
                    "start the server with --classic-plaintext --host 127.0.0.1 for clients of the classic stack");
}

// Whether the key is valid; a ticket is consumed.
bool Server::take_ticket(const std::string& key) {
  std::lock_guard lock(mutex_);
  if (options_.tracker_port == 0) return key == options_.key;
  if (ticket_.empty() || key != ticket_) return false;
  ticket_.clear();
  return true;
}

void Server::give_place_back() {
  {
    std::lock_guard lock(mutex_);
    --running_;
    if (options_.tracker_port != 0) ticket_ = new_ticket(options_.key);
    ticket_is_new_ = true;
  }
  changed_.notify_all();
}

// Waits for a free place; false if the client disconnects.
bool Server::wait_for_place(int socket) {
  std::unique_lock lock(mutex_);
  while (!stopping_ && running_ >= options_.sessions) {
    changed_.wait_for(lock, milliseconds(100));
    pollfd gone{socket, POLLRDHUP, 0};
    if (::poll(&gone, 1, 0) > 0) return false;
  }
  if (stopping_) return false;
  ++running_;
  return true;
}

Status Server::serve_client(int socket, Channel& client) {
  int32_t magic = 0, size = 0;
  TW_TRY_STATUS(client.read({reinterpret_cast<char*>(&magic), sizeof magic}));
  TW_TRY_STATUS(client.read({reinterpret_cast<char*>(&size), sizeof size}));
  if (magic != kSessionMagic || size < 0 || size > 4096)
    return Diagnostic(ErrorCode::kProtocolError, "a client that begins no session");
  std::string name(static_cast<size_t>(size), '\0');
  TW_TRY_STATUS(client.read(name));
  const ClientKey wanted = TW_TRY(read_client_key(name));
  if (!take_ticket(wanted.key)) {
    send_code(client, kSessionMagic + 2);
    client.finish();
    return Diagnostic(kTokenRefused, format("a client with the key '{}', which is not this server's", wanted.key));
  }
  if (!wait_for_place(socket)) {
    std::lock_guard lock(mutex_);
    if (options_.tracker_port != 0) ticket_ = new_ticket(options_.key), ticket_is_new_ = true;
    return Ok{};
  }
  // When the session ends in any way, frees its place and offers a new ticket.
  struct Place {
    Server* server;
    ~Place() { server->give_place_back(); }
  };
  const Place place{this};
  ByteWriter hello;
  const std::string own = "server:" + options_.key;
  hello.write(kSessionMagic);
  hello.write(static_cast<int32_t>(own.size()));
  hello.write_bytes(own.data(), own.size());
  TW_TRY_STATUS(client.write(hello.str()));
  log(format("a session with {} begins", peer_host(socket)));
  Status served =
      options_.door.plaintext ? supervise_socket(socket, wanted.limit) : supervise_pumps(client, wanted.limit);
  log("the session is over");
  return served;
}

// The session's process uses the client's socket directly: only the time limit is enforced here.
Status Server::supervise_socket(int socket, milliseconds limit) {
  auto process = TW_TRY(SessionProcess::start(options_.session, socket));
  const auto begin = SteadyClock::now();
  auto gone = SteadyClock::time_point::max();
  while (!process->has_ended() && !stopping_) {
    const auto now = SteadyClock::now();
    if (limit.count() > 0 && now - begin > limit) return Diagnostic(ErrorCode::kTimeLimit, "a session's time is over");
    pollfd client{socket, POLLRDHUP, 0};
    if (gone == SteadyClock::time_point::max() && ::poll(&client, 1, 10) > 0) gone = now;
    if (gone != SteadyClock::time_point::max()) {
      if (now - gone > kGrace) return Diagnostic(ErrorCode::kTimeLimit, "a session without a client was ended");
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  return Ok{};
}

Status Server::supervise_pumps(Channel& client, milliseconds limit) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return connection_lost("no socket is left");
  const int room = 1 << 20;
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  const auto inner = socket_channel(ends[0]);
  auto started = SessionProcess::start(options_.session, ends[1]);
  ::close(ends[1]);
  auto process = TW_TRY(std::move(started));
  std::mutex mutex;
  std::condition_variable moved;
  bool up_done = false, down_done = false;
  const auto finish = [&](Channel& to, bool* done) {
    to.finish();
    {
      std::lock_guard lock(mutex);
      *done = true;
    }
    moved.notify_all();
  };
  std::thread up([&] {
    UploadRelay(client, *inner, ends[0], process->folder()).run();
    finish(*inner, &up_done);
  });
  std::thread down([&] {
    std::vector<char> part(256 << 10);
    for (;;) {
      auto n = inner->read_some(part);
      if (!n.ok() || !client.write({part.data(), *n}).ok()) break;
    }
    finish(client, &down_done);
  });
  const auto end = limit.count() > 0 ? SteadyClock::now() + limit : SteadyClock::time_point::max();
  Status outcome = Ok{};
  {
    std::unique_lock lock(mutex);
    while (!up_done && !down_done && !stopping_ && SteadyClock::now() < end)
      moved.wait_until(lock, std::min(end, SteadyClock::now() + milliseconds(200)));
    if (SteadyClock::now() >= end) outcome = Diagnostic(ErrorCode::kTimeLimit, "a session's time is over");
    const auto grace = outcome.ok() && !stopping_ ? kGrace : milliseconds(0);
    if (!moved.wait_for(lock, grace, [&] { return down_done; })) process->kill();
    moved.wait_for(lock, kGrace, [&] { return down_done; });
    moved.wait_for(lock, kFarewell, [&] { return up_done; });
  }
  client.close();
  inner->close();
  up.join();
  down.join();
  return outcome;
}

// ---- the tracker

void Server::offer_to_tracker() {
  bool told = false;
  while (!stopping_) {
    auto tracker = TrackerConnection::open(options_.tracker_host, options_.tracker_port, options_.door);
    if (tracker.ok()) {
      {
        std::lock_guard lock(mutex_);
        ticket_is_new_ = true;
      }
      told = false;
      talk_to_tracker(**tracker);
    } else if (!told) {
      log(format("the tracker is not there, and is asked again every second: {}", tracker.error().str()));
      told = true;
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kTrackerPing, [&] { return stopping_.load(); });
  }
}

// Returns when the tracker disconnects or the server ends.
void Server::talk_to_tracker(TrackerConnection& tracker) {
  using Json = nlohmann::json;
  const Json host = options_.custom_address.empty() ? Json() : Json(options_.custom_address);
  const Json about = {{"key", "server:" + options_.key}, {"addr", {host, port()}}};
  if (!tracker.ask(Json::array({5, about}).dump()).ok()) return;
  int unused = 0;
  while (!stopping_) {
    std::string offer;
    {
      std::lock_guard lock(mutex_);
      if (ticket_is_new_ && !ticket_.empty()) offer = ticket_;
      ticket_is_new_ = false;
    }
    if (!offer.empty()) {
      unused = 0;
      if (!tracker.ask(Json::array({3, options_.key, {port(), offer}, host}).dump()).ok()) return;
    }
    auto pending = tracker.ask("[7]");
    if (!pending.ok()) return;
    std::unique_lock lock(mutex_);
    const bool given = !ticket_.empty() && pending->find(ticket_) == std::string::npos;
    if (given && ++unused > kUnusedPings) {
      ticket_ = new_ticket(options_.key);
      ticket_is_new_ = true;
    }
    changed_.wait_for(lock, kTrackerPing, [&] { return stopping_.load() || (ticket_is_new_ && !ticket_.empty()); });
  }
}

}  // namespace tilewright::rpc
