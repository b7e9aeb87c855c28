// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 with a token as pre-shared key and no certificates: a peer without the token learns nothing beyond the hello.
#pragma once
#include <chrono>
#include <memory>

#include "rpc/channel.h"
#include "rpc/token.h"

namespace tilewright::rpc {

// Both take ownership of the socket. `patience` is for the handshake; afterwards the limit is `later` (0: none).
// Errors: TokenRefused; ProtocolError (not TLS); ConnectionLost, TimeLimit.
Result<std::unique_ptr<Channel>> tls_connect(int socket, const Token& token, std::chrono::milliseconds patience,
                                             std::chrono::milliseconds later = {});
// `*peer` receives the peer's token.
Result<std::unique_ptr<Channel>> tls_accept(int socket, const Token& root, std::chrono::milliseconds patience,
                                            Token* peer, std::chrono::milliseconds later = {});

}  // namespace tilewright::rpc
