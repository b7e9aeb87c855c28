// SPDX-License-Identifier: Apache-2.0
// Conversion between runtime values and wire values, and proxies for remote objects.
#include <optional>

#include "base/format.h"
#include "rpc/endpoint.h"
#include "rpc/endpoint_parts.h"

namespace tilewright::rpc {

// A proxy of a remote object: keeps the session alive and frees the object.
struct Proxy {
  std::shared_ptr<Endpoint> endpoint;
  uint64_t handle = 0;
  int32_t kind = 0;
  const void* self = nullptr;

  ~Proxy() {
    if (self) {
      std::lock_guard lock(endpoint->proxies_mutex_);
      endpoint->proxies_.erase(self);
    }
    endpoint->release_later(handle, kind);
  }
  static int32_t call(void* context, const tw_value* args, int32_t count, tw_value* result) {
    const auto* proxy = static_cast<Proxy*>(context);
    auto value = proxy->endpoint->call(proxy->handle, {args, static_cast<size_t>(count)});
    if (!value.ok()) return reported(value.error());
    *result = value->release();
    return 0;
  }
  static int32_t step(void* context, const tw_value*, int32_t, tw_value* result) {
    *result = OwnedValue::of(reinterpret_cast<intptr_t>(context)).release();
    return 0;
  }
  static int32_t get_function(void* context, const char* name, tw_function** out) {
    const auto* proxy = static_cast<Proxy*>(context);
    // Session functions: global functions of the peer, and the session's index.
    constexpr std::string_view kGlobal = "__session__:";
    if (std::string_view(name).starts_with(kGlobal)) {
      auto global = proxy->endpoint->find(name + kGlobal.size());
      if (!global.ok()) return reported(global.error());
      *out = *global;
      return 0;
    }
    if (std::string_view(name) == "__session_step__")
      return tw_function_create(step, reinterpret_cast<void*>(static_cast<intptr_t>(proxy->endpoint->step())), nullptr,
                                out);
    auto found = proxy->endpoint->find("tvm.rpc.server.ModuleGetFunction");
    if (!found.ok()) return reported(found.error());
    if (!*found) return reported({ErrorCode::kUnknownFunction, "the other side has no modules", "remote"});
    tw_value values[3]{};
    values[0].kind = TW_MODULE;
    values[0].as.module = static_cast<tw_module*>(const_cast<void*>(proxy->self));
    values[1].kind = TW_STR;
    values[1].as.str = name;
    values[1].size = std::string_view(name).size();
    values[2].kind = TW_INT;
    values[2].as.i = 1;  // including imports
    auto function = call_function(*found, values, 3);
    tw_function_free(*found);
    if (!function.ok()) return reported(function.error());
    if (function->get().kind == TW_FUNCTION) *out = function->release().as.function;
    return 0;
  }
  static void free(void* context) { delete static_cast<Proxy*>(context); }
};

namespace {

Diagnostic stays_here(const char* what) {
  return {ErrorCode::kInvalidArgument,
          format("{} of this process cannot be passed to the other side of a session", what), "remote",
          "tensors go there with nd.array(values, device), libraries with upload and load_module"};
}

}  // namespace

tw_function* Endpoint::proxy_function(uint64_t handle) {
  auto* proxy = new Proxy{shared_from_this(), handle, TW_FUNCTION, nullptr};
  tw_function* out = nullptr;
  tw_function_create(Proxy::call, proxy, Proxy::free, &out);
  std::lock_guard lock(proxies_mutex_);
  proxy->self = out;
  proxies_[out] = handle;
  return out;
}

tw_module* Endpoint::proxy_module(uint64_t handle) {
  auto* proxy = new Proxy{shared_from_this(), handle, TW_MODULE, nullptr};
  tw_module_class kind{};
  kind.size = sizeof kind;
  kind.type_key = "rpc";
  kind.get_function = Proxy::get_function;
  kind.free_context = Proxy::free;
  tw_module* out = nullptr;
  tw_module_create(&kind, proxy, &out);
  std::lock_guard lock(proxies_mutex_);
  proxy->self = out;
  proxies_[out] = handle;
  return out;
}

OwnedValue Endpoint::proxy_tensor(const WireTensor& tensor, int32_t kind) {
  auto* proxy = new Proxy{shared_from_this(), tensor.data, kind, nullptr};
  const DLDevice device = moved_device(tensor.device, step_);
  tw_value value{};
  value.kind = TW_NDARRAY;
  value.as.ndarray = managed_tensor(reinterpret_cast<void*>(tensor.data), device, tensor.dtype, tensor.shape.data(),
                                    tensor.shape.size(), tensor.byte_offset, Proxy::free, proxy);
  return OwnedValue(value);
}

Result<DLDevice> Endpoint::there(DLDevice device) const {
  const DLDevice moved = moved_device(device, -step_);
  if (const int32_t type = device_kind(moved); step_ != 0 && (type < 0 || type >= kSessionStep))
    return Diagnostic(ErrorCode::kInvalidArgument, "a device that is not of this session", "remote",
                      "take the session's own: remote.cpu(0)");
  return moved;
}

Result<WireTensor> Endpoint::remote_tensor(const DLTensor& tensor) const {
  if (step_ == 0 || device_kind(tensor.device) < step_) return stays_here("a tensor");
  WireTensor wire;
  wire.device = TW_TRY(there(tensor.device));
  wire.data = reinterpret_cast<uintptr_t>(tensor.data);
  wire.dtype = tensor.dtype;
  wire.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  wire.byte_offset = tensor.byte_offset;
  return wire;
}

Result<WireValue> Endpoint::to_wire(const tw_value& value, Wire* keep, int depth) {
  WireValue wire;
  wire.kind = value.kind;
  switch (value.kind) {
    case TW_NULL:
      return wire;
    case TW_INT:
      wire.integer = value.as.i;
      return wire;
    case TW_FLOAT:
      wire.number = value.as.f;
      return wire;
    case TW_DTYPE:
      wire.dtype = value.as.dtype;
      return wire;
    case TW_DEVICE:
      wire.device = TW_TRY(there(value.as.device));
      return wire;
    case TW_STR:
      return WireValue::of_text({value.as.str, value.size});
    case TW_BYTES:
      return WireValue::of_text({reinterpret_cast<const char*>(value.as.bytes), value.size}, TW_BYTES);
    case TW_HANDLE:
      if (value.as.handle) return stays_here("an address");
      return wire;
    case TW_FUNCTION: {
      std::lock_guard lock(proxies_mutex_);
      const auto known = proxies_.find(value.as.function);
      if (known != proxies_.end()) return WireValue::of_handle(known->second, TW_FUNCTION);
      return WireValue::of_handle(lent_.add(tw_function_retain(value.as.function)) | kOfOtherSide, TW_FUNCTION);
    }
    case TW_MODULE: {
      std::lock_guard lock(proxies_mutex_);
      const auto known = proxies_.find(value.as.module);
      if (known == proxies_.end()) return stays_here("a module");
      return WireValue::of_handle(known->second, TW_MODULE);
    }
    case TW_TENSOR:
    case TW_NDARRAY: {
      const DLTensor& tensor = value.kind == TW_TENSOR ? *value.as.tensor : value.as.ndarray->dl_tensor;
      if (step_ != 0) return WireValue::of_tensor(TW_TRY(remote_tensor(tensor)));
      return WireValue::of_tensor(TW_TRY(keep->lend(tensor, &lent_)));  // the server's own tensor, passed to a callback
    }
    case TW_ARRAY:
      if (depth >= 8) return Diagnostic(ErrorCode::kInvalidArgument, "lists in lists, deeper than 8", "remote");
      for (uint64_t i = 0; i < value.size; ++i)
        wire.items.push_back(TW_TRY(to_wire(value.as.array[i], keep, depth + 1)));
      return wire;
    default:
      return Diagnostic(ErrorCode::kInvalidArgument, format("a value of kind {} cannot be sent", value.kind), "remote");
  }
}

// A value in a list of results: objects it refers to are added to the handle table, and tensors own their memory.
Result<WireValue> Endpoint::item_to_wire(const tw_value& item, Wire* keep, int depth) {
  switch (item.kind) {
    case TW_FUNCTION: {
      WireValue wire = TW_TRY(to_wire(item, keep, depth));
      wire.handle ^= kOfOtherSide;  // in a result, handles without the bit belong to the answering side
      return wire;
    }
    case TW_MODULE:
      return WireValue::of_handle(lent_.add(tw_module_retain(item.as.module)), TW_MODULE);
    case TW_NDARRAY: {
      WireTensor tensor = TW_TRY(describe_tensor(item.as.ndarray->dl_tensor));
      const auto bytes = TW_TRY(host_bytes(item.as.ndarray->dl_tensor));
      tensor.data = lent_.add(item.as.ndarray, bytes);
      return WireValue::of_tensor(tensor);
    }
    case TW_ARRAY: {
      if (depth >= 8) return Diagnostic(ErrorCode::kInvalidArgument, "lists in lists, deeper than 8", "remote");
      WireValue wire;
      wire.kind = TW_ARRAY;
      for (uint64_t i = 0; i < item.size; ++i) {
        wire.items.push_back(TW_TRY(item_to_wire(item.as.array[i], keep, depth + 1)));
        if (item.as.array[i].kind == TW_NDARRAY) item.as.array[i].kind = TW_NULL;  // ownership was transferred
      }
      return wire;
    }
    default:
      return to_wire(item, keep, depth);
  }
}

Result<std::vector<WireValue>> Endpoint::result_to_wire(OwnedValue value, Wire* keep) {
  const int32_t kind = value.get().kind;
  WireValue wire = TW_TRY(item_to_wire(value.get(), keep, 0));
  std::vector<WireValue> values{WireValue::of(kind)};
  if (kind == TW_NDARRAY) value.release();  // owned by the table now
  if (kind == TW_FUNCTION || kind == TW_MODULE) wire.kind = TW_HANDLE;
  values.push_back(std::move(wire));
  if (kind == TW_NDARRAY) values.push_back(WireValue::of_handle(values[1].tensor.data));
  keep->result = std::move(value);  // strings in the frame point into it
  return values;
}

Result<std::span<char>> Endpoint::bytes_of(const WireTensor& tensor, uint64_t bytes) const {
  const auto memory = TW_TRY(lent_.memory(tensor.data));
  if (tensor.byte_offset > memory.size() || bytes > memory.size() - tensor.byte_offset)
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("{} bytes at {} of a tensor of {} bytes", bytes, tensor.byte_offset, memory.size()),
                      "remote", "a view cannot be larger than what it looks at");
  return memory.subspan(tensor.byte_offset, bytes);
}

