// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 whose only key is a token: no certificates, and neither side says more than hello to one without the token.
#pragma once
#include <chrono>
#include <memory>

#include "rpc/channel.h"
#include "rpc/token.h"

namespace tilewright::rpc {

// Both take the socket. `patience` is for the handshake; a session then waits as long as `later` says (0: for ever).
// Errors: TokenRefused; ProtocolError (no TLS); ConnectionLost, TimeLimit.
Result<std::unique_ptr<Channel>> tls_connect(int socket, const Token& token, std::chrono::milliseconds patience,
                                             std::chrono::milliseconds later = {});
// `*peer`: the token that the other side has.
Result<std::unique_ptr<Channel>> tls_accept(int socket, const Token& root, std::chrono::milliseconds patience,
                                            Token* peer, std::chrono::milliseconds later = {});

}  // namespace tilewright::rpc
