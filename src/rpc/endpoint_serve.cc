// SPDX-License-Identifier: Apache-2.0
// Serves the peer's requests.
#include <unistd.h>

#include <cstring>
#include <limits>

#include "base/format.h"
#include "rpc/endpoint.h"
#include "rpc/endpoint_parts.h"

namespace tilewright::rpc {
namespace {

constexpr int64_t kAttributeExists = 0;
// More handles than this indicate a defect in the peer.
constexpr size_t kMaxHandles = size_t{1} << 20;

Diagnostic not_as_asked(const char* what) {
  return {ErrorCode::kProtocolError, format("a request {}", what), "remote"};
}

ByteReader reader_of(std::string_view bytes) { return ByteReader(std::as_bytes(std::span(bytes))); }

}  // namespace

Result<WireTensor> describe_tensor(const DLTensor& tensor) {
  WireTensor wire;
  wire.device = tensor.device;
  wire.dtype = tensor.dtype;
  wire.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  int64_t expected = 1;
  for (int32_t d = tensor.ndim - 1; tensor.strides && d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected)
      return Diagnostic(ErrorCode::kInvalidArgument, "a tensor with gaps cannot cross a session", "remote",
                        "pass a compact row-major copy");
    expected *= tensor.shape[d];
  }
  return wire;
}

Result<std::span<char>> host_bytes(const DLTensor& tensor) {
  if (device_kind(tensor.device) != kDLCPU)
    return Diagnostic(ErrorCode::kInvalidArgument, "a tensor that is not in this process's memory", "remote");
  const uint64_t bytes = TW_TRY(byte_size(TW_TRY(describe_tensor(tensor))));
  return std::span(static_cast<char*>(tensor.data) + tensor.byte_offset, bytes);
}

Status Endpoint::serve() {
  Guard guard(mutex_);
  for (;;) {
    auto head = read_head();
    if (head.ok() && head->code == Code::kShutdown) return Ok{};
    Status served = head.ok() ? serve_one(*head, &guard) : Status(std::move(head).error());
    if (served.ok()) continue;
    // sends the reason before closing, since the stream is out of sync
    if (served.error().code == ErrorCode::kProtocolError) {
      const std::string text = error_text(served.error());
      const std::vector<WireValue> words{WireValue::of_text(text)};
      static_cast<void>(send(frame(Code::kException, words)).ok());
    }
    broken_ = true;
    return served;
  }
}

Status Endpoint::answer(Code code, std::string_view body, Guard* guard) {
  if (guard && !guard->owns_lock()) guard->lock();
  if (step_ == 0) release_queued();  // releases finished callbacks before the answer is sent
  return send(frame_head(code, body.size()), body);
}

// An error ends the session; a failing function is an ordinary answer.
Status Endpoint::serve_one(const Head& head, Guard* guard) {
  if (head.code == Code::kCopyFromRemote || head.code == Code::kCopyToRemote) return serve_copy(head);
  Wire keep(&lent_);
  Result<std::vector<WireValue>> values = std::vector<WireValue>{};
  std::string body;
  uint64_t rest = head.body;
  if (head.code == Code::kCallFunction && !upload_functions_.empty() && rest >= sizeof(uint64_t)) {
    body = TW_TRY(read_body(sizeof(uint64_t)));
    rest -= sizeof(uint64_t);
    if (upload_functions_.count(reader_of(body).read<uint64_t>()) != 0) {
      Status taken = serve_upload(rest);
      if (!taken.ok() && taken.error().code == ErrorCode::kProtocolError) return taken;
      if (!taken.ok() && taken.error().code == ErrorCode::kConnectionLost) return taken;
      if (taken.ok())
        values = std::vector{WireValue::of(TW_NULL), WireValue()};
      else
        values = Diagnostic(taken.error());
      rest = std::numeric_limits<uint64_t>::max();
    }
  }
  if (head.code == Code::kUploaded) {
    values = serve_uploaded(rest, &keep, guard);
  } else if (rest != std::numeric_limits<uint64_t>::max()) {
    if (rest > kMaxFrame)
      return Diagnostic(ErrorCode::kProtocolError, format("a frame of {} bytes, of {} allowed", rest, kMaxFrame),
                        "remote", "send files with upload and tensors with copies");
    body += TW_TRY(read_body(rest));
    values = head.code == Code::kCallFunction ? serve_call(body, &keep, guard) : serve_request(head.code, body);
  }
  if (values.ok()) {
    ByteWriter out;
    write_values(out, *values);
    return answer(Code::kReturn, out.str(), guard);
  }
  if (values.error().code == ErrorCode::kProtocolError) return std::move(values).error();
  ByteWriter out;
  const std::string text = error_text(values.error());
  write_values(out, std::vector{WireValue::of_text(text)});
  return answer(Code::kException, out.str(), guard);
}

