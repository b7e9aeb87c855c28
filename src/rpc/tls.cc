// SPDX-License-Identifier: Apache-2.0
#include "rpc/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>

#include "base/format.h"

namespace tilewright::rpc {
namespace {

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using SslConnection = std::unique_ptr<SSL, Free<SSL_free>>;

// Data for the handshake's callbacks.
struct Handshake {
  Token token;  // this side's; the root token on a server
  Token* peer = nullptr;
  bool refused = false;
  std::string why;
};

// The key in OpenSSL's form: a fictitious earlier session.
SSL_SESSION* session_of(SSL* ssl, const Token& token) {
  static constexpr unsigned char kAes128Sha256[] = {0x13, 0x01};
  const auto key = session_key(token);
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kAes128Sha256);
  if (session && cipher && SSL_SESSION_set1_master_key(session, key.data(), key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

Handshake* handshake_of(SSL* ssl) { return static_cast<Handshake*>(SSL_get_app_data(ssl)); }

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** name, size_t* size, SSL_SESSION** session) {
  const Handshake* handshake = handshake_of(ssl);
  *session = session_of(ssl, handshake->token);
  *name = reinterpret_cast<const unsigned char*>(handshake->token.name.data());
  *size = handshake->token.name.size();
  return *session ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* name, size_t size, SSL_SESSION** session) {
  Handshake* handshake = handshake_of(ssl);
  *session = nullptr;
  auto token = follow_token(handshake->token, {reinterpret_cast<const char*>(name), size}, std::time(nullptr));
  if (!token.ok()) {
    handshake->refused = true;
    handshake->why = token.error().message;
    return 1;  // without a key the handshake fails, since there is no certificate either
  }
  *session = session_of(ssl, *token);
  *handshake->peer = std::move(*token);
  return 1;
}

Context new_context(bool server) {
  Context context(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()));
  if (!context) return context;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);  // several records per system call
  SSL_CTX_set_default_read_buffer_len(context.get(), 256 << 10);
  if (server)
    SSL_CTX_set_psk_find_session_callback(context.get(), find_key);
  else
    SSL_CTX_set_psk_use_session_callback(context.get(), offer_key);
  return context;
}

// OpenSSL's own socket I/O would raise SIGPIPE in the host program.
int write_socket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto n = ::send(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))), bytes,
                        static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}
int read_socket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto n = ::recv(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))), bytes,
                        static_cast<size_t>(size), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(n);
}
long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* socket_bio(int socket) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    BIO_meth_set_write(made, write_socket);
    BIO_meth_set_read(made, read_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  BIO_set_init(bio, 1);
  return bio;
}

class TlsChannel : public Channel {
 public:
  TlsChannel(Context context, SslConnection ssl, int socket, std::chrono::milliseconds patience)
      : context_(std::move(context)), ssl_(std::move(ssl)), socket_(socket), patience_(patience) {}
  ~TlsChannel() override {
    {
      std::lock_guard lock(mutex_);
      ERR_clear_error();
      SSL_shutdown(ssl_.get());  // sends close_notify if possible
    }
    ::close(socket_);
  }

  Result<size_t> read_some(std::span<char> out) override {
    for (;;) {
      size_t filled = 0;
      // A record has at most 16 KiB: return all that have arrived together.
      const int wanted = attempt([&] {
        int done = 1;
        while (filled < out.size()) {
          size_t n = 0;
          done = SSL_read_ex(ssl_.get(), out.data() + filled, out.size() - filled, &n);
          if (done != 1) break;
          filled += n;
          if (SSL_has_pending(ssl_.get()) == 0) break;
        }
        return filled > 0 ? 1 : done;
      });
      if (wanted == SSL_ERROR_NONE) return filled;
      TW_TRY_STATUS(wait_after(wanted));
    }
  }

