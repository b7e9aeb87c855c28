// SPDX-License-Identifier: Apache-2.0
// Tokens: who has one may open sessions. A token is a name and a secret. From it others are derived, each with a
// condition at the end of its name, whose secret is an HMAC of the condition under the secret before: whoever holds the
// first knows all that follow from it, and none can be stripped of its conditions. Sessions prove that they know the
// secret as the pre-shared key of TLS 1.3; it is never sent.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/token_refused.h"

namespace tilewright::rpc {

struct Token {
  std::string name;  // 16 hexadecimal digits, then any number of "/role=client" and "/until=SECONDS"
  std::array<unsigned char, 32> secret{};
};

// One line: "tilewright-token-1 NAME SECRET". Error: InvalidArgument.
Result<Token> parse_token(std::string_view text);
std::string token_text(const Token& token);
// A new token. Error: CannotWrite (no source of randomness).
Result<Token> new_token();
// Adds a condition: "role=client" (may open sessions but not offer devices), "until=SECONDS" (since 1970). Error:
// InvalidArgument.
Result<Token> derive_token(const Token& token, const std::string& condition);
// Derives the token of that name from `root`. Error: TokenRefused (another root, or a condition not satisfied at
// `now`).
Result<Token> follow_token(const Token& root, std::string_view name, int64_t now);
bool is_client_only(const Token& token);
// The key of a TLS session.
std::array<unsigned char, 32> session_key(const Token& token);

// $TILEWRIGHT_TOKEN, else $XDG_CONFIG_HOME/tilewright/token, else ~/.config/tilewright/token.
std::string default_token_path();
// Errors: FileNotFound; InvalidArgument (damaged, or others may read it).
Result<Token> read_token(const std::string& path);
// Writes a new file with mode 0600; it must not exist. Error: CannotWrite.
Status write_token(const std::string& path, const Token& token);
// Reads the file at `path` (empty: the default, created on first use).
Result<Token> load_token(const std::string& path);

}  // namespace tilewright::rpc
