// SPDX-License-Identifier: Apache-2.0
// TensorProto and SparseTensorProto: all element types, in raw, typed and external storage.
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "frontend/onnx/file_map.h"
#include "frontend/onnx/wire.h"

namespace tilewright::onnx {

std::optional<DataType> element_type(int64_t onnx_type) {
  static constexpr std::optional<DataType> kTypes[] = {std::nullopt,
                                                       kFloat32,
                                                       kUInt8,
                                                       kInt8,
                                                       kUInt16,
                                                       kInt16,
                                                       kInt32,
                                                       kInt64,
                                                       kString,
                                                       kBool,
                                                       kFloat16,
                                                       kFloat64,
                                                       kUInt32,
                                                       kUInt64,
                                                       DataType{TypeCode::kComplex, 64, 1},
                                                       DataType{TypeCode::kComplex, 128, 1},
                                                       kBFloat16,
                                                       DataType{TypeCode::kFloat8E4M3FN, 8, 1},
                                                       DataType{TypeCode::kFloat8E4M3FNUZ, 8, 1},
                                                       DataType{TypeCode::kFloat8E5M2, 8, 1},
                                                       DataType{TypeCode::kFloat8E5M2FNUZ, 8, 1},
                                                       DataType{TypeCode::kUInt, 4, 1},
                                                       DataType{TypeCode::kInt, 4, 1},
                                                       DataType{TypeCode::kFloat4E2M1, 4, 1},
                                                       DataType{TypeCode::kFloat8E8M0, 8, 1},
                                                       DataType{TypeCode::kUInt, 2, 1},
                                                       DataType{TypeCode::kInt, 2, 1}};
  if (onnx_type < 0 || onnx_type >= static_cast<int64_t>(std::size(kTypes))) return std::nullopt;
  return kTypes[onnx_type];
}

namespace {

using protozero::pbf_reader;

struct RawTensor {
  std::string name;
  std::vector<int64_t> dims;
  int64_t type = 0;
  bool external = false;
  std::optional<protozero::data_view> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints;  // int32_data, int64_data, uint64_data
  std::vector<std::string> strings;
  std::map<std::string, std::string> external_data;
  int typed_fields = 0;  // one bit per typed field present
};

void read_external_entry(pbf_reader m, ReadState& state, RawTensor* out) {
  std::string key, value;
  while (m.next()) switch (m.tag_and_type()) {
      case bytes_field(1):
        key = read_text(m, state);
        break;
      case bytes_field(2):
        value = read_text(m, state);
        break;
      default:
        m.skip();
    }
  if (key != "location" && key != "offset" && key != "length" && key != "checksum" && key != "basepath")
    state.fail(format("external_data has the unknown key '{}'", key));
  if (!out->external_data.emplace(key, value).second) state.fail(format("external_data has the key '{}' twice", key));
}

RawTensor read_fields(pbf_reader m, ReadState& state) {
  RawTensor t;
  while (m.next()) {
    switch (m.tag_and_type()) {
      case varint_field(1):
        t.dims.push_back(m.get_int64());
        break;
      case bytes_field(1):
        append_all(&t.dims, m.get_packed_int64());
        break;
      case varint_field(2):
        t.type = m.get_int32();
        break;
      case fixed32_field(4):
        t.floats.push_back(m.get_float());
        t.typed_fields |= 1;
        break;
      case bytes_field(4):
        append_all(&t.floats, m.get_packed_float());
        t.typed_fields |= 1;
        break;
      case varint_field(5):
        t.ints.push_back(m.get_int32());
        t.typed_fields |= 2;
        break;
      case bytes_field(5):
        append_all(&t.ints, m.get_packed_int32());
        t.typed_fields |= 2;
        break;
      case bytes_field(6): {
        auto view = m.get_view();
        t.strings.emplace_back(view.data(), view.size());
        t.typed_fields |= 4;
        break;
      }
      case varint_field(7):
        t.ints.push_back(m.get_int64());
        t.typed_fields |= 8;
        break;
      case bytes_field(7):
        append_all(&t.ints, m.get_packed_int64());
        t.typed_fields |= 8;
        break;
      case bytes_field(8):
        t.name = read_text(m, state);
        state.path.back() += format(" '{}'", t.name);
        break;
      case bytes_field(9):
        t.raw = m.get_view();
        break;
      case fixed64_field(10):
        t.doubles.push_back(m.get_double());
        t.typed_fields |= 16;
        break;
      case bytes_field(10):
        append_all(&t.doubles, m.get_packed_double());
        t.typed_fields |= 16;
        break;
      case varint_field(11):
        t.ints.push_back(static_cast<int64_t>(m.get_uint64()));
        t.typed_fields |= 32;
        break;
      case bytes_field(11):
        append_all(&t.ints, m.get_packed_uint64());
        t.typed_fields |= 32;
        break;
      case bytes_field(13):
        read_external_entry(m.get_message(), state, &t);
        break;
      case varint_field(14):
        t.external = m.get_int32() == 1;
        break;
      case bytes_field(3):
        state.fail("tensors stored in segments are not supported by ONNX runtimes");
      default:
        m.skip();
    }
    if (static_cast<int64_t>(t.dims.size()) > kMaxRank)
      state.fail(format("a tensor has more than {} dimensions", kMaxRank), ErrorCode::kLimitExceeded);
  }
  return t;
}

uint64_t external_number(const RawTensor& t, const char* key, uint64_t fallback, ReadState& state) {
  auto it = t.external_data.find(key);
  if (it == t.external_data.end()) return fallback;
  uint64_t value = 0;
  const char *begin = it->second.data(), *end = begin + it->second.size();
  auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || rest != end || begin == end)
    state.fail(format("external_data {} '{}' is not a non-negative number", key, it->second));
  return value;
}

// The bytes of a tensor stored outside the file.
SharedBytes external_bytes(const RawTensor& t, uint64_t expected, ReadState& state) {
  if (!state.external_allowed)
    state.fail("the tensor's data is in another file, but this model has no folder to find it in");
  auto location = t.external_data.find("location");
  if (location == t.external_data.end()) state.fail("external_data names no location");
  auto [it, fresh] = state.external.try_emplace(location->second);
  if (fresh) {
    auto mapped = map_file_below(state.folder, location->second, state.options.allow_hard_links);
    if (!mapped) throw Damage{std::move(mapped).error().at(state.place())};
    it->second = std::move(mapped).value();
  }
  uint64_t size = it->second.bytes.size();
  uint64_t offset = external_number(t, "offset", 0, state);
  if (offset > size)
    state.fail(
        format("external data at offset {} lies beyond the end of '{}' ({} bytes)", offset, location->second, size));
  uint64_t length = external_number(t, "length", std::min(expected, size - offset), state);
  if (length > size - offset)
    state.fail(format("external data of {} bytes at {} lies beyond the end of '{}' ({} bytes)", length, offset,
                      location->second, size));
  return {it->second.bytes.subspan(offset, length), it->second.owner, it->second.mapped};
}

Tensor from_bytes(DataType dtype, const std::vector<int64_t>& dims, const SharedBytes& data, uint64_t expected,
                  ReadState& state) {
  if (data.bytes.size() != expected)
    state.fail(format("the tensor holds {} bytes where its shape {} and type {} need {}", data.bytes.size(),
                      shape_str(dims), dtype.str(), expected));
  uint64_t unit = dtype.code == TypeCode::kComplex ? dtype.bits / 16 : std::max<uint64_t>(1, dtype.bits / 8);
  bool aligned = reinterpret_cast<uintptr_t>(data.bytes.data()) % unit == 0;
  bool clean = true;
  if (dtype.is_bool())
    for (std::byte b : data.bytes) clean &= std::to_integer<int>(b) <= 1;
  // Not for empty tensors: a view without elements would be an undefined tensor.
  if (aligned && clean && data.owner && expected > 0) return Tensor::view(dtype, dims, data.bytes.data(), data.owner);
  Tensor t(dtype, dims);
  if (expected > 0) std::memcpy(t.mutable_raw(), data.bytes.data(), expected);
  drop_pages(data);  // copied: without this a large model would occupy its size twice
  if (!clean)
    for (auto& b : t.as_mutable<uint8_t>()) b = b != 0;
  return t;
}

// float16 and narrower floats are stored as bits in int32_data; sub-byte types as packed bytes.
Tensor from_typed(DataType dtype, const std::vector<int64_t>& dims, int64_t count, const RawTensor& t,
                  ReadState& state) {
  auto need = [&](size_t have, int64_t want) {
    if (static_cast<int64_t>(have) != want)
      state.fail(format("the tensor holds {} values where its shape {} and type {} need {}", have, shape_str(dims),
                        dtype.str(), want));
  };
  auto only = [&](int field) {
    if (t.typed_fields & ~field)
      state.fail(format("the values of a {} tensor are stored in a field for another type", dtype.str()));
  };
  if (dtype.is_string()) {
    only(4);
    need(t.strings.size(), count);
    return Tensor::strings(dims, t.strings);
  }
  if (dtype.code == TypeCode::kComplex) {
    bool wide = dtype.bits == 128;
    only(wide ? 16 : 1);
    need(wide ? t.doubles.size() : t.floats.size(), 2 * count);
    Tensor out(dtype, dims);
    if (count > 0)
      std::memcpy(out.mutable_raw(), wide ? static_cast<const void*>(t.doubles.data()) : t.floats.data(), out.bytes());
    return out;
  }
  if (dtype == kFloat32) {
    only(1);
    need(t.floats.size(), count);
    return Tensor::from<float>(dtype, dims, t.floats);
  }
  if (dtype == kFloat64) {
    only(16);
    need(t.doubles.size(), count);
    return Tensor::from<double>(dtype, dims, t.doubles);
  }
  if (dtype == kInt64)
    only(8);
  else if (dtype == kUInt64 || dtype == kUInt32)
    only(32);
  else
    only(2);
  if (dtype.bits < 8) {
    // Each stored integer is one byte that packs two (or four) elements.
    need(t.ints.size(), static_cast<int64_t>(dtype.bytes_for(static_cast<uint64_t>(count))));
    Tensor out(dtype, dims);
    for (size_t i = 0; i < t.ints.size(); ++i) out.mutable_raw()[i] = static_cast<std::byte>(t.ints[i]);
    return out;
  }
  need(t.ints.size(), count);
  Tensor out(dtype, dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = t.ints[static_cast<size_t>(i)];
    if (!dtype.is_float()) {
      out.set_int(i, value);
    } else if (dtype.bits == 16) {
      out.as_mutable<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(value);
    } else {
      out.as_mutable<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(value);
    }
  }
  return out;
}

int64_t element_count(const std::vector<int64_t>& dims, DataType dtype, ReadState& state) {
  auto count = checked_element_count(dims);
  if (!count) throw Damage{std::move(count).error().at(state.place())};
  int64_t bits = 0;
  if (!checked_mul(count.value(), std::max<int64_t>(dtype.bits, 8), &bits))
    state.fail("a tensor is too large", ErrorCode::kLimitExceeded);
  return count.value();
}

}  // namespace

