// SPDX-License-Identifier: Apache-2.0
// The small program for RPC servers, sessions, trackers and tokens. It contains the runtime but no compiler, and
// implements `tilewright rpc-server`, `rpc-tracker` and `token`.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <vector>

#include "base/exit_code.h"
#include "base/format.h"
#include "base/near_match.h"
#include "rpc/server.h"
#include "rpc/tracker_server.h"

namespace tilewright::rpc {
namespace {

// An option, its variable and its help line. Without a value: a flag.
struct Option {
  const char* name = "";
  const char* value = "";
  const char* help = "";
  std::string* text = nullptr;
  int* number = nullptr;
  bool* flag = nullptr;
};

Diagnostic misused(const std::string& what, const std::string& hint) {
  return {ErrorCode::kInvalidArgument, what, {}, hint};
}

Result<bool> parse_options(const std::string& verb, const char* about, std::span<char* const> args,
                           std::span<const Option> options) {
  std::vector<std::string> names;
  for (const Option& option : options) names.emplace_back(option.name);
  for (size_t i = 0; i < args.size(); ++i) {
    std::string name = args[i], value;
    if (name == "--help" || name == "-h") {
      std::printf("Usage: tilewright %s [OPTION...]\n\n%s\n\n", verb.c_str(), about);
      for (const Option& option : options)
        std::printf("  %-26s %s\n", (std::string(option.name) + " " + option.value).c_str(), option.help);
      return false;
    }
    const size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) value = name.substr(equals + 1), name.resize(equals);
    const Option* found = nullptr;
    for (const Option& option : options)
      if (name == option.name) found = &option;
    if (!found)
      return misused(format("'{}' has no option '{}'", verb, name),
                     did_you_mean(name, names, format("'tilewright {} --help' lists them", verb)));
    if (found->flag) {
      *found->flag = true;
      continue;
    }
    if (!joined && i + 1 == args.size()) return misused(format("'{}' needs a value", name), found->help);
    if (!joined) value = args[++i];
    if (found->text) *found->text = value;
    if (found->number) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *found->number);
      if (error != std::errc() || end != value.data() + value.size() || *found->number < 0)
        return misused(format("'{}' is no number for '{}'", value, name), found->help);
    }
  }
  return true;
}

// A descriptor that becomes readable when the process should end.
int stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return ::signalfd(-1, &signals, SFD_CLOEXEC);
}

Status check_ports(int port, int* port_end) {
  if (*port_end == 0) *port_end = port;
  if (port > 65535 || *port_end > 65535) return misused("a port is above 65535", "ports go from 0 (any) to 65535");
  return Ok{};
}

// "host:port".
Status parse_address(const std::string& text, std::string* host, int* port) {
  const size_t colon = text.rfind(':');
  const char* begin = text.data() + (colon == std::string::npos ? text.size() : colon + 1);
  if (colon == std::string::npos || colon == 0 ||
      std::from_chars(begin, text.data() + text.size(), *port).ptr != text.data() + text.size() || *port < 1 ||
      *port > 65535)
    return misused(format("'{}' is no address", text), "give host:port");
  *host = text.substr(0, colon);
  return Ok{};
}

void announce(const char* what, const std::string& host, int port) {
  std::printf("%s listens on %s:%d\n", what, host.c_str(), port);
  std::fflush(stdout);
}

Result<int> server_verb(std::span<char* const> args) {
  ServerOptions options;
  std::string tracker;
  int memory = 0;
  options.port_end = 0;
  const Option table[] = {
      {"--host", "ADDRESS", "where to listen; 0.0.0.0: everywhere", &options.host, nullptr, nullptr},
      {"--port", "NUMBER", "9090", nullptr, &options.port, nullptr},
      {"--port-end", "NUMBER", "the last port to try where the first is taken", nullptr, &options.port_end, nullptr},
      {"--key", "TEXT", "what kind of device this is", &options.key, nullptr, nullptr},
      {"--tracker", "HOST:PORT", "a tracker to offer the device to", &tracker, nullptr, nullptr},
      {"--custom-addr", "HOST", "the host that clients of the tracker are told", &options.custom_address, nullptr,
       nullptr},
      {"--token", "FILE", "instead of the user's own", &options.door.token_path, nullptr, nullptr},
      {"--classic-plaintext", "", "no TLS and no token, on this machine only", nullptr, nullptr,
       &options.door.plaintext},
      {"--sessions", "NUMBER", "sessions at a time, 1; the others wait", nullptr, &options.sessions, nullptr},
      {"--memory", "MB", "address space of a session", nullptr, &memory, nullptr},
      {"--work-dir", "FOLDER", "where sessions have their folders", &options.session.work_folder, nullptr, nullptr},
      {"--session-command", "COMMAND", "what serves a session instead of this program", &options.session.command,
       nullptr, nullptr},
      {"--silent", "", "no lines about sessions", nullptr, nullptr, &options.silent}};
  if (!TW_TRY(
          parse_options("rpc-server", "Lets clients with the token run compiled models on this machine.", args, table)))
    return 0;
  TW_TRY_STATUS(check_ports(options.port, &options.port_end));
  if (options.sessions < 1) return misused("a server has at least one session", "--sessions 1");
  if (!tracker.empty()) TW_TRY_STATUS(parse_address(tracker, &options.tracker_host, &options.tracker_port));
  if (options.door.plaintext && options.host == "0.0.0.0") options.host = "127.0.0.1";
  options.session.memory = static_cast<uint64_t>(memory) << 20;
  const int stop = stop_signals();
  const auto server = TW_TRY(Server::create(options));
  announce("rpc-server", options.host, server->port());
  server->run(stop);
  return 0;
}