Result<tw_value> Endpoint::from_wire(const WireValue& wire, Lent* keep) {
  tw_value value{};
  value.kind = wire.kind;
  switch (wire.kind) {
    case TW_INT:
      value.as.i = wire.integer;
      return value;
    case TW_FLOAT:
      value.as.f = wire.number;
      return value;
    case TW_DTYPE:
      value.as.dtype = wire.dtype;
      return value;
    case TW_DEVICE:
      value.as.device = moved_device(wire.device, step_);
      return value;
    case TW_STR:
    case TW_BYTES: {
      const std::string& text = keep->texts.emplace_back(wire.text);  // NUL-terminated
      value.as.str = text.c_str();
      value.size = text.size();
      return value;
    }
    case TW_HANDLE:
      if (wire.handle != 0) return Diagnostic(ErrorCode::kInvalidArgument, "an address of another process", "remote");
      return value;
    case TW_FUNCTION:
      value.as.function = (wire.handle & kOfOtherSide) != 0
                              ? keep->functions.emplace_back(proxy_function(wire.handle & ~kOfOtherSide)).get()
                              : TW_TRY(lent_.function(wire.handle));
      return value;
    case TW_MODULE:
      value.as.module = TW_TRY(lent_.module(wire.handle));
      return value;
    case TW_TENSOR: {
      DLTensor& tensor = keep->tensors.emplace_back();
      keep->shapes.push_back(wire.tensor.shape);
      tensor.device = wire.tensor.device;
      tensor.dtype = wire.tensor.dtype;
      tensor.ndim = static_cast<int32_t>(keep->shapes.back().size());
      tensor.shape = keep->shapes.back().data();
      if (step_ != 0) {  // the server's, in a callback
        tensor.device = moved_device(tensor.device, step_);
        tensor.data = reinterpret_cast<void*>(wire.tensor.data);
        tensor.byte_offset = wire.tensor.byte_offset;
      } else {
        if (device_kind(tensor.device) != kDLCPU)
          return Diagnostic(ErrorCode::kInvalidArgument, "this server has tensors in the CPU's memory only", "remote");
        tensor.data = TW_TRY(bytes_of(wire.tensor, TW_TRY(byte_size(wire.tensor)))).data();
      }
      value.as.tensor = &tensor;
      return value;
    }
    case TW_ARRAY: {
      std::vector<tw_value> items;
      for (const WireValue& item : wire.items) items.push_back(TW_TRY(from_wire(item, keep)));
      value.size = items.size();
      value.as.array = keep->lists.emplace_back(std::move(items)).data();
      return value;
    }
    default:
      value.kind = TW_NULL;
      return value;
  }
}