  Status write(std::string_view bytes) override {
    while (!bytes.empty()) {
      size_t n = 0;
      const int wanted = attempt([&] { return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n); });
      if (wanted == SSL_ERROR_NONE)
        bytes.remove_prefix(n);
      else
        TW_TRY_STATUS(wait_after(wanted));
    }
    return Ok{};
  }

  void finish() override {
    attempt([&] { return SSL_shutdown(ssl_.get()) >= 0 ? 1 : -1; });
    ::shutdown(socket_, SHUT_WR);
  }
  void close() override { ::shutdown(socket_, SHUT_RDWR); }

 private:
  template <class F>
  int attempt(F call) {
    std::lock_guard lock(mutex_);
    ERR_clear_error();
    const int done = call();
    return done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), done);
  }
  Status wait_after(int wanted) const {
    if (wanted == SSL_ERROR_WANT_READ) return wait_for(socket_, POLLIN, patience_);
    if (wanted == SSL_ERROR_WANT_WRITE) return wait_for(socket_, POLLOUT, patience_);
    return connection_lost(wanted == SSL_ERROR_ZERO_RETURN ? "the other side closed it" : "its stream was cut off");
  }

  Context context_;
  SslConnection ssl_;
  int socket_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;  // for the connection's state; not held while waiting
};

Diagnostic handshake_error(const Handshake& handshake, bool server, int wanted) {
  const unsigned long code = ERR_peek_error();
  const int reason = ERR_GET_REASON(code);
  // Reasons from 1000 on are the peer's alerts.
  const bool key_was_wrong = handshake.refused || reason >= SSL_AD_REASON_OFFSET ||
                             reason == SSL_R_BINDER_DOES_NOT_VERIFY ||
                             reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM || reason == SSL_R_NO_SHARED_CIPHER;
  if (key_was_wrong)
    return {kTokenRefused,
            server ? (handshake.why.empty() ? "the other side has another token" : handshake.why)
                   : format("the server refused the token {}", handshake.token.name),
            {},
            "both sides need one token, or one derived from the server's: 'tilewright token' says where it lies"};
  if (wanted == SSL_ERROR_SSL)
    return {ErrorCode::kProtocolError,
            "the other side speaks no TLS 1.3",
            {},
            server ? "connect with TLS and a token"
                   : "a server of the classic stack takes --classic-plaintext, on one machine"};
  return {ErrorCode::kConnectionLost,
          "the connection was closed before a session began",
          {},
          server ? "" : "see that a server with TLS listens there; one without takes plaintext, on one machine"};
}

Result<std::unique_ptr<Channel>> handshake(int socket, Handshake* state, bool server,
                                           std::chrono::milliseconds patience, std::chrono::milliseconds later) {
  Context context = new_context(server);
  SslConnection ssl(context ? SSL_new(context.get()) : nullptr);
  if (!ssl) {
    ::close(socket);
    return Diagnostic(ErrorCode::kLimitExceeded, "TLS could not be set up");
  }
  BIO* bio = socket_bio(socket);
  SSL_set_bio(ssl.get(), bio, bio);
  SSL_set_app_data(ssl.get(), state);
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    ERR_clear_error();
    const int done = server ? SSL_accept(ssl.get()) : SSL_connect(ssl.get());
    if (done == 1) break;
    const int wanted = SSL_get_error(ssl.get(), done);
    Status waited = Ok{};
    if (wanted == SSL_ERROR_WANT_READ || wanted == SSL_ERROR_WANT_WRITE) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      waited = wait_for(socket, wanted == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT,
                        std::max(left, std::chrono::milliseconds(1)));
      if (left.count() <= 0) waited = Diagnostic(ErrorCode::kTimeLimit, "the handshake took too long", "remote");
    } else {
      waited = handshake_error(*state, server, wanted);
    }
    if (!waited.ok()) {
      ssl.reset();
      ::close(socket);
      return waited.error();
    }
  }
  SSL_set_app_data(ssl.get(), nullptr);
  return std::unique_ptr<Channel>(std::make_unique<TlsChannel>(std::move(context), std::move(ssl), socket, later));
}

}  // namespace

Result<std::unique_ptr<Channel>> tls_connect(int socket, const Token& token, std::chrono::milliseconds patience,
                                             std::chrono::milliseconds later) {
  Handshake state{token, nullptr, false, {}};
  return handshake(socket, &state, false, patience, later);
}

Result<std::unique_ptr<Channel>> tls_accept(int socket, const Token& root, std::chrono::milliseconds patience,
                                            Token* peer, std::chrono::milliseconds later) {
  Handshake state{root, peer, false, {}};
  return handshake(socket, &state, true, patience, later);
}

}  // namespace tilewright::rpc
