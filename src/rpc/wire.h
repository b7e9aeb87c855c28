// SPDX-License-Identifier: Apache-2.0
// The wire format of a session: frames of u64 length, i32 code and body; sequences of values preceded by their types.
// The layout is the classic stack's protocol "0.8.0"; lists (TW_ARRAY) are our addition.
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
  // Between a server and its session's process only: an uploaded file, whose descriptor is attached.
  kUploaded = 1000
};

inline constexpr int32_t kSessionMagic = 0xFF271, kTrackerMagic = 0x2F271;
inline constexpr std::string_view kVersion = "0.8.0";
inline constexpr uint64_t kMaxFrame = uint64_t{64} << 20;
inline constexpr uint64_t kMaxTransfer = uint64_t{1} << 30;  // of one file, and of all files that a session sends
inline constexpr uint64_t kFrameHead = sizeof(uint64_t) + sizeof(int32_t);
// Set in handles of callbacks, which live on the caller's side: classic handles in arguments belong to the callee,
// those in results to the answering side.
inline constexpr uint64_t kOfOtherSide = uint64_t{1} << 63;

// A tensor of the called side; `data` is a handle in its table.
struct WireTensor {
  uint64_t data = 0;
  DLDevice device{kDLCPU, 0};
  DLDataType dtype{kDLFloat, 32, 1};
  std::vector<int64_t> shape;
  uint64_t byte_offset = 0;
};
// The size of all elements. Error: ProtocolError (a negative size, overflow).
Result<uint64_t> byte_size(const WireTensor& tensor);

// A device type as a number: sessions and hostile peers have types outside of the enumeration, which must not be read
// as enumerators.
inline int32_t device_kind(const DLDevice& device) {
  int32_t kind = 0;
  std::memcpy(&kind, &device.device_type, sizeof kind);
  return kind;
}
// Adds `by` to the device type, with wrap-around.
inline DLDevice moved_device(DLDevice device, int32_t by) {
  const uint32_t kind = static_cast<uint32_t>(device_kind(device)) + static_cast<uint32_t>(by);
  std::memcpy(&device.device_type, &kind, sizeof kind);
  return device;
}

// One value. `text` points into the frame it was read from, or into memory of the caller.
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
// `without_tail`: omits the bytes of the last value, which the caller sends separately.
void write_values(ByteWriter& out, std::span<const WireValue> values, bool without_tail = false);
// Reads a complete sequence; trailing data is an error. Errors: ProtocolError.
Result<std::vector<WireValue>> read_values(ByteReader& in);

// A frame: length, code, body.
std::string frame(Code code, std::string_view body);
// The header of a frame whose body follows separately.
std::string frame_head(Code code, uint64_t body_bytes);
std::string frame(Code code, std::span<const WireValue> values);

// Encodes an error as the text of kException, and decodes it. Text in another form becomes RemoteError.
std::string error_text(const Diagnostic& error);
Diagnostic error_from(std::string_view text);

}  // namespace tilewright::rpc