Result<OwnedValue> Endpoint::owned_from_wire(const WireValue& wire) {
  tw_value value{};
  value.kind = TW_NULL;
  switch (wire.kind) {
    case TW_STR:
      return OwnedValue::text(wire.text);
    case TW_BYTES:
      return OwnedValue::bytes(wire.text);
    case TW_FUNCTION:
      value.kind = TW_FUNCTION;
      value.as.function = (wire.handle & kOfOtherSide) != 0
                              ? tw_function_retain(TW_TRY(lent_.function(wire.handle & ~kOfOtherSide)))
                              : proxy_function(wire.handle);
      return OwnedValue(value);
    case TW_MODULE:
      value.kind = TW_MODULE;
      value.as.module = proxy_module(wire.handle);
      return OwnedValue(value);
    case TW_TENSOR:
      return proxy_tensor(wire.tensor, TW_NDARRAY);
    case TW_ARRAY: {
      OwnedValue list;
      TW_TRY_STATUS(checked(tw_value_set_array(list.out(), wire.items.size())));
      for (size_t i = 0; i < wire.items.size(); ++i)
        list.out()->as.array[i] = TW_TRY(owned_from_wire(wire.items[i])).release();
      return list;
    }
    default: {
      Lent nothing;
      return OwnedValue(TW_TRY(from_wire(wire, &nothing)));
    }
  }
}

