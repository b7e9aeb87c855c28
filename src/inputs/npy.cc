// SPDX-License-Identifier: Apache-2.0
#include "inputs/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "archive/zip.h"
#include "base/checked.h"
#include "base/format.h"

namespace tilewright::inputs {
namespace {

constexpr char kMagic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

Diagnostic damaged(std::string what) {
  return Diagnostic(ErrorCode::kMalformedModel, std::move(what), {},
                    "write the file again with numpy.save or numpy.savez");
}

// Reads the header's Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}
  struct Header {
    std::string descr;
    bool fortran_order = false;
    std::vector<int64_t> shape;
  };
  Result<Header> parse() {
    Header h;
    bool seen[3] = {};
    if (!take('{')) return bad();
    while (!take('}')) {
      std::string key;
      if (!string(&key) || !take(':')) return bad();
      if (key == "descr") {
        if (peek() == '[')
          return Diagnostic(ErrorCode::kUnsupportedModel, "the array has named fields, which no tensor has");
        if (!string(&h.descr)) return bad();
        seen[0] = true;
      } else if (key == "fortran_order") {
        if (word("True"))
          h.fortran_order = true;
        else if (!word("False"))
          return bad();
        seen[1] = true;
      } else if (key == "shape") {
        if (!take('(')) return bad();
        while (!take(')')) {
          int64_t d = 0;
          if (h.shape.size() >= 32 || !number(&d)) return bad();
          h.shape.push_back(d);
          take(',');
        }
        seen[2] = true;
      } else {
        return bad();
      }
      take(',');
    }
    if (!seen[0] || !seen[1] || !seen[2]) return bad();
    return h;
  }

 private:
  static Diagnostic bad() { return damaged("the header of the .npy file is damaged"); }
  void skip() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  char peek() {
    skip();
    return text_.empty() ? '\0' : text_[0];
  }
  bool take(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    skip();
    if (!text_.starts_with(w)) return false;
    text_.remove_prefix(w.size());
    return true;
  }
  bool string(std::string* out) {
    char quote = peek();
    if (quote != '\'' && quote != '"') return false;
    size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) return false;
    *out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool number(int64_t* out) {
    skip();
    auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), *out);
    if (error != std::errc()) return false;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return true;
  }
  std::string_view text_;
};

Result<DataType> dtype_of(std::string_view descr) {
  auto unsupported = [&] {
    return Diagnostic(ErrorCode::kUnsupportedModel, format("arrays of numpy type '{}' cannot be read", descr), {},
                      "convert the array with astype, for instance to float32");
  };
  if (descr.size() < 3) return unsupported();
  int bytes = 0;
  auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), bytes);
  if (error != std::errc() || end != descr.data() + descr.size()) return unsupported();
  switch (descr[1]) {
    case 'b':
      return bytes == 1 ? Result<DataType>(kBool) : unsupported();
    case 'i':
    case 'u':
      if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return unsupported();
      return DataType{descr[1] == 'i' ? TypeCode::kInt : TypeCode::kUInt, static_cast<uint8_t>(bytes * 8), 1};
    case 'f':
      if (bytes != 2 && bytes != 4 && bytes != 8) return unsupported();
      return DataType{TypeCode::kFloat, static_cast<uint8_t>(bytes * 8), 1};
    case 'c':
      if (bytes != 8 && bytes != 16) return unsupported();
      return DataType{TypeCode::kComplex, static_cast<uint8_t>(bytes * 8), 1};
    default:
      return unsupported();
  }
}

std::string descr_of(DataType t) {
  const char order = t.bytes() == 1 ? '|' : '<';
  char kind = 'u';
  switch (t.code) {
    case TypeCode::kInt:
      kind = 'i';
      break;
    case TypeCode::kFloat:
      kind = 'f';
      break;
    case TypeCode::kBool:
      kind = 'b';
      break;
    case TypeCode::kComplex:
      kind = 'c';
      break;
    case TypeCode::kUInt:
    case TypeCode::kBFloat:
    case TypeCode::kFloat8E4M3FN:
    case TypeCode::kFloat8E4M3FNUZ:
    case TypeCode::kFloat8E5M2:
    case TypeCode::kFloat8E5M2FNUZ:
    case TypeCode::kFloat8E8M0:
    case TypeCode::kFloat4E2M1:
    case TypeCode::kString:
    case TypeCode::kHandle:
      break;
  }
  return format("{}{}{}", order, kind, t.bytes());
}

