// SPDX-License-Identifier: Apache-2.0
// fuzz-room: rpc
// A token's file that is accepted is written to the same line; a name that somebody claims follows from a token, or is
// refused, and never ends in the secret of another name.
#include <cstdlib>
#include <string>
#include <vector>

#include "rpc/token.h"

using namespace tilewright;
using namespace tilewright::rpc;

namespace {

Token known_root() {
  Token root;
  root.name = "0123456789abcdef";
  root.secret.fill(7);
  return root;
}

}  // namespace

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  const Token root = known_root();
  const Token guest = *derive_token(*derive_token(root, "role=client"), "until=1800000000");
  for (const Token& token : {root, guest}) {
    seeds->push_back(token_text(token));
    seeds->push_back(token.name);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto token = parse_token(text);
  if (token.ok() && token_text(*token) != text && token_text(*token) != text + "\n") __builtin_trap();
  const Token root = known_root();
  auto claimed = follow_token(root, text, 1'700'000'000);
  if (claimed.ok() && (claimed->name != text || (text != root.name && claimed->secret == root.secret)))
    __builtin_trap();
  return 0;
}