Result<OwnedValue> Endpoint::result_from_wire(std::span<const WireValue> values) {
  if (values.size() < 2 || values[0].kind != TW_INT)
    return Diagnostic(ErrorCode::kProtocolError, "a result without its kind", "remote");
  const int64_t kind = values[0].integer;
  WireValue value = values[1];
  if (kind == TW_FUNCTION || kind == TW_MODULE) {
    if (value.kind == TW_NULL || value.handle == 0) return OwnedValue();
    value.kind = static_cast<int32_t>(kind);
  }
  if (kind == TW_NDARRAY && values.size() == 3 && value.kind == TW_TENSOR && values[2].handle != value.tensor.data) {
    // A classic server uses separate handles for the data and for its owner.
    auto* proxy = new Proxy{shared_from_this(), values[2].handle, TW_NDARRAY, nullptr};
    WireTensor tensor = value.tensor;
    const DLDevice device = moved_device(tensor.device, step_);
    tw_value out{};
    out.kind = TW_NDARRAY;
    out.as.ndarray = managed_tensor(reinterpret_cast<void*>(tensor.data), device, tensor.dtype, tensor.shape.data(),
                                    tensor.shape.size(), tensor.byte_offset, Proxy::free, proxy);
    return OwnedValue(out);
  }
  return owned_from_wire(value);
}

Result<OwnedValue> Endpoint::call(uint64_t function, std::span<const tw_value> args) {
  Wire keep(&lent_);
  std::vector<WireValue> values;
  for (const tw_value& arg : args) values.push_back(TW_TRY(to_wire(arg, &keep, 0)));
  // A long last bytes argument is sent directly from its memory.
  std::string_view tail;
  if (!values.empty() && values.back().kind == TW_BYTES && values.back().text.size() >= 4096) tail = values.back().text;
  ByteWriter request;
  request.write(function);
  write_values(request, values, !tail.empty());
  const uint64_t bytes = request.str().size() + tail.size();
  if (bytes > (tail.empty() ? kMaxFrame : kMaxTransfer + 4096))
    return Diagnostic(ErrorCode::kLimitExceeded, format("arguments of {} bytes", bytes), "remote",
                      "pass large tensors as remote arrays, files with upload");
  std::string body;
  return result_from_wire(TW_TRY(exchange(frame_head(Code::kCallFunction, bytes) + request.str(), tail, &body)));
}

}  // namespace tilewright::rpc
