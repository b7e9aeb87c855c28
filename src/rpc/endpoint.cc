// SPDX-License-Identifier: Apache-2.0
// Frames of a session: sending requests and waiting for answers.
#include "rpc/endpoint.h"

#include <algorithm>

#include "base/format.h"

namespace tilewright::rpc {
namespace {

constexpr uint64_t kChunk = uint64_t{1} << 20;

Diagnostic ended() { return {ErrorCode::kConnectionLost, "the session has ended", "remote", "connect again"}; }

}  // namespace

Endpoint::~Endpoint() { channel_->close(); }

Result<Endpoint::Head> Endpoint::read_head() {
  for (;;) {
    uint64_t bytes = 0;
    TW_TRY_STATUS(channel_->read({reinterpret_cast<char*>(&bytes), sizeof bytes}));
    if (bytes == 0) continue;  // empty frames are ignored
    if (bytes < sizeof(int32_t) || bytes > kMaxTransfer + kMaxFrame)
      return Diagnostic(ErrorCode::kProtocolError, format("a frame of {} bytes", bytes), "remote");
    Head head;
    int32_t code = 0;
    TW_TRY_STATUS(channel_->read({reinterpret_cast<char*>(&code), sizeof code}));
    head.code = static_cast<Code>(code);
    head.body = bytes - sizeof code;
    return head;
  }
}

// The length is untrusted: memory grows with the received data.
Result<std::string> Endpoint::read_body(uint64_t bytes) {
  std::string body;
  while (body.size() < bytes) {
    const size_t at = body.size();
    body.resize(at + std::min(std::max(kChunk, uint64_t{at}), bytes - at));
    TW_TRY_STATUS(channel_->read(std::span(body).subspan(at)));
  }
  return body;
}

Status Endpoint::send(std::string_view head, std::string_view bytes) {
  if (broken_) return ended();
  auto sent = channel_->write(head);
  if (sent.ok() && !bytes.empty()) sent = channel_->write(bytes);
  return sent;
}

Result<std::vector<WireValue>> Endpoint::exchange(std::string_view request, std::string_view bytes, std::string* body,
                                                  std::span<char> raw) {
  Guard guard(mutex_);
  release_queued();
  if (broken_) return ended();
  Status sent = send(request, bytes);
  // A peer that rejects a frame sends the reason before it closes: prefer that to the connection error.
  if (!sent.ok() && sent.error().code != ErrorCode::kConnectionLost) broken_ = true;
  for (;;) {
    auto head = read_head();
    if (!head.ok()) {
      broken_ = true;
      channel_->close();
      if (std::chrono::steady_clock::now() >= end_)
        return Diagnostic(ErrorCode::kTimeLimit, "the session's time is over", "remote",
                          "ask for a longer session_timeout");
      return sent.ok() ? std::move(head).error() : Diagnostic(sent.error());
    }
    switch (head->code) {
      case Code::kReturn:
      case Code::kException: {
        auto text = head->body > (raw.empty() ? kMaxTransfer + kMaxFrame : kMaxFrame)
                        ? Result<std::string>(Diagnostic(ErrorCode::kProtocolError, "an answer that is too long"))
                        : read_body(head->body);
        if (!text.ok()) {
          broken_ = true;
          channel_->close();
          return std::move(text).error();
        }
        *body = std::move(*text);
        ByteReader in(std::as_bytes(std::span(*body)));
        auto values = TW_TRY(read_values(in));
        if (head->code == Code::kReturn) return values;
        Diagnostic error = error_from(values.empty() ? std::string_view() : values[0].text);
        if (error.where.empty()) error.where = "remote";
        return error;
      }
      case Code::kCopyAck:
        if (head->body != raw.size()) {
          broken_ = true;
          channel_->close();
          return Diagnostic(ErrorCode::kProtocolError, "a copy of another size than was asked for", "remote");
        }
        if (Status read = channel_->read(raw); !read.ok()) {
          broken_ = true;
          channel_->close();
          return std::move(read).error();
        }
        return std::vector<WireValue>{};
      default: {
        const Status served = serve_one(*head, nullptr);
        if (!served.ok()) {
          broken_ = true;
          channel_->close();
          return served.error();
        }
      }
    }
  }
}

Result<std::vector<WireValue>> Endpoint::ask(Code code, std::span<const WireValue> values, std::string* body) {
  return exchange(frame(code, values), {}, body);
}

Status Endpoint::start(std::span<const std::string> constructor) {
  ByteWriter request;
  request.write_string(kVersion);
  std::vector<WireValue> values;
  for (const std::string& text : constructor) values.push_back(WireValue::of_text(text));
  write_values(request, values);
  std::string body;
  TW_TRY(exchange(frame(Code::kInitServer, request.str()), {}, &body));
  return Ok{};
}

Result<tw_function*> Endpoint::find(std::string_view name) {
  std::string body;
  const auto values = TW_TRY(ask(Code::kGetGlobalFunction, std::vector{WireValue::of_text(name)}, &body));
  if (values.size() != 1 || (values[0].kind != TW_HANDLE && values[0].kind != TW_NULL))
    return Diagnostic(ErrorCode::kProtocolError, "an answer that is no function", "remote");
  return values[0].handle == 0 ? nullptr : proxy_function(values[0].handle);
}

Status Endpoint::copy_to(const DLTensor& remote, std::span<const char> bytes) {
  WireTensor to = TW_TRY(remote_tensor(remote));
  for (; bytes.size() > most_copied_; bytes = bytes.subspan(most_copied_), to.byte_offset += most_copied_)
    TW_TRY_STATUS(copy_piece_to(to, bytes.first(most_copied_)));
  return copy_piece_to(to, bytes);
}

Status Endpoint::copy_piece_to(const WireTensor& to, std::span<const char> bytes) {
  ByteWriter request;
  write_tensor(request, to);
  request.write(uint64_t{bytes.size()});
  std::string body;
  TW_TRY(exchange(frame_head(Code::kCopyToRemote, request.str().size() + bytes.size()) + request.str(),
                  {bytes.data(), bytes.size()}, &body));
  return Ok{};
}

Status Endpoint::copy_from(const DLTensor& remote, std::span<char> bytes) {
  WireTensor from = TW_TRY(remote_tensor(remote));
  for (; bytes.size() > most_copied_; bytes = bytes.subspan(most_copied_), from.byte_offset += most_copied_)
    TW_TRY_STATUS(copy_piece_from(from, bytes.first(most_copied_)));
  return copy_piece_from(from, bytes);
}

Status Endpoint::copy_piece_from(const WireTensor& from, std::span<char> bytes) {
  ByteWriter request;
  write_tensor(request, from);
  request.write(uint64_t{bytes.size()});
  std::string body;
  TW_TRY(exchange(frame(Code::kCopyFromRemote, request.str()), {}, &body, bytes));
  return Ok{};
}

Status Endpoint::copy_among(const DLTensor& from, const DLTensor& to) {
  std::string body;
  const WireTensor source = TW_TRY(remote_tensor(from)), target = TW_TRY(remote_tensor(to));
  const std::vector<WireValue> values{WireValue::of_tensor(source), WireValue::of_tensor(target),
                                      WireValue::of_handle(0)};
  TW_TRY(ask(Code::kCopyAmongRemote, values, &body));
  return Ok{};
}

Status Endpoint::sync(DLDevice device) {
  std::string body;
  const DLDevice other = TW_TRY(there(device));
  TW_TRY(ask(Code::kStreamSync, std::vector{WireValue::of_device(other), WireValue::of_handle(0)}, &body));
  return Ok{};
}

Result<OwnedValue> Endpoint::attribute(DLDevice device, int64_t kind) {
  std::string body;
  const DLDevice other = TW_TRY(there(device));
  const auto values =
      TW_TRY(ask(Code::kGetDeviceAttribute, std::vector{WireValue::of_device(other), WireValue::of(kind)}, &body));
  if (values.size() != 1) return Diagnostic(ErrorCode::kProtocolError, "an answer of several values", "remote");
  return owned_from_wire(values[0]);
}

Result<OwnedValue> Endpoint::allocate(DLDevice device, DLDataType dtype, std::span<const int64_t> shape,
                                      std::string_view scope) {
  WireTensor tensor;
  tensor.device = TW_TRY(there(device));
  tensor.dtype = dtype;
  tensor.shape.assign(shape.begin(), shape.end());
  TW_TRY(byte_size(tensor));
  std::string body;
  const std::vector<WireValue> request{WireValue::of_tensor(tensor),
                                       scope.empty() ? WireValue() : WireValue::of_text(scope)};
  const auto values = TW_TRY(ask(Code::kAllocateWithScope, request, &body));
  if (values.size() != 1 || values[0].handle == 0)
    return Diagnostic(ErrorCode::kProtocolError, "an answer that is no memory", "remote");
  tensor.data = values[0].handle;
  return proxy_tensor(tensor, static_cast<int32_t>(Code::kFreeData));
}

void Endpoint::shutdown() {
  Guard guard(mutex_);
  if (!broken_) static_cast<void>(send(frame(Code::kShutdown, std::string_view())).ok());
  broken_ = true;
  channel_->close();
  lent_.clear();  // a callback may hold a reference to this session's owner
}

void Endpoint::release_later(uint64_t handle, int32_t kind) {
  std::lock_guard lock(proxies_mutex_);
  freed_.emplace_back(handle, kind);
}

// Proxies may be destroyed in any thread at any time, so their handles are only queued; the next request sends them
// along.
void Endpoint::release_queued() {
  if (releasing_) return;  // each release is an exchange itself
  releasing_ = true;
  struct Done {
    bool* flag;
    ~Done() { *flag = false; }
  } const done{&releasing_};
  for (;;) {
    std::pair<uint64_t, int32_t> next;
    {
      std::lock_guard lock(proxies_mutex_);
      if (freed_.empty() || broken_) return;
      next = freed_.back();
      freed_.pop_back();
    }
    std::string body;
    const bool memory = next.second == static_cast<int32_t>(Code::kFreeData);
    const std::vector<WireValue> values =
        memory ? std::vector{WireValue::of_device({kDLCPU, 0}), WireValue::of_handle(next.first)}
               : std::vector{WireValue::of_handle(next.first), WireValue::of(next.second)};
    static_cast<void>(ask(memory ? Code::kFreeData : Code::kFreeHandle, values, &body).ok());
  }
}

}  // namespace tilewright::rpc