Result<int> tracker_verb(std::span<char* const> args) {
  TrackerOptions options;
  options.port_end = 0;
  const Option table[] = {
      {"--host", "ADDRESS", "where to listen; 0.0.0.0: everywhere", &options.host, nullptr, nullptr},
      {"--port", "NUMBER", "9190", nullptr, &options.port, nullptr},
      {"--port-end", "NUMBER", "the last port to try where the first is taken", nullptr, &options.port_end, nullptr},
      {"--token", "FILE", "instead of the user's own", &options.door.token_path, nullptr, nullptr},
      {"--classic-plaintext", "", "no TLS and no token, on this machine only", nullptr, nullptr,
       &options.door.plaintext},
      {"--silent", "", "no lines about refused clients", nullptr, nullptr, &options.silent}};
  if (!TW_TRY(parse_options("rpc-tracker", "Knows the devices of a group, and gives each request one.", args, table)))
    return 0;
  TW_TRY_STATUS(check_ports(options.port, &options.port_end));
  if (options.door.plaintext && options.host == "0.0.0.0") options.host = "127.0.0.1";
  const int stop = stop_signals();
  const auto tracker = TW_TRY(TrackerServer::create(options));
  announce("rpc-tracker", options.host, tracker->port());
  tracker->run(stop);
  return 0;
}

Result<int> token_verb(std::span<char* const> args) {
  std::string from, output, role;
  int days = 0;
  bool fresh = false;
  const Option table[] = {
      {"--token", "FILE", "the token to look at or derive from, instead of the user's own", &from, nullptr, nullptr},
      {"-o", "FILE", "write a token: a derived one, or with --new one of its own", &output, nullptr, nullptr},
      {"--role", "client", "the derived token may not offer devices", &role, nullptr, nullptr},
      {"--days", "NUMBER", "the derived token ends after that", nullptr, &days, nullptr},
      {"--new", "", "a token that has nothing to do with the user's", nullptr, nullptr, &fresh}};
  if (!TW_TRY(parse_options("token",
                            "Shows the user's token, which is made when there is none; with -o derives one for others.",
                            args, table)))
    return 0;
  if (!role.empty() && role != "client") return misused(format("there is no role '{}'", role), "--role client");
  if (output.empty() && (!role.empty() || days > 0 || fresh)) return misused("a new token needs a file", "-o FILE");
  if (fresh && (!from.empty() || !role.empty() || days > 0))
    return misused("--new derives nothing", "leave the others out");
  Token token = TW_TRY(fresh ? new_token() : load_token(from));
  if (!role.empty()) token = TW_TRY(derive_token(token, "role=" + role));
  if (days > 0) token = TW_TRY(derive_token(token, format("until={}", std::time(nullptr) + int64_t{86400} * days)));
  if (!output.empty()) TW_TRY_STATUS(write_token(output, token));
  const std::string& path = output.empty() ? from : output;
  std::printf("%s %s\n", token.name.c_str(), (path.empty() ? default_token_path() : path).c_str());
  return 0;
}

Result<int> session_verb(std::span<char* const>) {
  const char* folder = std::getenv("TILEWRIGHT_SESSION_FOLDER");
  const char* memory = std::getenv("TILEWRIGHT_SESSION_MEMORY");
  if (!folder || !memory) return misused("a session is started by a server", "tilewright rpc-server");
  const Status served = serve_session(3, folder, std::strtoull(memory, nullptr, 10));
  return served.ok() || served.error().code == ErrorCode::kConnectionLost ? 0 : 1;
}

int run(std::span<char* const> args) {
  const std::string verb = args.size() > 1 ? args[1] : "";
  Result<int> code = misused(format("there is no verb '{}'", verb), "rpc-server, rpc-tracker, token");
  const auto rest = args.subspan(std::min<size_t>(2, args.size()));
  if (verb == "rpc-server") code = server_verb(rest);
  if (verb == "rpc-tracker") code = tracker_verb(rest);
  if (verb == "token") code = token_verb(rest);
  if (verb == "session") code = session_verb(rest);
  if (code.ok()) return *code;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", code.error().str().c_str());
  return exit_code(code.error().code);
}

}  // namespace
}  // namespace tilewright::rpc

int main(int argc, char** argv) {
  try {
    return tilewright::rpc::run({argv, static_cast<size_t>(argc)});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", tilewright::Diagnostic(tilewright::ErrorCode::kInternal, e.what()).str().c_str());
    return tilewright::exit_code(tilewright::ErrorCode::kInternal);
  }
}
