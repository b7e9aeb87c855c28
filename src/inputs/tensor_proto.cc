// SPDX-License-Identifier: Apache-2.0
#include "inputs/tensor_proto.h"

#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/format.h"

namespace tilewright::inputs {
namespace {

Diagnostic damaged_tensor(std::string what) {
  return Diagnostic(ErrorCode::kMalformedModel, "the tensor file is damaged: " + std::move(what));
}

struct ElementType {
  int32_t number = 0;  // TensorProto.DataType
  DataType dtype;
};
constexpr ElementType kElementTypes[] = {
    {1, kFloat32},
    {2, kUInt8},
    {3, kInt8},
    {4, kUInt16},
    {5, kInt16},
    {6, kInt32},
    {7, kInt64},
    {8, kString},
    {9, kBool},
    {10, kFloat16},
    {11, kFloat64},
    {12, kUInt32},
    {13, kUInt64},
    {14, {TypeCode::kComplex, 64, 1}},
    {15, {TypeCode::kComplex, 128, 1}},
    {16, kBFloat16},
    {17, {TypeCode::kFloat8E4M3FN, 8, 1}},
    {18, {TypeCode::kFloat8E4M3FNUZ, 8, 1}},
    {19, {TypeCode::kFloat8E5M2, 8, 1}},
    {20, {TypeCode::kFloat8E5M2FNUZ, 8, 1}},
    {21, {TypeCode::kUInt, 4, 1}},
    {22, {TypeCode::kInt, 4, 1}},
    {23, {TypeCode::kFloat4E2M1, 4, 1}},
    {24, {TypeCode::kFloat8E8M0, 8, 1}},
    {25, {TypeCode::kUInt, 2, 1}},
    {26, {TypeCode::kInt, 2, 1}},
};

// Protobuf's wire format, on top of a checked reader.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : in_(bytes) {}
  bool ok() const { return in_.ok(); }
  bool more() const { return in_.ok() && in_.remaining() > 0; }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      auto b = in_.read<uint8_t>();
      value |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (!(b & 0x80)) return value;
    }
    in_.fail();
    return 0;
  }
  template <class T>
  T fixed() {
    return in_.read<T>();
  }
  std::span<const std::byte> chunk() { return in_.take(varint()); }
  void skip(unsigned kind) {
    if (kind == 0)
      varint();
    else if (kind == 1)
      in_.take(8);
    else if (kind == 2)
      chunk();
    else if (kind == 5)
      in_.take(4);
    else
      in_.fail();
  }

 private:
  ByteReader in_;
};

// A repeated field, packed or not. `read` reads one value.
template <class T, class F>
void repeated(WireReader& in, unsigned kind, std::vector<T>* to, F read) {
  if (kind == 2) {
    WireReader packed(in.chunk());
    while (packed.more()) to->push_back(static_cast<T>(read(packed)));
    if (!packed.ok()) in.skip(7);
  } else {
    to->push_back(static_cast<T>(read(in)));
  }
}

struct Fields {
  std::vector<int64_t> dims;
  int32_t type = 0;
  std::string name;
  std::optional<std::span<const std::byte>> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> integers;  // int32_data, int64_data and uint64_data, as bits
  std::vector<std::string> strings;
  bool external = false;
};

Result<Fields> read_fields(std::span<const std::byte> bytes) {
  WireReader in(bytes);
  Fields f;
  auto text = [](std::span<const std::byte> s) {
    return std::string(reinterpret_cast<const char*>(s.data()), s.size());
  };
  auto number = [](WireReader& w) { return w.varint(); };
  while (in.more()) {
    uint64_t key = in.varint();
    auto kind = static_cast<unsigned>(key & 7);
    bool is_varint = kind == 0 || kind == 2;
    switch (key >> 3) {
      case 1:
        is_varint ? repeated(in, kind, &f.dims, number) : in.skip(7);
        break;
      case 2:
        kind == 0 ? void(f.type = static_cast<int32_t>(in.varint())) : in.skip(7);
        break;
      case 4:
        kind == 5 || kind == 2 ? repeated(in, kind, &f.floats, [](WireReader& w) { return w.fixed<float>(); })
                               : in.skip(7);
        break;
      case 5:
      case 7:
      case 11:
        is_varint ? repeated(in, kind, &f.integers, number) : in.skip(7);
        break;
      case 6:
        kind == 2 ? f.strings.push_back(text(in.chunk())) : in.skip(7);
        break;
      case 8:
        kind == 2 ? void(f.name = text(in.chunk())) : in.skip(7);
        break;
      case 9:
        kind == 2 ? void(f.raw = in.chunk()) : in.skip(7);
        break;
      case 10:
        kind == 1 || kind == 2 ? repeated(in, kind, &f.doubles, [](WireReader& w) { return w.fixed<double>(); })
                               : in.skip(7);
        break;
      case 14:
        kind == 0 ? void(f.external = in.varint() == 1) : in.skip(7);
        break;
      default:
        in.skip(kind);
    }
  }
  if (!in.ok()) return damaged_tensor("a field ends early or has a wrong kind");
  return f;
}

}  // namespace