NamedTensor parse_tensor(pbf_reader message, ReadState& state) {
  RawTensor t = read_fields(message, state);
  auto dtype = element_type(t.type);
  if (!dtype) state.fail(format("{} is not an element type", t.type));
  int64_t count = element_count(t.dims, *dtype, state);
  uint64_t expected = dtype->bytes_for(static_cast<uint64_t>(count));
  if (t.external) {
    if (t.raw || t.typed_fields) state.fail("a tensor has both external data and data of its own");
    if (dtype->is_string()) state.fail("strings cannot be external data");
    return {t.name, from_bytes(*dtype, t.dims, external_bytes(t, expected, state), expected, state)};
  }
  if (t.raw) {
    if (t.typed_fields) state.fail("a tensor has both raw_data and typed data");
    if (dtype->is_string()) state.fail("strings cannot be stored in raw_data");
    SharedBytes data{
        {reinterpret_cast<const std::byte*>(t.raw->data()), t.raw->size()}, state.source.owner, state.source.mapped};
    return {t.name, from_bytes(*dtype, t.dims, data, expected, state)};
  }
  return {t.name, from_typed(*dtype, t.dims, count, t, state)};
}

NamedTensor parse_sparse_tensor(pbf_reader m, ReadState& state) {
  std::optional<NamedTensor> values, indices;
  std::vector<int64_t> dims;
  while (m.next()) switch (m.tag_and_type()) {
      case bytes_field(1): {
        Place place(state, "values");
        values = parse_tensor(m.get_message(), state);
        break;
      }
      case bytes_field(2): {
        Place place(state, "indices");
        indices = parse_tensor(m.get_message(), state);
        break;
      }
      case varint_field(3):
        dims.push_back(m.get_int64());
        break;
      case bytes_field(3):
        append_all(&dims, m.get_packed_int64());
        break;
      default:
        m.skip();
    }
  if (!values) state.fail("a sparse tensor has no values");
  if (static_cast<int64_t>(dims.size()) > kMaxRank)
    state.fail("a sparse tensor has too many dimensions", ErrorCode::kLimitExceeded);
  DataType dtype = values->data.dtype();
  int64_t count = element_count(dims, dtype, state);
  if (dtype.is_string() || dtype.code == TypeCode::kComplex ||
      count > kMaxSparseBytes / static_cast<int64_t>(dtype.bytes()))
    state.fail(format("a sparse {} tensor of shape {} is too large to expand", dtype.str(), shape_str(dims)),
               ErrorCode::kLimitExceeded);
  int64_t stored = values->data.size();
  if (values->data.rank() != 1 || (!indices && stored > 0))
    state.fail("a sparse tensor has malformed values or no indices");
  Tensor dense = Tensor::zeros(dtype, dims);
  for (int64_t i = 0; i < stored; ++i) {
    const Tensor& at = indices->data;
    bool flat = at.rank() == 1, coordinates = at.rank() == 2 && at.shape()[1] == static_cast<int64_t>(dims.size());
    if (at.dtype() != kInt64 || at.shape()[0] != stored || !(flat || coordinates))
      state.fail("a sparse tensor has malformed indices");
    int64_t linear = flat ? at.at_int(i) : 0;
    for (size_t d = 0; coordinates && d < dims.size(); ++d) {
      int64_t index = at.at_int(i * static_cast<int64_t>(dims.size()) + static_cast<int64_t>(d));
      if (index < 0 || index >= dims[d]) state.fail("a sparse tensor's index lies outside its shape");
      linear = linear * dims[d] + index;
    }
    if (linear < 0 || linear >= count) state.fail("a sparse tensor's index lies outside its shape");
    if (dtype.is_float())
      dense.set_double(linear, values->data.at_double(i));
    else
      dense.set_int(linear, values->data.at_int(i));
  }
  return {values->name, dense};
}

