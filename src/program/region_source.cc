// SPDX-License-Identifier: Apache-2.0
#include "program/region_source.h"

#include <cstring>

#include "base/checked.h"
#include "base/format.h"
#include "relay/text.h"

namespace tilewright::program {
namespace {

using runtime::vm::Region;

// Alignment of constants, so that compiled code can use them in place.
constexpr size_t kAlignment = 64;
constexpr std::string_view kSection = "#[constants]\n";

std::string padded(std::string bytes, char with) {
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment, with);
  return bytes;
}

std::string bytes_of(const Tensor& t) {
  if (!t.dtype().is_string()) return {reinterpret_cast<const char*>(t.raw()), t.bytes()};
  ByteWriter out;
  for (const std::string& text : t.string_values()) out.write_string(text);
  return out.take();
}

Diagnostic bad(const char* what) {
  return Diagnostic(ErrorCode::kBadArtifact, format("a region's source is damaged: {}", what), {},
                    "compile the model again");
}

Result<Tensor> read_constant(DataType dtype, std::vector<int64_t> shape, std::string_view bytes,
                             const std::shared_ptr<const void>& owner) {
  const int64_t count = TW_TRY(checked_element_count(shape));
  if (dtype.is_string()) {
    ByteReader in(std::as_bytes(std::span(bytes.data(), bytes.size())));
    std::vector<std::string> texts;
    for (int64_t i = 0; i < count && in.ok(); ++i) texts.push_back(in.read_string());
    if (!in.ok()) return bad("a text is cut off");
    return Tensor::strings(std::move(shape), std::move(texts));
  }
  if (dtype.bytes_for(static_cast<uint64_t>(count)) != bytes.size()) return bad("a constant has another size");
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 16 == 0)
    return Tensor::view(dtype, std::move(shape), bytes.data(), owner);
  Tensor copy(dtype, std::move(shape));
  if (!bytes.empty()) std::memcpy(copy.mutable_raw(), bytes.data(), bytes.size());
  return copy;
}

}  // namespace

// "float32 2x3 24" for each constant: dtype, shape, size in bytes.
Region RegionWriter::write(const char* format_name, const relay::Expr& function) {
  relay::TextOptions options;
  options.types = false;
  relay::ModuleText module = relay::print_module(relay::Module().with_main(function), options);
  Region region{format_name, {}, std::move(module.text), {}};
  for (const relay::Expr& p : relay::as<relay::FunctionNode>(function)->params)
    region.inputs.push_back(relay::as<relay::VarNode>(p)->name);
  region.source += kSection;
  for (const Tensor& t : module.constants) {
    const std::string type = format("{} {}", t.dtype().str(), t.rank() == 0 ? "scalar" : shape_str(t.shape()));
    const void* place = t.dtype().is_string() ? static_cast<const void*>(&t.string_values()) : t.raw();
    auto found = stored_.find({place, type});
    if (found == stored_.end()) {
      const std::string bytes = bytes_of(t);
      const std::pair<uint64_t, uint64_t> at{shared_.size(), bytes.size()};
      shared_ += bytes;
      shared_ = padded(std::move(shared_), '\0');
      found = stored_.emplace(std::pair(place, type), at).first;
      constants_.push_back(t);
    }
    region.source += format("{} {}\n", type, found->second.second);
    if (found->second.second == 0) continue;
    const uint64_t whole = (found->second.second + kAlignment - 1) / kAlignment * kAlignment;
    region.pieces.emplace_back(found->second.first, whole);
  }
  region.source.push_back('\0');
  region.source = padded(std::move(region.source), '\0');
  return region;
}

Result<relay::Module> read_region(std::string_view source, const std::shared_ptr<const void>& owner) {
  const size_t end = source.find('\0'), section = source.substr(0, end).rfind(kSection);
  if (end == std::string_view::npos || section == std::string_view::npos) return bad("it has no constants' section");
  std::vector<Tensor> constants;
  size_t data = (end + kAlignment) / kAlignment * kAlignment;
  for (size_t at = section + kSection.size(); at < end;) {
    const size_t stop = std::min(source.find('\n', at), end);
    const std::string line(source.substr(at, stop - at));
    at = stop + 1;
    const size_t first = line.find(' '), last = line.rfind(' ');
    if (first == std::string::npos || last == first) return bad("a constant's line");
    const DataType dtype = TW_TRY(parse_dtype(line.substr(0, first)));
    std::vector<int64_t> shape;
    const std::string sizes = line.substr(first + 1, last - first - 1);
    for (size_t i = 0; sizes != "scalar" && i < sizes.size();) {
      const size_t next = std::min(sizes.find('x', i), sizes.size());
      shape.push_back(std::strtoll(sizes.substr(i, next - i).c_str(), nullptr, 10));
      if (shape.back() < 0) return bad("a constant's shape");
      i = next + 1;
    }
    const uint64_t bytes = std::strtoull(line.c_str() + last + 1, nullptr, 10);
    if (data > source.size() || bytes > source.size() - data) return bad("a constant is cut off");
    constants.push_back(TW_TRY(read_constant(dtype, std::move(shape), source.substr(data, bytes), owner)));
    data += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  relay::ParseOptions parse;
  parse.origin = "region";
  return relay::parse_module(source.substr(0, section), constants, parse);
}

}  // namespace tilewright::program