// Converts column-major to row-major order.
Tensor from_fortran(const Tensor& t) {
  Tensor out(t.dtype(), t.shape());
  size_t rank = t.shape().size(), item = t.dtype().bytes();
  std::vector<int64_t> index(rank, 0), strides;
  int64_t stride = 1;
  for (int64_t extent : t.shape()) strides.push_back(stride), stride *= extent;
  for (int64_t i = 0; i < t.size(); ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < rank; ++d) from += index[d] * strides[d];
    std::memcpy(out.mutable_raw() + static_cast<size_t>(i) * item, t.raw() + static_cast<size_t>(from) * item, item);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < t.shape()[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

Result<Tensor> read_npy(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  auto magic = in.take(sizeof kMagic);
  if (magic.size() != sizeof kMagic || std::memcmp(magic.data(), kMagic, sizeof kMagic) != 0)
    return damaged("this is not a .npy file");
  auto major = in.read<uint8_t>();
  in.read<uint8_t>();
  if (major < 1 || major > 3) return damaged(format("the .npy file has version {}, 1 to 3 can be read", major));
  uint64_t length = major == 1 ? in.read<uint16_t>() : in.read<uint32_t>();
  auto text = in.take(length);
  if (!in.ok()) return damaged("the .npy file ends within its header");
  auto header = TW_TRY(HeaderParser({reinterpret_cast<const char*>(text.data()), text.size()}).parse());
  DataType dtype = TW_TRY(dtype_of(header.descr));
  auto count = checked_element_count(header.shape);
  if (!count.ok()) return damaged(count.error().message);
  uint64_t size = dtype.bytes_for(static_cast<uint64_t>(*count));
  if (size > in.remaining())
    return damaged(format("the .npy file should hold {} bytes of data and holds {}", size, in.remaining()));
  Tensor t(dtype, header.shape);
  auto data = in.take(size);
  if (size) std::memcpy(t.mutable_raw(), data.data(), size);
  if (header.descr[0] == '>' && dtype.bytes() > 1) {
    uint64_t item = dtype.code == TypeCode::kComplex ? dtype.bytes() / 2 : dtype.bytes();
    for (uint64_t i = 0; i < size; i += item) std::reverse(t.mutable_raw() + i, t.mutable_raw() + i + item);
  }
  return header.fortran_order && t.rank() > 1 ? from_fortran(t) : t;
}

Result<std::string> write_npy(const Tensor& t) {
  if (t.dtype().is_string() || t.dtype().bits % 8 != 0)
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      format("a {} tensor cannot be written to a .npy file", t.dtype().str()));
  std::string shape;
  for (int64_t d : t.shape()) shape += format("{}, ", d);
  if (t.rank() > 1)
    shape.resize(shape.size() - 2);
  else if (t.rank() == 1)
    shape.resize(shape.size() - 1);
  std::string header = format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr_of(t.dtype()), shape);
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');  // so that the data is aligned
  header += '\n';
  ByteWriter out;
  out.write_bytes(kMagic, sizeof kMagic);
  out.write<uint8_t>(1);
  out.write<uint8_t>(0);
  out.write<uint16_t>(static_cast<uint16_t>(header.size()));
  out.write_bytes(header.data(), header.size());
  out.write_bytes(t.raw(), t.bytes());
  return out.take();
}

Result<NamedTensors> read_npz(std::span<const std::byte> bytes) {
  auto entries = TW_TRY(archive::read_zip(bytes));
  NamedTensors out;
  for (auto& entry : entries) {
    auto tensor = read_npy(std::as_bytes(std::span(entry.data.data(), entry.data.size())));
    if (!tensor.ok()) return std::move(tensor).error().at(entry.name);
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    out.emplace_back(std::move(name), std::move(*tensor));
    entry.data = {};
  }
  return out;
}

Result<std::string> write_npz(const NamedTensors& tensors) {
  std::vector<archive::ZipEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    std::string bytes = TW_TRY(write_npy(tensor));
    entries.push_back({name + ".npy", std::move(bytes)});
  }
  return archive::write_zip(entries);
}

}  // namespace tilewright::inputs
