// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/program.h"

#include <algorithm>

#include "base/checked.h"
#include "base/format.h"
#include "runtime/vm/host_functions.h"

namespace tilewright::runtime::vm {
namespace {
constexpr uint64_t kMagic = 0x334d565754;  // "TWVM3"
constexpr uint64_t kMaxSource = uint64_t{1} << 40;
Diagnostic bad(const char* what) {
  return Diagnostic(ErrorCode::kBadArtifact, format("the VM program is damaged: {}", what), {},
                    "compile the model again");
}
// A length followed by as many bytes.
StoredBytes read_stored(ByteReader& in, const std::shared_ptr<const void>& owner) {
  const auto raw = in.take(in.read<uint64_t>());
  const std::string_view bytes(reinterpret_cast<const char*>(raw.data()), raw.size());
  return owner ? StoredBytes(bytes, owner) : StoredBytes(std::string(bytes));
}

}  // namespace

Status check_input(const TensorSpec& input, const Tensor& given) {
  if (input.kind == TensorSpec::Kind::kOther) return Ok{};
  const std::string where = format("input '{}'", input.name);
  if (!(given.dtype() == input.dtype))
    return Diagnostic(ErrorCode::kDtypeMismatch, format("expected {}, got {}", input.dtype.str(), given.dtype().str()),
                      where);
  bool fits = input.kind == TensorSpec::Kind::kUnranked || given.shape().size() == input.shape.size();
  for (size_t d = 0; fits && d < input.shape.size(); ++d)
    fits = input.shape[d] == -1 || input.shape[d] == given.shape()[d];
  if (fits) return Ok{};
  return Diagnostic(
      ErrorCode::kShapeMismatch,
      format("the tensor is {}, the model takes {}", shape_str(given.shape()), free_shape_str(input.shape)), where);
}

std::string free_shape_str(std::span<const int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string out;
  for (int64_t d : shape) out += (out.empty() ? "" : "x") + (d < 0 ? std::string("?") : std::to_string(d));
  return out;
}

size_t Program::open_regions() const {
  size_t open = 0;
  for (size_t i = 0; i < regions.size(); ++i) open += is_open(i) ? 1 : 0;
  return open;
}

bool Program::runs_alone() const {
  return open_regions() == 0 &&
         std::none_of(regions.begin(), regions.end(), [](const Region& r) { return r.format == "evaluate"; });
}

std::string Program::source_of(size_t region) const {
  std::string out = regions[region].source;
  for (const auto& [offset, bytes] : regions[region].pieces) out.append(shared.view(), offset, bytes);
  return out;
}

std::string write_program(const Program& p) {
  ByteWriter out;
  out.write<uint64_t>(kMagic);
  out.write_string(write_executable(p.executable));
  out.write_string(p.target);
  out.write<uint64_t>(p.inputs.size());
  for (const TensorSpec& t : p.inputs) {
    out.write_string(t.name);
    out.write_string(t.dtype.str());
    out.write<uint64_t>(t.shape.size());
    for (int64_t d : t.shape) out.write<int64_t>(d);
    out.write<uint8_t>(static_cast<uint8_t>(t.kind));
  }
  out.write<uint64_t>(p.outputs.size());
  for (const auto& name : p.outputs) out.write_string(name);
  out.write<uint64_t>(p.regions.size());
  for (const Region& r : p.regions) {
    out.write_string(r.format);
    out.write<uint64_t>(r.inputs.size());
    for (const auto& name : r.inputs) out.write_string(name);
    out.write_string(r.source);
    out.write<uint64_t>(r.pieces.size());
    for (const auto& [offset, bytes] : r.pieces) {
      out.write<uint64_t>(offset);
      out.write<uint64_t>(bytes);
    }
    out.write_string(r.library.view());
  }
  out.write_string(p.shared.view());
  return out.take();
}

Result<Program> read_program(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  ByteReader in(bytes);
  Program p;
  if (in.read<uint64_t>() != kMagic) return bad("its mark is missing");
  const uint64_t length = in.read<uint64_t>();
  auto code = in.take(length);
  if (!in.ok()) return bad("its bytecode is cut off");
  p.executable = TW_TRY(read_executable(code));
  p.target = in.read_string();
  for (uint64_t n = in.read_count(24); n > 0 && in.ok(); --n) {
    TensorSpec t;
    t.name = in.read_string();
    t.dtype = TW_TRY(parse_dtype(in.read_string(64)));
    const uint64_t rank = in.read_count(8);
    if (rank > 32) return bad("the rank of an input");
    for (uint64_t d = 0; d < rank; ++d) t.shape.push_back(in.read<int64_t>());
    for (int64_t d : t.shape)
      if (d < -1 || d > (int64_t{1} << 48)) return bad("the shape of an input");
    const auto kind = in.read<uint8_t>();
    if (kind > static_cast<uint8_t>(TensorSpec::Kind::kOther)) return bad("the kind of an input");
    t.kind = static_cast<TensorSpec::Kind>(kind);
    p.inputs.push_back(std::move(t));
  }
  for (uint64_t n = in.read_count(8); n > 0 && in.ok(); --n) p.outputs.push_back(in.read_string());
  for (uint64_t n = in.read_count(32); n > 0 && in.ok(); --n) {
    Region r;
    r.format = in.read_string(64);
    for (uint64_t m = in.read_count(8); m > 0 && in.ok(); --m) r.inputs.push_back(in.read_string());
    r.source = in.read_string(kMaxSource);
    for (uint64_t m = in.read_count(16); m > 0 && in.ok(); --m) {
      const auto offset = in.read<uint64_t>();
      r.pieces.emplace_back(offset, in.read<uint64_t>());
    }
    r.library = read_stored(in, owner);
    p.regions.push_back(std::move(r));
  }
  p.shared = read_stored(in, owner);
  if (!in.ok()) return bad("it is cut off");
  if (in.remaining() != 0) return bad("bytes follow its end");
  for (const Region& r : p.regions) {
    if (r.format != "relay" && r.format != "evaluate" && r.format != "host") return bad("a region's format");
    if (r.format == "host" && !host_function_of(r).ok()) return bad("a function that does not exist");
    if (!r.library.empty() && r.format != "relay") return bad("a region's kernels");
    uint64_t total = 0;  // no byte may belong to a region twice
    for (const auto& [offset, bytes] : r.pieces) {
      if (offset > p.shared.size() || bytes > p.shared.size() - offset || bytes > p.shared.size() - total)
        return bad("a region's pieces");
      total += bytes;
    }
  }
  const Function* main = p.executable.find("main");
  if (!main || main->params.size() != p.inputs.size()) return bad("main does not take the model's inputs");
  if (p.regions.size() != p.executable.primitives.size()) return bad("the regions are not those its bytecode calls");
  return p;
}

}  // namespace tilewright::runtime::vm