Result<std::vector<WireValue>> Endpoint::serve_call(std::string_view body, Wire* keep, Guard* guard) {
  ByteReader in = reader_of(body);
  const auto handle = in.read<uint64_t>();
  const auto values = TW_TRY(read_values(in));
  // the call may release the function itself
  const HeldFunction function(tw_function_retain(TW_TRY(lent_.function(handle))));
  if (lent_.size() > kMaxHandles)
    return Diagnostic(ErrorCode::kLimitExceeded, "the session holds a million objects", "remote", "free some");
  Lent args;
  std::vector<tw_value> given;
  for (const WireValue& value : values) given.push_back(TW_TRY(from_wire(value, &args)));
  if (guard) guard->unlock();  // meanwhile other threads of the function may call back
  auto result = call_function(function.get(), given.data(), given.size());
  if (guard) guard->lock();
  return result_to_wire(TW_TRY(std::move(result)), keep);
}

Result<std::vector<WireValue>> Endpoint::serve_find(std::string_view name) {
  tw_function* function = nullptr;
  TW_TRY_STATUS(checked(tw_function_get_global(std::string(name).c_str(), &function)));
  if (!function) return std::vector{WireValue::of_handle(0)};
  const uint64_t handle = lent_.add(function);
  if (upload_ && name == kUpload) upload_functions_.insert(handle);
  return std::vector{WireValue::of_handle(handle)};
}

Result<std::vector<WireValue>> Endpoint::serve_request(Code code, std::string_view body) {
  ByteReader in = reader_of(body);
  const std::vector<WireValue> nothing{WireValue()};
  if (code == Code::kInitServer) {
    const std::string version = in.read_string();
    const auto values = TW_TRY(read_values(in));
    if (version != kVersion)
      return Diagnostic(ErrorCode::kInvalidArgument, format("the protocol's version is {}, not {}", kVersion, version),
                        "remote", "use versions that belong together");
    if (!values.empty() && values[0].text != "rpc.LocalSession")
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("sessions are made by rpc.LocalSession, not by '{}'", values[0].text), "remote");
    return nothing;
  }
  const auto values = TW_TRY(read_values(in));
  const auto wants = [&](size_t least) -> Status {
    if (values.size() < least) return not_as_asked("with too few values");
    return Ok{};
  };
  switch (code) {
    case Code::kGetGlobalFunction:
      TW_TRY_STATUS(wants(1));
      return serve_find(values[0].text);
    case Code::kFreeHandle:
      TW_TRY_STATUS(wants(1));
      TW_TRY_STATUS(lent_.release(values[0].handle));
      upload_functions_.erase(values[0].handle);
      return nothing;
    case Code::kFreeData:
      TW_TRY_STATUS(wants(2));
      TW_TRY_STATUS(lent_.release(values[1].handle));
      return nothing;
    case Code::kGetDeviceAttribute: {
      TW_TRY_STATUS(wants(2));
      if (values[1].integer != kAttributeExists) return nothing;
      return std::vector{
          WireValue::of(device_kind(values[0].device) == kDLCPU && values[0].device.device_id == 0 ? 1 : 0)};
    }
    case Code::kAllocate:
    case Code::kAllocateWithScope: {
      TW_TRY_STATUS(wants(code == Code::kAllocate ? 3 : 1));
      const DLDevice device = code == Code::kAllocate ? values[0].device : values[0].tensor.device;
      if (device_kind(device) != kDLCPU || device.device_id != 0)
        return Diagnostic(ErrorCode::kInvalidArgument, "this server has no such device", "remote",
                          "take remote.cpu(0)");
      if (lent_.size() > kMaxHandles)
        return Diagnostic(ErrorCode::kLimitExceeded, "the session holds a million objects", "remote", "free some");
      const uint64_t bytes =
          code == Code::kAllocate ? static_cast<uint64_t>(values[1].integer) : TW_TRY(byte_size(values[0].tensor));
      const uint64_t alignment = code == Code::kAllocate ? static_cast<uint64_t>(values[2].integer) : 128;
      return std::vector{WireValue::of_handle(TW_TRY(lent_.allocate(bytes, alignment)))};
    }
    case Code::kCopyAmongRemote: {
      TW_TRY_STATUS(wants(2));
      const uint64_t bytes = TW_TRY(byte_size(values[0].tensor));
      const auto from = TW_TRY(bytes_of(values[0].tensor, bytes));
      const auto to = TW_TRY(bytes_of(values[1].tensor, bytes));
      if (TW_TRY(byte_size(values[1].tensor)) != bytes)
        return Diagnostic(ErrorCode::kShapeMismatch, "tensors of different sizes cannot be copied", "remote");
      std::memmove(to.data(), from.data(), bytes);
      return nothing;
    }
    case Code::kCreateStream:
      return std::vector{WireValue::of_handle(0)};
    case Code::kSetDevice:
    case Code::kStreamSync:
    case Code::kFreeStream:
    case Code::kSetStream:
      return nothing;  // CPU operations are never asynchronous
    default:
      return not_as_asked("that there is not");
  }
}

