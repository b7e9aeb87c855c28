// SPDX-License-Identifier: Apache-2.0
#include "rpc/token.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/format.h"

namespace tilewright::rpc {
namespace {

constexpr std::string_view kTokenStart = "tilewright-token-1 ";
constexpr size_t kNameDigits = 16, kMaxName = 512;

std::array<unsigned char, 32> keyed(const std::array<unsigned char, 32>& key, std::string_view text) {
  std::array<unsigned char, 32> out{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), out.data(), &size);
  return out;
}

std::string hexadecimal(const unsigned char* bytes, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += format("{:02x}", bytes[i]);
  return out;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

Diagnostic no_token(const std::string& why) {
  return {ErrorCode::kInvalidArgument, "no token: " + why, {}, "'tilewright token' makes one, and says where it lies"};
}

// Seconds of "until=SECONDS", or -1.
int64_t until(std::string_view condition) {
  constexpr std::string_view kUntil = "until=";
  if (!condition.starts_with(kUntil)) return -1;
  condition.remove_prefix(kUntil.size());
  int64_t seconds = -1;
  const auto [end, error] = std::from_chars(condition.data(), condition.data() + condition.size(), seconds);
  return error == std::errc() && end == condition.data() + condition.size() && seconds >= 0 ? seconds : -1;
}

bool is_condition(std::string_view text) { return text == "role=client" || until(text) >= 0; }

// Whether it is a valid token name: digits, then conditions.
bool is_name(std::string_view name) {
  if (name.size() < kNameDigits || name.size() > kMaxName) return false;
  for (const char c : name.substr(0, kNameDigits))
    if (digit(c) < 0) return false;
  for (name.remove_prefix(kNameDigits); !name.empty();) {
    if (name[0] != '/') return false;
    const size_t end = std::min(name.find('/', 1), name.size());
    if (!is_condition(name.substr(1, end - 1))) return false;
    name.remove_prefix(end);
  }
  return true;
}

}  // namespace

Result<Token> parse_token(std::string_view text) {
  if (!text.starts_with(kTokenStart)) return no_token("it does not begin with 'tilewright-token-1'");
  text.remove_prefix(kTokenStart.size());
  if (text.ends_with('\n')) text.remove_suffix(1);
  const size_t space = text.find(' ');
  Token token;
  if (space == std::string_view::npos || !is_name(text.substr(0, space))) return no_token("its name is damaged");
  token.name = text.substr(0, space);
  text.remove_prefix(space + 1);
  if (text.size() != 2 * token.secret.size()) return no_token("its secret has not 64 digits");
  for (size_t i = 0; i < token.secret.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return no_token("its secret has something that is no digit");
    token.secret[i] = static_cast<unsigned char>(16 * high + low);
  }
  return token;
}

std::string token_text(const Token& token) {
  return format("{}{} {}\n", kTokenStart, token.name, hexadecimal(token.secret.data(), token.secret.size()));
}

Result<Token> new_token() {
  Token token;
  unsigned char name[kNameDigits / 2];
  if (RAND_bytes(name, sizeof name) != 1 || RAND_bytes(token.secret.data(), static_cast<int>(token.secret.size())) != 1)
    return Diagnostic(ErrorCode::kCannotWrite, "the system has no randomness for a token");
  token.name = hexadecimal(name, sizeof name);
  return token;
}

Result<Token> derive_token(const Token& token, const std::string& condition) {
  if (!is_condition(condition) || token.name.size() + 1 + condition.size() > kMaxName)
    return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' is no condition of a token", condition), {},
                      "role=client, or until=SECONDS since 1970");
  return Token{token.name + "/" + condition, keyed(token.secret, condition)};
}

Result<Token> follow_token(const Token& root, std::string_view name, int64_t now) {
  const auto refused = [](const char* why) { return Diagnostic(kTokenRefused, std::string("the token ") + why); };
  if (!is_name(name) || !name.starts_with(root.name)) return refused("is another one than the server's");
  std::string_view rest = name.substr(root.name.size());
  if (!rest.empty() && rest[0] != '/') return refused("is another one than the server's");
  Token token = root;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/', 1), rest.size());
    token = TW_TRY(derive_token(token, std::string(rest.substr(1, end - 1))));
    rest.remove_prefix(end);
  }
  for (size_t at = name.find('/'); at < name.size();) {
    const size_t end = std::min(name.find('/', at + 1), name.size());
    const int64_t limit = until(name.substr(at + 1, end - at - 1));
    if (limit >= 0 && now > limit) return refused("has expired");
    at = end;
  }
  return token;
}

bool is_client_only(const Token& token) { return (token.name + "/").find("/role=client/") != std::string::npos; }

std::array<unsigned char, 32> session_key(const Token& token) { return keyed(token.secret, "tilewright session 1"); }

std::string default_token_path() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (!variable("TILEWRIGHT_TOKEN").empty()) return variable("TILEWRIGHT_TOKEN");
  if (!variable("XDG_CONFIG_HOME").empty()) return variable("XDG_CONFIG_HOME") + "/tilewright/token";
  return (variable("HOME").empty() ? "/root" : variable("HOME")) + "/.config/tilewright/token";
}

Result<Token> read_token(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Diagnostic(ErrorCode::kFileNotFound, std::strerror(errno), path, "'tilewright token' makes one");
  struct stat facts {};
  std::array<char, 1024> text{};
  const bool read_whole = ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
  const ssize_t size = read_whole ? ::read(file, text.data(), text.size()) : 0;
  ::close(file);
  if (!read_whole || size <= 0 || static_cast<size_t>(size) == text.size())
    return no_token("it is no file of one line").at(path);
  if ((facts.st_mode & 077) != 0)
    return Diagnostic(ErrorCode::kInvalidArgument, "the token can be read by others", path,
                      format("chmod 600 {}", path));
  auto token = parse_token({text.data(), static_cast<size_t>(size)});
  if (!token.ok()) return std::move(token).error().at(path);
  return token;
}

Status write_token(const std::string& path, const Token& token) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    ::mkdir(path.substr(0, at).c_str(), 0700);
  // Atomic: two simultaneous first users get the same token.
  const std::string part = format("{}.{}", path, ::getpid());
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  const std::string text = token_text(token);
  const bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int why = errno;
  if (file >= 0) ::close(file);
  const bool linked = written && ::link(part.c_str(), path.c_str()) == 0;
  if (written && !linked) why = errno;
  if (file >= 0) ::unlink(part.c_str());
  if (!linked)
    return Diagnostic(ErrorCode::kCannotWrite, std::strerror(why), path,
                      why == EEXIST ? "a token is there; name another file" : "");
  return Ok{};
}

Result<Token> load_token(const std::string& path) {
  if (!path.empty()) return read_token(path);
  const std::string usual = default_token_path();
  if (::access(usual.c_str(), F_OK) != 0) {
    const Status written = write_token(usual, TW_TRY(new_token()));
    if (!written.ok() && ::access(usual.c_str(), F_OK) != 0) return written.error();
  }
  return read_token(usual);
}

}  // namespace tilewright::rpc
