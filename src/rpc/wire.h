// SPDX-License-Identifier: Apache-2.0
// The bytes of a session, the same for both sides: frames of u64 length, i32 code and body, and sequences of values
// with their kinds in front. Layouts are the classic stack's protocol "0.8.0"; lists (TW_ARRAY) are ours.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/result.h"
#include "tilewright/c_api.h"

namespace tilewright::rpc {

enum class Code : int32_t {
  kNone = 0,
  kShutdown,
  kInitServer,
  kCallFunction,
  kReturn,
  kException,
  kCopyFromRemote,
  kCopyToRemote,
  kCopyAck,
  kGetGlobalFunction,
  kFreeHandle,
  kSetDevice,
  kGetDeviceAttribute,
  kAllocate,
  kFreeData,
  kStreamSync,
  kCopyAmongRemote,
  kAllocateWithScope,
  kCreateStream,
  kFreeStream,
  kSetStream,
  // Between a server and its session's process alone: a file that was uploaded, beside it its descriptor.
  kUploaded = 1000
};

inline constexpr int32_t kSessionMagic = 0xFF271, kTrackerMagic = 0x2F271;
inline constexpr std::string_view kVersion = "0.8.0";
inline constexpr uint64_t kMaxFrame = uint64_t{64} << 20;
inline constexpr uint64_t kMaxTransfer = uint64_t{1} << 30;  // one file, all files that a session sends
inline constexpr uint64_t kFrameHead = sizeof(uint64_t) + sizeof(int32_t);
// A function may be a callback, which lives on the caller's side. Its number has this bit, for the classic numbers of
// arguments belong to whoever is called, those of results to whoever answers.
inline constexpr uint64_t kOfOtherSide = uint64_t{1} << 63;

// A tensor of the side that is called; `data` is a number of its table.
struct WireTensor {
  uint64_t data = 0;
  DLDevice device{kDLCPU, 0};
  DLDataType dtype{kDLFloat, 32, 1};
  std::vector<int64_t> shape;
  uint64_t byte_offset = 0;
};
// Bytes of all elements. Error: ProtocolError (a negative size, overflow).
Result<uint64_t> byte_size(const WireTensor& tensor);

// A device's kind as a number: sessions, and hostile peers, have kinds that the enumeration does not name, and reading
// one as the enumeration would be undefined.
inline int32_t device_kind(const DLDevice& device) {
  int32_t kind = 0;
  std::memcpy(&kind, &device.device_type, sizeof kind);
  return kind;
}
// The device whose kind is `by` further; beyond the largest number it goes on from the least.
inline DLDevice moved_device(DLDevice device, int32_t by) {
  const uint32_t kind = static_cast<uint32_t>(device_kind(device)) + static_cast<uint32_t>(by);
  std::memcpy(&device.device_type, &kind, sizeof kind);
  return device;
}

// One value. `text` points into the frame it was read from, or into what the caller keeps.
struct WireValue {
  int32_t kind = TW_NULL;
  int64_t integer = 0;
  double number = 0;
  uint64_t handle = 0;
  DLDevice device{};
  DLDataType dtype{};
  std::string_view text;
  WireTensor tensor;
  std::vector<WireValue> items;

  static WireValue of(int64_t i);
  static WireValue of_handle(uint64_t handle, int32_t kind = TW_HANDLE);
  static WireValue of_text(std::string_view text, int32_t kind = TW_STR);
  static WireValue of_device(DLDevice device);
  static WireValue of_tensor(WireTensor tensor);
};

void write_tensor(ByteWriter& out, const WireTensor& tensor);
// Errors: ProtocolError.
Result<WireTensor> read_tensor(ByteReader& in);
// `without_tail`: the bytes of the last value are left out, for whoever sends them from where they lie.
void write_values(ByteWriter& out, std::span<const WireValue> values, bool without_tail = false);
// Reads a whole sequence; what follows it is an error. Errors: ProtocolError.
Result<std::vector<WireValue>> read_values(ByteReader& in);

// Length, code and body.
std::string frame(Code code, std::string_view body);
// Length and code of a frame whose body comes later.
std::string frame_head(Code code, uint64_t body_bytes);
std::string frame(Code code, std::span<const WireValue> values);

// The error as the text of kException, and back. A text that is no error of ours becomes RemoteError.
std::string error_text(const Diagnostic& error);
Diagnostic error_from(std::string_view text);

}  // namespace tilewright::rpc