Result<NamedTensorProto> read_tensor_proto(std::span<const std::byte> bytes) {
  Fields f = TW_TRY(read_fields(bytes));
  if (f.external) return Diagnostic(ErrorCode::kUnsupportedModel, "the tensor's data lies in another file");
  const ElementType* type = nullptr;
  for (const auto& t : kElementTypes)
    if (t.number == f.type) type = &t;
  if (!type) return damaged_tensor(format("element type {} is unknown", f.type));
  auto count = checked_element_count(f.dims);
  if (f.dims.size() > 32 || !count.ok()) return damaged_tensor("its shape is impossible");
  auto n = static_cast<uint64_t>(*count);
  DataType dtype = type->dtype;
  auto expect = [&](uint64_t given, uint64_t wanted, const char* what) -> Status {
    if (given == wanted) return Ok{};
    return damaged_tensor(format("{} {} are given for {}", given, what, wanted));
  };
  if (dtype.is_string()) {
    TW_TRY_STATUS(expect(f.strings.size(), n, "strings"));
    return NamedTensorProto{f.name, Tensor::strings(f.dims, std::move(f.strings))};
  }
  // Checked before allocating that size.
  uint64_t size = dtype.bytes_for(n), parts = dtype.code == TypeCode::kComplex ? 2 : 1;
  if (f.raw) TW_TRY_STATUS(expect(f.raw->size(), size, "bytes"));
  bool packed = dtype.bits < 8;
  if (!f.raw && !packed)
    TW_TRY_STATUS(expect(f.floats.size() + f.doubles.size() + f.integers.size(), n * parts, "values"));
  if (!f.raw && packed && f.integers.size() != n) TW_TRY_STATUS(expect(f.integers.size(), size, "packed values"));
  Tensor t = Tensor::zeros(dtype, f.dims);
  if (f.raw) {
    if (size) std::memcpy(t.mutable_raw(), f.raw->data(), size);
  } else if (packed) {
    for (size_t i = 0; i < size && i < f.integers.size(); ++i)
      t.mutable_raw()[i] = static_cast<std::byte>(f.integers[i]);
  } else if (!f.floats.empty()) {
    if (f.floats.size() * 4 != size || (dtype != kFloat32 && dtype.code != TypeCode::kComplex))
      return damaged_tensor("its values have another type than it says");
    std::memcpy(t.mutable_raw(), f.floats.data(), size);
  } else if (!f.doubles.empty()) {
    if (f.doubles.size() * 8 != size || !(dtype == kFloat64 || dtype.code == TypeCode::kComplex))
      return damaged_tensor("its values have another type than it says");
    std::memcpy(t.mutable_raw(), f.doubles.data(), size);
  } else {  // small floats are stored as bits in int32_data
    uint64_t item = dtype.bytes();
    if (item > 8 || dtype == kFloat32 || dtype == kFloat64) {
      if (n) return damaged_tensor("its values have another type than it says");
    }
    for (size_t i = 0; i < f.integers.size() && i < n; ++i)
      std::memcpy(t.mutable_raw() + i * item, &f.integers[i], item);
  }
  return NamedTensorProto{f.name, std::move(t)};
}

Result<std::string> write_tensor_proto(const std::string& name, const Tensor& tensor) {
  std::string out;
  auto varint = [&](uint64_t v) {
    for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
    out += static_cast<char>(v);
  };
  auto chunk = [&](int field, std::string_view data) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(data.size());
    out += data;
  };
  for (int64_t d : tensor.shape()) {
    varint(1 << 3);
    varint(static_cast<uint64_t>(d));
  }
  for (const auto& t : kElementTypes) {
    if (!(t.dtype == tensor.dtype())) continue;
    varint(2 << 3);
    varint(static_cast<uint64_t>(t.number));
    if (tensor.dtype().is_string())
      for (const auto& s : tensor.string_values()) chunk(6, s);
    chunk(8, name);
    if (!tensor.dtype().is_string()) chunk(9, {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()});
    return out;
  }
  return Diagnostic(ErrorCode::kUnsupportedModel, format("ONNX has no element type {}", tensor.dtype().str()));
}

}  // namespace tilewright::inputs
