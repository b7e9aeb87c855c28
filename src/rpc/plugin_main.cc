// SPDX-License-Identifier: Apache-2.0
// The client side as named functions ("rpc.Connect", ...), in a separate library that is loaded on demand: other
// programs need no TLS.
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/format.h"
#include "rpc/connect.h"
#include "rpc/endpoint.h"
#include "rpc/endpoint_parts.h"
#include "rpc/micro_channel.h"
#include "rpc/session_process.h"

namespace tilewright::rpc {
namespace {

using Values = std::span<const tw_value>;

// Sessions by index.
std::mutex sessions_mutex;
std::map<int32_t, std::weak_ptr<Endpoint>>& sessions() {
  // never destroyed, for sessions that end at exit
  static auto* const table = new std::map<int32_t, std::weak_ptr<Endpoint>>;
  return *table;
}

Result<std::shared_ptr<Endpoint>> session_of(const DLDevice& device) {
  std::lock_guard lock(sessions_mutex);
  const auto found = sessions().find(device_kind(device) / kSessionStep);
  auto session = found == sessions().end() ? nullptr : found->second.lock();
  if (!session)
    return Diagnostic(ErrorCode::kInvalidArgument, "the tensor or device belongs to no open session", "remote",
                      "take the device from the session: remote.cpu(0)");
  return session;
}

Diagnostic wants(const char* what) {
  return {ErrorCode::kInvalidArgument, format("the call wants {}", what), "remote", "docs/rpc.md"};
}

Result<std::string> text_at(Values args, size_t i) {
  if (i >= args.size() || (args[i].kind != TW_STR && args[i].kind != TW_BYTES)) return wants("a text");
  return std::string(args[i].as.str, args[i].size);
}
Result<int64_t> integer_at(Values args, size_t i) {
  if (i >= args.size() || args[i].kind != TW_INT) return wants("an integer");
  return args[i].as.i;
}
Result<std::chrono::milliseconds> seconds_at(Values args, size_t i) {
  if (i >= args.size() || (args[i].kind != TW_INT && args[i].kind != TW_FLOAT)) return wants("seconds");
  const double seconds = args[i].kind == TW_INT ? static_cast<double>(args[i].as.i) : args[i].as.f;
  if (!(seconds >= 0 && seconds < 1e7)) return wants("seconds from 0 on");
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}
Result<const DLTensor*> tensor_at(Values args, size_t i) {
  if (i < args.size() && args[i].kind == TW_TENSOR) return args[i].as.tensor;
  if (i < args.size() && args[i].kind == TW_NDARRAY) return &args[i].as.ndarray->dl_tensor;
  return wants("a tensor");
}
bool is_remote(const DLTensor& tensor) { return device_kind(tensor.device) >= kSessionStep; }

Result<Door> door_at(Values args, size_t i) {  // token file, plaintext, patience in ms
  Door door;
  door.token_path = TW_TRY(text_at(args, i));
  door.plaintext = TW_TRY(integer_at(args, i + 1)) != 0;
  door.patience = std::chrono::milliseconds(TW_TRY(integer_at(args, i + 2)));
  return door;
}

// A session as a module: its functions are the peer's global functions, and some of its own.
struct SessionModule {
  std::shared_ptr<Endpoint> endpoint;
  static int32_t close(void* context, const tw_value*, int32_t, tw_value*) {
    static_cast<SessionModule*>(context)->endpoint->shutdown();
    return 0;
  }
  static int32_t get_function(void* context, const char* name, tw_function** out) {
    auto* self = static_cast<SessionModule*>(context);
    if (std::string_view(name) == "__close__") return tw_function_create(close, new SessionModule(*self), free, out);
    auto found = self->endpoint->find(name);
    if (!found.ok()) return reported(found.error());
    *out = *found;
    return 0;
  }
  static void free(void* context) { delete static_cast<SessionModule*>(context); }
};

// Returns [the session's module, its index].
Result<OwnedValue> begin_session(std::unique_ptr<Channel> channel, std::chrono::milliseconds limit,
                                 uint64_t most_copied = ~uint64_t{0}) {
  int32_t number = 1;
  std::shared_ptr<Endpoint> endpoint;
  {
    std::lock_guard lock(sessions_mutex);
    while (sessions().count(number) != 0 && !sessions()[number].expired()) ++number;
    endpoint = std::make_shared<Endpoint>(std::move(channel), number * kSessionStep);
    sessions()[number] = endpoint;
  }
  if (limit.count() > 0) endpoint->ends_at(std::chrono::steady_clock::now() + limit);
  TW_TRY_STATUS(endpoint->start({}));
  endpoint->copies_at_most(most_copied);
  tw_module_class kind{};
  kind.size = sizeof kind;
  kind.type_key = "rpc.session";
  kind.get_function = SessionModule::get_function;
  kind.free_context = SessionModule::free;  // anything of the session keeps it alive
  OwnedValue out;
  TW_TRY_STATUS(checked(tw_value_set_array(out.out(), 2)));
  tw_module* module = nullptr;
  TW_TRY_STATUS(checked(tw_module_create(&kind, new SessionModule{endpoint}, &module)));
  out.out()->as.array[0].kind = TW_MODULE;
  out.out()->as.array[0].as.module = module;
  out.out()->as.array[1] = OwnedValue::of(endpoint->step()).release();
  return out;
}

// (host, port, key, session timeout in seconds, token file, plaintext, patience)
Result<OwnedValue> connect(Values args) {
  const std::string host = TW_TRY(text_at(args, 0));
  const std::string key = TW_TRY(text_at(args, 2));
  const int64_t port = TW_TRY(integer_at(args, 1));
  const auto limit = TW_TRY(seconds_at(args, 3));
  if (port < 1 || port > 65535) return wants("a port from 1 to 65535");
  return begin_session(TW_TRY(connect_session(host, static_cast<int>(port), key, limit, TW_TRY(door_at(args, 4)))),
                       limit);
}

// (descriptor of a socket): a session with its peer.
Result<OwnedValue> connect_socket(Values args) {
  return begin_session(socket_channel(static_cast<int>(TW_TRY(integer_at(args, 0)))), {});
}

// (descriptor of a socket, seconds for the start, seconds of permitted silence): a session with a device on a serial
// line.
Result<OwnedValue> connect_micro(Values args) {
  const auto socket = static_cast<int>(TW_TRY(integer_at(args, 0)));
  auto channel = TW_TRY(micro_channel(socket, TW_TRY(seconds_at(args, 1)), TW_TRY(seconds_at(args, 2))));
  constexpr uint64_t kSmallestCopies = 256;  // until the device has reported its packet size
  OwnedValue session = TW_TRY(begin_session(std::move(channel), {}, kSmallestCopies));
  const std::shared_ptr<Endpoint> endpoint =
      TW_TRY(session_of(moved_device({kDLCPU, 0}, static_cast<int32_t>(session.get().as.array[1].as.i))));
  const HeldFunction size(TW_TRY(endpoint->find("tvm.rpc.server.GetCRTMaxPacketSize")));
  if (!size.get()) return session;
  const OwnedValue most = TW_TRY(call_function(size.get(), nullptr, 0));
  // Overhead of a copy: session header, frame header, and a tensor of up to sixteen dimensions.
  constexpr int64_t kHead = 3 + 12 + 40 + 16 * 8;
  if (most.get().kind == TW_INT && most.get().as.i > 2 * kHead)
    endpoint->copies_at_most(static_cast<uint64_t>(most.get().as.i - kHead));
  return session;
}

// (descriptor, folder, address space in bytes): serves one session in this process until it ends.
Result<OwnedValue> server_loop(Values args) {
  TW_TRY_STATUS(serve_session(static_cast<int>(TW_TRY(integer_at(args, 0))), TW_TRY(text_at(args, 1)),
                              static_cast<uint64_t>(TW_TRY(integer_at(args, 2)))));
  return OwnedValue();
}

// (host, port, token file, plaintext, patience) -> a function from message to answer.
Result<OwnedValue> connect_tracker(Values args) {
  const std::string host = TW_TRY(text_at(args, 0));
  const int64_t port = TW_TRY(integer_at(args, 1));
  if (port < 1 || port > 65535) return wants("a port from 1 to 65535");
  auto tracker = TW_TRY(TrackerConnection::open(host, static_cast<int>(port), TW_TRY(door_at(args, 2))));
  OwnedValue out;
  out.out()->kind = TW_FUNCTION;
  tw_function_create(
      [](void* context, const tw_value* values, int32_t count, tw_value* result) -> int32_t {
        auto message = text_at(Values(values, static_cast<size_t>(count)), 0);
        if (!message.ok()) return reported(message.error());
        auto answer = static_cast<TrackerConnection*>(context)->ask(*message);
        if (!answer.ok()) return reported(answer.error());
        *result = OwnedValue::text(*answer).release();
        return 0;
      },
      tracker.release(), [](void* context) { delete static_cast<TrackerConnection*>(context); },
      &out.out()->as.function);
  return out;
}

// (shape, tensor that gives the dtype, device, scope) -> a remote tensor.
Result<OwnedValue> new_tensor(Values args) {
  if (args.size() != 4 || args[0].kind != TW_ARRAY || args[2].kind != TW_DEVICE) return wants("a shape and a device");
  std::vector<int64_t> shape;
  for (uint64_t i = 0; i < args[0].size; ++i)
    shape.push_back(TW_TRY(integer_at(Values(args[0].as.array, args[0].size), i)));
  const auto session = TW_TRY(session_of(args[2].as.device));
  return session->allocate(args[2].as.device, TW_TRY(tensor_at(args, 1))->dtype, shape, TW_TRY(text_at(args, 3)));
}

Result<uint64_t> compact_bytes(const DLTensor& tensor) {
  WireTensor facts;
  facts.dtype = tensor.dtype;
  facts.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  return byte_size(facts);
}

// (from, to): either or both can be remote; a local one must be compact.
Result<OwnedValue> copy(Values args) {
  const DLTensor* from = TW_TRY(tensor_at(args, 0));
  const DLTensor* to = TW_TRY(tensor_at(args, 1));
  const uint64_t bytes = TW_TRY(compact_bytes(*from));
  if (TW_TRY(compact_bytes(*to)) != bytes)
    return Diagnostic(ErrorCode::kShapeMismatch, "tensors of different sizes cannot be copied", "remote");
  const auto local = [](const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; };
  Status copied = Ok{};
  if (is_remote(*from) && is_remote(*to) && device_kind(from->device) == device_kind(to->device)) {
    copied = TW_TRY(session_of(from->device))->copy_among(*from, *to);
  } else if (is_remote(*from) && is_remote(*to)) {
    std::vector<char> between(bytes);
    copied = TW_TRY(session_of(from->device))->copy_from(*from, between);
    if (copied.ok()) copied = TW_TRY(session_of(to->device))->copy_to(*to, between);
  } else if (is_remote(*from)) {
    copied = TW_TRY(session_of(from->device))->copy_from(*from, {local(*to), bytes});
  } else {
    copied = TW_TRY(session_of(to->device))->copy_to(*to, {local(*from), bytes});
  }
  TW_TRY_STATUS(std::move(copied));
  return OwnedValue();
}

// (tensor, shape, tensor that gives the dtype, byte offset): a view of the memory.
Result<OwnedValue> view(Values args) {
  if (args.size() != 4 || args[0].kind != TW_TENSOR || args[1].kind != TW_ARRAY) return wants("a tensor and a shape");
  const DLTensor& whole = *args[0].as.tensor;
  std::vector<int64_t> shape;
  for (uint64_t i = 0; i < args[1].size; ++i)
    shape.push_back(TW_TRY(integer_at(Values(args[1].as.array, args[1].size), i)));
  const int64_t offset = TW_TRY(integer_at(args, 3));
  DLTensor part = whole;
  part.dtype = TW_TRY(tensor_at(args, 2))->dtype;
  part.shape = shape.data();
  part.ndim = static_cast<int32_t>(shape.size());
  const uint64_t bytes = TW_TRY(compact_bytes(part)), room = TW_TRY(compact_bytes(whole));
  if (offset < 0 || static_cast<uint64_t>(offset) > room || bytes > room - static_cast<uint64_t>(offset))
    return Diagnostic(ErrorCode::kShapeMismatch,
                      format("a view of {} bytes at {} of a tensor of {}", bytes, offset, room), "remote",
                      "a view cannot be larger than what it looks at");
  tw_value out{};
  out.kind = TW_NDARRAY;  // the caller keeps the original alive
  out.as.ndarray = managed_tensor(whole.data, whole.device, part.dtype, shape.data(), shape.size(),
                                  whole.byte_offset + static_cast<uint64_t>(offset), nullptr, nullptr);
  return OwnedValue(out);
}

// (device, kind)
Result<OwnedValue> attribute(Values args) {
  if (args.empty() || args[0].kind != TW_DEVICE) return wants("a device");
  return TW_TRY(session_of(args[0].as.device))->attribute(args[0].as.device, TW_TRY(integer_at(args, 1)));
}
Result<OwnedValue> sync(Values args) {
  if (args.empty() || args[0].kind != TW_DEVICE) return wants("a device");
  TW_TRY_STATUS(TW_TRY(session_of(args[0].as.device))->sync(args[0].as.device));
  return OwnedValue();
}
// (function): called while waiting for the peer; its error ends the wait and the session.
Result<OwnedValue> on_wait(Values args) {
  if (args.size() != 1 || args[0].kind != TW_FUNCTION) return wants("a function");
  tw_function* check = tw_function_retain(args[0].as.function);
  set_wait_check([check]() -> Status {
    TW_TRY(call_function(check, nullptr, 0));
    return Ok{};
  });
  return OwnedValue();
}
Result<OwnedValue> token_path(Values) { return OwnedValue::text(default_token_path()); }

struct Named {
  const char* name;
  Result<OwnedValue> (*body)(Values);
};
constexpr Named kFunctions[] = {{"rpc.Connect", connect},
                                {"rpc.ConnectSocket", connect_socket},
                                {"rpc.ConnectMicro", connect_micro},
                                {"rpc.ConnectTracker", connect_tracker},
                                {"rpc.OnWait", on_wait},
                                {"rpc.ServerLoop", server_loop},
                                {"rpc.NewTensor", new_tensor},
                                {"rpc.Copy", copy},
                                {"rpc.View", view},
                                {"rpc.DeviceAttribute", attribute},
                                {"rpc.Sync", sync},
                                {"rpc.TokenPath", token_path}};

int32_t call_named(void* context, const tw_value* args, int32_t count, tw_value* result) {
  try {
    auto value = static_cast<const Named*>(context)->body(Values(args, static_cast<size_t>(count)));
    if (!value.ok()) return reported(value.error());
    *result = value->release();
    return 0;
  } catch (const std::exception& e) {
    return reported({ErrorCode::kLimitExceeded, e.what(), "remote"});
  }
}

}  // namespace
}  // namespace tilewright::rpc

extern "C" TW_API int32_t tw_runtime_plugin(void) {
  using namespace tilewright::rpc;
  for (const Named& named : kFunctions) {
    tw_function* function = nullptr;
    int32_t status = tw_function_create(call_named, const_cast<Named*>(&named), nullptr, &function);
    if (status == 0) status = tw_function_register(named.name, function, 1);
    tw_function_free(function);
    if (status != 0) return status;
  }
  return 0;
}