// (name, bytes), streamed: the file need not fit in memory.
Status Endpoint::serve_upload(uint64_t rest) {
  const auto take = [&](uint64_t bytes) -> Result<std::string> {
    if (bytes > rest) return not_as_asked("of another length than it says");
    rest -= bytes;
    return read_body(bytes);
  };
  const std::string kinds = TW_TRY(take(3 * sizeof(int32_t)));
  ByteReader in = reader_of(kinds);
  if (in.read<int32_t>() != 2 || in.read<int32_t>() != TW_STR) return not_as_asked("for an upload without a name");
  const auto kind = in.read<int32_t>();
  if (kind != TW_BYTES && kind != TW_STR) return not_as_asked("for an upload without bytes");
  const std::string name_size = TW_TRY(take(sizeof(uint64_t)));
  const auto name_bytes = reader_of(name_size).read<uint64_t>();
  if (name_bytes > 4096) return not_as_asked("for an upload with a name that is too long");
  const std::string name = TW_TRY(take(name_bytes));
  const std::string file_size = TW_TRY(take(sizeof(uint64_t)));
  const auto bytes = reader_of(file_size).read<uint64_t>();
  if (bytes != rest) return not_as_asked("of another length than it says");
  uint64_t left = bytes;
  const auto read = [&](std::span<char> out) -> Status {
    left -= out.size();
    return channel_->read(out);
  };
  Status taken = upload_(name, bytes, read);
  std::string ignored;  // the rest of a refused file is skipped, to stay in sync
  while (left > 0) {
    ignored.resize(std::min<uint64_t>(left, 1 << 20));
    left -= ignored.size();
    TW_TRY_STATUS(channel_->read(ignored));
  }
  return taken;
}

// (handle of the callee, file size, its name): the server has already written the file. If the callee is not the upload
// function, the file is an ordinary argument.
Result<std::vector<WireValue>> Endpoint::serve_uploaded(uint64_t bytes, Wire* keep, Guard* guard) {
  constexpr uint64_t kMost = 3 * sizeof(uint64_t) + 255;
  if (bytes > kMost) return not_as_asked("that there is not");
  const std::string body = TW_TRY(read_body(bytes));
  ByteReader in = reader_of(body);
  const auto handle = in.read<uint64_t>(), size = in.read<uint64_t>();
  const std::string name = in.read_string();
  const int file = adopt_ ? channel_->take_descriptor() : -1;
  if (!in.ok() || file < 0) return not_as_asked("that there is not");
  struct Open {
    int file;
    ~Open() { ::close(file); }
  } const open{file};
  if (upload_functions_.count(handle) != 0) {
    TW_TRY_STATUS(adopt_(name, size, file));
    return std::vector{WireValue::of(TW_NULL), WireValue()};
  }
  if (size > kMaxFrame)
    return Diagnostic(ErrorCode::kProtocolError, format("a frame of {} bytes, of {} allowed", size, kMaxFrame),
                      "remote", "send files with upload and tensors with copies");
  std::string content(size, '\0');
  for (size_t at = 0; at < size;) {
    const ssize_t n = ::pread(file, content.data() + at, size - at, static_cast<off_t>(at));
    if (n <= 0) return not_as_asked("whose bytes were lost");
    at += static_cast<size_t>(n);
  }
  ByteWriter call;
  call.write(handle);
  write_values(call, std::vector{WireValue::of_text(name), WireValue::of_text(content, TW_BYTES)});
  return serve_call(call.str(), keep, guard);
}

// Bytes go directly between connection and tensor.
Status Endpoint::serve_copy(const Head& head) {
  const bool inwards = head.code == Code::kCopyToRemote;
  constexpr uint64_t kFixed = 8 + 4 + 4 + 4 + 4 + 8 + 8;
  if (head.body < kFixed) return not_as_asked("for half a copy");
  std::string start = TW_TRY(read_body(8 + 4 + 4 + 4 + 4));
  int32_t rank = 0;
  std::memcpy(&rank, start.data() + 16, sizeof rank);
  if (rank < 0 || rank > 32 || head.body < kFixed + 8 * static_cast<uint64_t>(rank))
    return not_as_asked("for half a copy");
  start += TW_TRY(read_body(8 * static_cast<uint64_t>(rank) + 8));
  ByteReader in = reader_of(start);
  const WireTensor tensor = TW_TRY(read_tensor(in));
  uint64_t bytes = 0;
  TW_TRY_STATUS(channel_->read({reinterpret_cast<char*>(&bytes), sizeof bytes}));
  const uint64_t rest = head.body - kFixed - 8 * static_cast<uint64_t>(rank);
  if (rest != (inwards ? bytes : 0)) return not_as_asked("for a copy of another length than it says");
  auto memory = bytes_of(tensor, bytes);
  if (!memory.ok() && rest > kMaxFrame) return not_as_asked("for a copy to nowhere");
  if (inwards && memory.ok()) TW_TRY_STATUS(channel_->read(*memory));
  if (inwards && !memory.ok()) TW_TRY(read_body(rest));
  if (!memory.ok()) {
    const std::string text = error_text(memory.error());
    return send(frame(Code::kException, std::vector{WireValue::of_text(text)}));
  }
  if (inwards) return send(frame(Code::kReturn, std::vector{WireValue()}));
  return send(frame_head(Code::kCopyAck, bytes), {memory->data(), memory->size()});
}

}  // namespace tilewright::rpc
