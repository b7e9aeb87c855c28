// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire.h"

#include <cstdlib>

#include "base/format.h"
#include "base/token_refused.h"

namespace tilewright::rpc {
namespace {

constexpr int32_t kMaxValues = 4096, kMaxRank = 32;
constexpr int kMaxDepth = 8;

Diagnostic damaged(const std::string& what) { return {ErrorCode::kProtocolError, format("a frame holds {}", what)}; }

template <class T>
void append(ByteWriter& out, const T& value) {
  out.write<T>(value);
}

void write_one(ByteWriter& out, const WireValue& v) {
  switch (v.kind) {
    case TW_INT:
      return append(out, v.integer);
    case TW_FLOAT:
      return append(out, v.number);
    case TW_DTYPE:
      append(out, v.dtype);
      return append(out, int32_t{0});
    case TW_DEVICE:
      append(out, device_kind(v.device));
      return append(out, v.device.device_id);
    case TW_HANDLE:
    case TW_MODULE:
    case TW_FUNCTION:
      return append(out, v.handle);
    case TW_TENSOR:
      return write_tensor(out, v.tensor);
    case TW_STR:
    case TW_BYTES:
      return out.write_string(v.text);
    case TW_ARRAY:
      append(out, static_cast<uint64_t>(v.items.size()));
      for (const WireValue& item : v.items) {
        append(out, item.kind);
        write_one(out, item);
      }
      return;
    default:  // no content besides the type
      return;
  }
}

Result<WireValue> read_one(ByteReader& in, int32_t kind, int depth) {
  WireValue v;
  v.kind = kind;
  switch (kind) {
    case TW_NULL:
      return v;
    case TW_INT:
    case 1:  // the classic stack's unsigned integer
      v.kind = TW_INT;
      v.integer = in.read<int64_t>();
      break;
    case TW_FLOAT:
      v.number = in.read<double>();
      break;
    case TW_DTYPE:
      v.dtype = in.read<DLDataType>();
      in.read<int32_t>();
      break;
    case TW_DEVICE:
      v.device = moved_device({DLDeviceType{}, 0}, in.read<int32_t>());
      v.device.device_id = in.read<int32_t>();
      break;
    case TW_HANDLE:
    case TW_MODULE:
    case TW_FUNCTION:
      v.handle = in.read<uint64_t>();
      break;
    case TW_TENSOR:
      v.tensor = TW_TRY(read_tensor(in));
      break;
    case TW_STR:
    case TW_BYTES: {
      const auto bytes = in.take(in.read<uint64_t>());
      v.text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
      break;
    }
    case TW_ARRAY: {
      if (depth >= kMaxDepth) return damaged("lists in lists, deeper than 8");
      const uint64_t count = in.read_count(sizeof(int32_t));
      for (uint64_t i = 0; i < count && in.ok(); ++i) {
        const auto item_kind = in.read<int32_t>();
        v.items.push_back(TW_TRY(read_one(in, item_kind, depth + 1)));
      }
      break;
    }
    case TW_NDARRAY:
      return damaged("an array with its owner, which stays where it is: pass the array's tensor");
    default:
      return damaged(format("a value of kind {}, which cannot be sent", kind));
  }
  if (!in.ok()) return damaged("less than its values need");
  return v;
}

}  // namespace

Result<uint64_t> byte_size(const WireTensor& tensor) {
  auto count = checked_element_count(tensor.shape);
  const uint64_t bits = uint64_t{tensor.dtype.bits} * tensor.dtype.lanes;
  if (!count.ok() || bits == 0 || bits > 4096) return damaged("a tensor of an impossible shape or dtype");
  return (static_cast<uint64_t>(*count) * bits + 7) / 8;
}

WireValue WireValue::of(int64_t i) {
  WireValue v;
  v.kind = TW_INT;
  v.integer = i;
  return v;
}
WireValue WireValue::of_handle(uint64_t handle, int32_t kind) {
  WireValue v;
  v.kind = kind;
  v.handle = handle;
  return v;
}
WireValue WireValue::of_text(std::string_view text, int32_t kind) {
  WireValue v;
  v.kind = kind;
  v.text = text;
  return v;
}
WireValue WireValue::of_device(DLDevice device) {
  WireValue v;
  v.kind = TW_DEVICE;
  v.device = device;
  return v;
}
WireValue WireValue::of_tensor(WireTensor tensor) {
  WireValue v;
  v.kind = TW_TENSOR;
  v.tensor = std::move(tensor);
  return v;
}

void write_tensor(ByteWriter& out, const WireTensor& tensor) {
  append(out, tensor.data);
  append(out, device_kind(tensor.device));
  append(out, tensor.device.device_id);
  append(out, static_cast<int32_t>(tensor.shape.size()));
  append(out, tensor.dtype);
  for (const int64_t size : tensor.shape) append(out, size);
  append(out, tensor.byte_offset);
}

Result<WireTensor> read_tensor(ByteReader& in) {
  WireTensor tensor;
  tensor.data = in.read<uint64_t>();
  tensor.device = moved_device({DLDeviceType{}, 0}, in.read<int32_t>());
  tensor.device.device_id = in.read<int32_t>();
  const auto rank = in.read<int32_t>();
  tensor.dtype = in.read<DLDataType>();
  if (rank < 0 || rank > kMaxRank) return damaged(format("a tensor of {} dimensions", rank));
  for (int32_t i = 0; i < rank; ++i) tensor.shape.push_back(in.read<int64_t>());
  tensor.byte_offset = in.read<uint64_t>();
  if (!in.ok()) return damaged("half a tensor");
  return tensor;
}

void write_values(ByteWriter& out, std::span<const WireValue> values, bool without_tail) {
  append(out, static_cast<int32_t>(values.size()));
  for (const WireValue& v : values) append(out, v.kind);
  for (const WireValue& v : values.first(values.size() - (without_tail ? 1 : 0))) write_one(out, v);
  if (without_tail) append(out, uint64_t{values.back().text.size()});
}

Result<std::vector<WireValue>> read_values(ByteReader& in) {
  const auto count = in.read<int32_t>();
  if (count < 0 || count > kMaxValues) return damaged(format("{} values", count));
  std::vector<int32_t> kinds;
  for (int32_t i = 0; i < count; ++i) kinds.push_back(in.read<int32_t>());
  if (!in.ok()) return damaged("less than its values need");
  std::vector<WireValue> values;
  for (const int32_t kind : kinds) values.push_back(TW_TRY(read_one(in, kind, 0)));
  if (!in.ok()) return damaged("less than its values need");
  if (in.remaining() != 0) return damaged("more than its values");
  return values;
}

std::string frame_head(Code code, uint64_t body_bytes) {
  ByteWriter out;
  append(out, sizeof(int32_t) + body_bytes);
  append(out, static_cast<int32_t>(code));
  return out.take();
}

std::string frame(Code code, std::string_view body) { return frame_head(code, body.size()).append(body); }

std::string frame(Code code, std::span<const WireValue> values) {
  ByteWriter body;
  write_values(body, values);
  return frame(code, body.str());
}

std::string error_text(const Diagnostic& error) { return error.str(); }

Diagnostic error_from(std::string_view text) {
  constexpr std::string_view kStart = "error[E", kHint = "\n  hint: ";
  const size_t end = text.find("]: ");
  if (!text.starts_with(kStart) || end == std::string_view::npos)
    return {ErrorCode::kRemoteError, std::string(text.substr(0, 16384)), "remote"};
  const int number = std::atoi(std::string(text.substr(kStart.size(), 3)).c_str());
  std::string_view message = text.substr(end + 3);
  constexpr std::string_view kPlace = "remote: ";  // the peer adds it as well
  if (message.starts_with(kPlace)) message.remove_prefix(kPlace.size());
  Diagnostic error(ErrorCode::kRemoteError, std::string(message), "remote");
  if (static_cast<ErrorCode>(number) == kTokenRefused) error.code = kTokenRefused;
  switch (static_cast<ErrorCode>(number)) {
#define TW_CODE(value, name, meaning) \
  case ErrorCode::k##name:            \
    error.code = ErrorCode::k##name;  \
    break;
    TW_ERROR_CODES(TW_CODE)
#undef TW_CODE
    default:
      break;
  }
  const size_t hint = error.message.find(kHint);
  if (hint != std::string::npos) {
    error.hint = error.message.substr(hint + kHint.size());
    error.message.resize(hint);
  }
  return error;
}

}  // namespace tilewright::rpc