Result<NamedTensor> read_tensor(const SharedBytes& bytes) {
  ReadState state;
  state.source = bytes;
  state.path = {"tensor"};
  return guarded<NamedTensor>(state, [&] {
    return parse_tensor(pbf_reader(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size()), state);
  });
}

namespace {

std::vector<Tensor> parse_sequence(pbf_reader m, ReadState& state) {
  std::vector<Tensor> out;
  int64_t kind = 1;
  while (m.next()) switch (m.tag_and_type()) {
      case varint_field(2):
        kind = m.get_int32();
        break;
      case bytes_field(3): {
        Place place(state, format("element {}", out.size()));
        out.push_back(parse_tensor(m.get_message(), state).data);
        break;
      }
      default:
        m.skip();
    }
  if (kind != 1 && kind != 0) state.fail("only sequences of tensors are supported");
  return out;
}

template <class Read>
Result<std::vector<Tensor>> read_guarded(const SharedBytes& bytes, const char* what, Read&& read) {
  ReadState state;
  state.source = bytes;
  state.path = {what};
  return guarded<std::vector<Tensor>>(state, [&] {
    return read(pbf_reader(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size()), state);
  });
}

}  // namespace

Result<std::vector<Tensor>> read_sequence(const SharedBytes& bytes) {
  return read_guarded(bytes, "sequence", parse_sequence);
}

Result<std::vector<Tensor>> read_optional_tensor(const SharedBytes& bytes) {
  return read_guarded(bytes, "optional", [](pbf_reader m, ReadState& state) {
    std::vector<Tensor> out;
    while (m.next()) {
      if (m.tag_and_type() == bytes_field(3))
        out = {parse_tensor(m.get_message(), state).data};
      else
        m.skip();
    }
    return out;
  });
}

Result<std::vector<Tensor>> read_optional_sequence(const SharedBytes& bytes) {
  return read_guarded(bytes, "optional", [](pbf_reader m, ReadState& state) {
    std::vector<Tensor> out;
    while (m.next()) {
      if (m.tag_and_type() == bytes_field(5))
        out = parse_sequence(m.get_message(), state);
      else
        m.skip();
    }
    return out;
  });
}

}  // namespace tilewright::onnx
