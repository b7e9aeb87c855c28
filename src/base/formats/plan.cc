// SPDX-License-Identifier: Apache-2.0
#include "base/formats/plan.h"

#include <cmath>

#include "base/checked.h"
#include "base/format.h"

namespace tilewright::plan {
namespace {

constexpr char kMagic[4] = {'T', 'W', 'P', 'L'};
constexpr uint64_t kMaxRank = 32;
constexpr uint64_t kMaxSpaceBytes = uint64_t{1} << 46;
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kMaxDevices = 16;
constexpr uint64_t kMaxMetadataBytes = uint64_t{1} << 26;  // metadata may contain vocabularies and tokenizers

class Writer {
 public:
  void number(uint64_t v) { out_.write<uint64_t>(v); }
  void small(uint32_t v) { out_.write<uint32_t>(v); }
  void byte(uint8_t v) { out_.write<uint8_t>(v); }
  void real(double v) { out_.write<double>(v); }
  void raw(const void* data, uint64_t n) { out_.write_bytes(data, n); }
  void text(const std::string& s) { out_.write_string(s); }
  void dtype(DataType t) {
    out_.write<uint8_t>(static_cast<uint8_t>(t.code));
    out_.write<uint8_t>(t.bits);
    out_.write<uint16_t>(t.lanes);
  }
  void shape(const std::vector<int64_t>& dims) {
    number(dims.size());
    for (int64_t d : dims) out_.write<int64_t>(d);
  }
  template <class Items, class F>
  void list(const Items& items, F write_item) {
    number(items.size());
    for (const auto& item : items) write_item(item);
  }
  std::string take() { return out_.take(); }

 private:
  ByteWriter out_;
};

// Reads fields and records the first error; a failed reader returns zeros, so callers check once at the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : in_(bytes) {}
  ByteReader& bytes() { return in_; }
  bool ok() const { return in_.ok() && complaint_.empty(); }
  void refuse(std::string complaint) {
    if (complaint_.empty() && in_.ok()) complaint_ = std::move(complaint);
    in_.fail();
  }
  Diagnostic error() const {
    std::string what = complaint_.empty()
                           ? format("the plan ends early or has a wrong length near byte {}", in_.position())
                           : complaint_;
    return Diagnostic(ErrorCode::kBadArtifact, what, "execution plan",
                      "the artifact is damaged; compile the model again");
  }

  std::string text(uint64_t limit = 1 << 20) { return in_.read_string(limit); }
  double figure() {  // only shown in reports, so an invalid value is dropped, not refused
    auto v = in_.read<double>();
    return std::isfinite(v) ? v : 0;
  }
  DataType dtype(const char* of) {
    DataType t{TypeCode::kFloat, 0, 0};
    auto code = in_.read<uint8_t>();
    t.bits = in_.read<uint8_t>();
    t.lanes = in_.read<uint16_t>();
    if (!in_.ok()) return kFloat32;
    if (code < static_cast<uint8_t>(TypeCode::kHandle)) {
      t.code = static_cast<TypeCode>(code);
      auto named = parse_dtype(t.str());
      if (t.lanes == 1 && named.ok() && *named == t) return t;
    }
    refuse(format("{} has an unknown dtype (code {}, {} bits, {} lanes)", of, code, t.bits, t.lanes));
    return kFloat32;
  }
  std::vector<int64_t> shape(const char* of) {
    uint64_t rank = in_.read_count(sizeof(int64_t));
    if (rank > kMaxRank) {
      refuse(format("{} has rank {}, more than {}", of, rank, kMaxRank));
      return {};
    }
    std::vector<int64_t> dims(rank);
    for (auto& d : dims) d = in_.read<int64_t>();
    if (auto count = checked_element_count(dims); !count.ok()) {
      refuse(format("{}: {}", of, count.error().message));
      return {};
    }
    return dims;
  }
  template <class Item, class F>
  std::vector<Item> list(uint64_t item_bytes, F read_item) {
    std::vector<Item> items;
    uint64_t n = in_.read_count(item_bytes);
    for (uint64_t i = 0; i < n && ok(); ++i) items.push_back(read_item(i));
    return items;
  }

 private:
  ByteReader in_;
  std::string complaint_;
};

// offset + bytes within size, without overflow.
bool within(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

uint64_t tensor_bytes(const TensorInfo& info) {
  uint64_t n = 1;
  for (int64_t d : info.shape) n *= static_cast<uint64_t>(d);  // checked when read
  return info.dtype.bytes_for(n);
}

void check_range(Reader& in, const char* kind, uint64_t i, uint64_t offset, uint64_t bytes, uint64_t size,
                 uint64_t alignment) {
  if (!within(offset, bytes, size))
    in.refuse(format("{} {} covers bytes {} to {}+{} of a space of {} bytes", kind, i, offset, offset, bytes, size));
  if (offset % alignment != 0)
    in.refuse(format("{} {} starts at offset {}, which is not a multiple of {}", kind, i, offset, alignment));
}

void check_buffer(Reader& in, const Plan& plan, const Buffer& b, uint64_t i) {
  // Views (slices, concat slots) may start at any element; kernels are told what alignment to assume.
  const uint64_t element = std::max<uint64_t>(1, b.dtype.bytes());
  switch (b.space) {
    case Space::kArena:
      return check_range(in, "buffer", i, b.offset, b.bytes,
                         b.device == 0 ? plan.arena_bytes : plan.device_arena_bytes[b.device - 1], element);
    case Space::kParams:
      return check_range(in, "buffer", i, b.offset, b.bytes, plan.params_bytes, element);
    case Space::kScratch:
      return check_range(in, "buffer", i, b.offset, b.bytes, plan.scratch_bytes, element);
    case Space::kInput:
    case Space::kOutput: {
      const auto& tensors = b.space == Space::kInput ? plan.inputs : plan.outputs;
      if (b.space == Space::kInput && b.index >= tensors.size() && b.index - tensors.size() < plan.free_sizes.size())
        return check_range(in, "buffer", i, b.offset, b.bytes, sizeof(int64_t), 1);
      if (b.index >= tensors.size())
        return in.refuse(format("buffer {} names tensor {} of {}", i, b.index, tensors.size()));
      return check_range(in, "buffer", i, b.offset, b.bytes, tensor_bytes(tensors[b.index]), 1);
    }
  }
  in.refuse(format("buffer {} lies in an unknown space", i));
}

TensorInfo read_tensor_info(Reader& in) {
  TensorInfo info;
  info.name = in.text();
  info.dtype = in.dtype("an input or output");
  info.shape = in.shape("an input or output");
  return info;
}

FreeSize read_free_size(Reader& in, const Plan& plan) {
  FreeSize size;
  size.name = in.text();
  size.low = in.bytes().read<int64_t>();
  size.largest = in.bytes().read<int64_t>();
  if (size.low < 0 || size.low > size.largest) in.refuse(format("the size '{}' has wrong bounds", size.name));
  size.dims = in.list<FreeSize::Dim>(25, [&](uint64_t) {
    FreeSize::Dim d;
    d.output = in.bytes().read<uint8_t>() != 0;
    d.tensor = in.bytes().read<uint32_t>();
    d.axis = in.bytes().read<uint32_t>();
    d.add = in.bytes().read<int64_t>();
    d.divide = in.bytes().read<int64_t>();
    constexpr int64_t kMost = int64_t{1} << 40;
    const bool sane = size.largest <= kMost && d.add >= -size.low && d.add <= kMost && d.divide >= 1 &&
                      (d.output || (d.add == 0 && d.divide == 1));
    const auto& tensors = d.output ? plan.outputs : plan.inputs;
    if (!sane || d.tensor >= tensors.size() || d.axis >= tensors[d.tensor].shape.size() ||
        tensors[d.tensor].shape[d.axis] != (size.largest + d.add) / d.divide)
      in.refuse(format("the size '{}' is no dimension of a tensor", size.name));
    return d;
  });
  return size;
}

Buffer read_buffer(Reader& in, const Plan& plan, uint64_t i) {
  Buffer b;
  auto space = in.bytes().read<uint8_t>();
  if (space > static_cast<uint8_t>(Space::kScratch))
    in.refuse(format("buffer {} lies in an unknown space", i));
  else
    b.space = static_cast<Space>(space);
  b.index = in.bytes().read<uint32_t>();
  b.offset = in.bytes().read<uint64_t>();
  b.bytes = in.bytes().read<uint64_t>();
  b.dtype = in.dtype("a buffer");
  b.shape = in.shape("a buffer");
  b.layout = in.text();
  b.name = in.text();
  b.device = in.bytes().read<uint32_t>();
  if (b.device >= plan.devices.size())
    in.refuse(format("buffer {} is on device {} of {}", i, b.device, plan.devices.size()));
  if (in.ok()) check_buffer(in, plan, b, i);
  return b;
}

Step read_step(Reader& in, const Plan& plan, uint64_t i) {
  Step s;
  auto kind = in.bytes().read<uint8_t>();
  if (kind > static_cast<uint8_t>(StepKind::kCopy))
    in.refuse(format("step {} is of an unknown kind", i));
  else
    s.kind = static_cast<StepKind>(kind);
  s.kernel = in.bytes().read<uint32_t>();
  const size_t callees = s.kind == StepKind::kKernel     ? plan.kernels.size()
                         : s.kind == StepKind::kExternal ? plan.externals.size()
                                                         : 1;
  if (s.kernel >= callees)
    in.refuse(format("step {} calls {} {} of {}", i, s.kind == StepKind::kExternal ? "function" : "kernel", s.kernel,
                     callees));
  s.buffers = in.list<uint32_t>(sizeof(uint32_t), [&](uint64_t) {
    auto b = in.bytes().read<uint32_t>();
    if (b >= plan.buffers.size()) in.refuse(format("step {} uses buffer {} of {}", i, b, plan.buffers.size()));
    return b;
  });
  auto parallel = in.bytes().read<uint8_t>();
  if (parallel > 1) in.refuse(format("step {} has a wrong flag", i));
  s.parallel = parallel == 1;
  s.name = in.text();
  s.source = in.text(1 << 24);
  s.flops = in.figure();
  s.bytes = in.figure();
  s.predicted_us = in.figure();
  s.implementation = in.text();
  s.outputs = in.bytes().read<uint32_t>();
  if (s.outputs > s.buffers.size())
    in.refuse(format("step {} writes {} of {} buffers", i, s.outputs, s.buffers.size()));
  if (s.kind == StepKind::kKernel || !in.ok()) return s;
  if (s.parallel) in.refuse(format("step {} cannot be shared by threads", i));
  for (uint32_t b : s.buffers) {  // the sizes given to a kernel are what it may access
    const Buffer& buffer = plan.buffers[b];
    if (buffer.space == Space::kScratch || tensor_bytes({"", buffer.dtype, buffer.shape}) > buffer.bytes)
      in.refuse(format("step {} takes buffer {} for a larger tensor", i, b));
  }
  if (s.kind == StepKind::kCopy &&
      (s.buffers.size() != 2 || s.outputs != 1 || plan.buffers[s.buffers[0]].bytes != plan.buffers[s.buffers[1]].bytes))
    in.refuse(format("step {} copies between tensors of different sizes", i));
  return s;
}

Param read_param(Reader& in, const Plan& plan, uint64_t i) {
  Param p;
  p.name = in.text();
  p.dtype = in.dtype("a parameter");
  p.shape = in.shape("a parameter");
  p.layout = in.text();
  p.offset = in.bytes().read<uint64_t>();
  p.bytes = in.bytes().read<uint64_t>();
  p.hash = in.bytes().read<uint64_t>();
  if (!in.ok()) return p;
  check_range(in, "parameter", i, p.offset, p.bytes, plan.params_bytes, kAlignment);
  if (tensor_bytes({p.name, p.dtype, p.shape}) > p.bytes)
    in.refuse(format("parameter {} ('{}') is larger than its {} bytes", i, p.name, p.bytes));
  return p;
}

// Writes what differs between variants.
void write_variant(Writer& out, const Plan& plan) {
  out.number(plan.arena_bytes);
  out.number(plan.scratch_bytes);
  out.list(plan.device_arena_bytes, [&](uint64_t bytes) { out.number(bytes); });
  auto tensor_info = [&](const TensorInfo& info) {
    out.text(info.name);
    out.dtype(info.dtype);
    out.shape(info.shape);
  };
  out.list(plan.inputs, tensor_info);
  out.list(plan.outputs, tensor_info);
  out.list(plan.free_sizes, [&](const FreeSize& size) {
    out.text(size.name);
    out.number(static_cast<uint64_t>(size.low));
    out.number(static_cast<uint64_t>(size.largest));
    out.list(size.dims, [&](const FreeSize::Dim& d) {
      out.byte(d.output ? 1 : 0);
      out.small(d.tensor);
      out.small(d.axis);
      out.number(static_cast<uint64_t>(d.add));
      out.number(static_cast<uint64_t>(d.divide));
    });
  });
  out.list(plan.buffers, [&](const Buffer& b) {
    out.byte(static_cast<uint8_t>(b.space));
    out.small(b.index);
    out.number(b.offset);
    out.number(b.bytes);
    out.dtype(b.dtype);
    out.shape(b.shape);
    out.text(b.layout);
    out.text(b.name);
    out.small(b.device);
  });
  out.list(plan.steps, [&](const Step& s) {
    out.byte(static_cast<uint8_t>(s.kind));
    out.small(s.kernel);
    out.list(s.buffers, [&](uint32_t b) { out.small(b); });
    out.byte(s.parallel ? 1 : 0);
    out.text(s.name);
    out.text(s.source);
    out.real(s.flops);
    out.real(s.bytes);
    out.real(s.predicted_us);
    out.text(s.implementation);
    out.small(s.outputs);
  });
}

void read_variant(Reader& in, Plan& plan) {
  plan.arena_bytes = in.bytes().read<uint64_t>();
  plan.scratch_bytes = in.bytes().read<uint64_t>();
  if (plan.arena_bytes > kMaxSpaceBytes) in.refuse(format("the plan asks for {} bytes of memory", plan.arena_bytes));
  if (plan.scratch_bytes > plan.arena_bytes || (plan.arena_bytes - plan.scratch_bytes) % kAlignment != 0 ||
      plan.scratch_bytes % kAlignment != 0)
    in.refuse(format("{} bytes of scratch cannot end {} bytes of memory", plan.scratch_bytes, plan.arena_bytes));
  plan.device_arena_bytes = in.list<uint64_t>(8, [&](uint64_t) { return in.bytes().read<uint64_t>(); });
  if (plan.device_arena_bytes.size() + 1 != plan.devices.size())
    in.refuse(
        format("the plan has {} devices and memory for {}", plan.devices.size(), plan.device_arena_bytes.size() + 1));
  for (uint64_t bytes : plan.device_arena_bytes)
    if (bytes > kMaxSpaceBytes) in.refuse(format("the plan asks for {} bytes of a device's memory", bytes));
  plan.inputs = in.list<TensorInfo>(20, [&](uint64_t) { return read_tensor_info(in); });
  plan.outputs = in.list<TensorInfo>(20, [&](uint64_t) { return read_tensor_info(in); });
  plan.free_sizes = in.list<FreeSize>(32, [&](uint64_t) { return read_free_size(in, plan); });
  plan.buffers = in.list<Buffer>(53, [&](uint64_t i) { return read_buffer(in, plan, i); });
  plan.steps = in.list<Step>(66, [&](uint64_t i) { return read_step(in, plan, i); });
}

// A variant must have the first plan's tensors, in other shapes.
void check_alike(Reader& in, const std::vector<TensorInfo>& first, const std::vector<TensorInfo>& other) {
  bool alike = first.size() == other.size();
  for (size_t i = 0; alike && i < first.size(); ++i)
    alike = first[i].name == other[i].name && first[i].dtype == other[i].dtype;
  if (!alike) in.refuse("the plans for several input shapes disagree about the model's inputs and outputs");
}

}  // namespace

const char* name_of(Space space) {
  switch (space) {
    case Space::kArena:
      return "arena";
    case Space::kParams:
      return "weights";
    case Space::kInput:
      return "input";
    case Space::kOutput:
      return "output";
    case Space::kScratch:
      return "scratch";
  }
  return "";
}

const char* name_of(StepKind kind) {
  switch (kind) {
    case StepKind::kKernel:
      return "kernel";
    case StepKind::kExternal:
      return "external";
    case StepKind::kCopy:
      return "copy";
  }
  return "";
}

const Plan& variant_of(const Plan& plan, size_t i) { return i == 0 ? plan : plan.variants.at(i - 1); }

uint64_t weight_bytes(const Plan& plan) {
  if (plan.weights_file.empty()) return plan.params_bytes;
  uint64_t bytes = 0;
  for (const Param& p : plan.params) bytes += p.bytes;
  return bytes;
}

const std::string& callee_of(const Plan& plan, const Step& step) {
  static const std::string kCopy = "__copy";
  if (step.kind == StepKind::kCopy) return kCopy;
  return (step.kind == StepKind::kExternal ? plan.externals : plan.kernels)[step.kernel];
}

std::string write_plan(const Plan& plan) {
  Writer out;
  out.raw(kMagic, sizeof kMagic);
  out.small(kPlanVersion);
  out.text(plan.compiler_version);
  out.text(plan.model_name);
  out.text(plan.target);
  out.list(plan.cpu_features, [&](const std::string& s) { out.text(s); });
  out.number(plan.params_bytes);
  out.list(plan.kernels, [&](const std::string& s) { out.text(s); });
  out.list(plan.params, [&](const Param& p) {
    out.text(p.name);
    out.dtype(p.dtype);
    out.shape(p.shape);
    out.text(p.layout);
    out.number(p.offset);
    out.number(p.bytes);
    out.number(p.hash);
  });
  out.text(plan.weights_file);
  out.list(plan.metadata, [&](const auto& entry) {
    out.text(entry.first);
    out.text(entry.second);
  });
  out.text(plan.imports);
  out.list(plan.externals, [&](const std::string& s) { out.text(s); });
  out.list(plan.devices, [&](int32_t type) { out.small(static_cast<uint32_t>(type)); });
  write_variant(out, plan);
  out.list(plan.variants, [&](const Plan& variant) { write_variant(out, variant); });
  return out.take();
}

Result<Plan> read_plan(std::span<const std::byte> bytes) {
  Reader in(bytes);
  auto magic = in.bytes().take(sizeof kMagic);
  if (magic.size() != sizeof kMagic || std::memcmp(magic.data(), kMagic, sizeof kMagic) != 0) {
    in.refuse("the plan does not start with its mark");
    return in.error();
  }
  auto version = in.bytes().read<uint32_t>();
  if (!in.ok()) return in.error();
  Plan plan;
  plan.compiler_version = in.text();  // the first field in every version, so that errors can name the writer's
  if (version != kPlanVersion)
    return Diagnostic(ErrorCode::kArtifactVersion,
                      format("the plan has version {} (written by '{}'), this runtime reads version {}", version,
                             plan.compiler_version, kPlanVersion),
                      "execution plan", "compile the model again with the version you run");
  plan.model_name = in.text();
  plan.target = in.text();
  plan.cpu_features = in.list<std::string>(8, [&](uint64_t) { return in.text(); });
  plan.params_bytes = in.bytes().read<uint64_t>();
  if (plan.params_bytes > kMaxSpaceBytes)
    in.refuse(format("the plan asks for {} bytes of parameters", plan.params_bytes));
  plan.kernels = in.list<std::string>(8, [&](uint64_t) { return in.text(); });
  plan.params = in.list<Param>(52, [&](uint64_t i) { return read_param(in, plan, i); });
  plan.weights_file = in.text();
  uint64_t entries = in.bytes().read_count(16);
  for (uint64_t i = 0; i < entries && in.ok(); ++i) {
    auto key = in.text();
    auto value = in.text(kMaxMetadataBytes);
    plan.metadata.emplace(std::move(key), std::move(value));
  }
  plan.imports = in.text(kMaxSpaceBytes);
  plan.externals = in.list<std::string>(8, [&](uint64_t) { return in.text(); });
  plan.devices = in.list<int32_t>(4, [&](uint64_t) { return static_cast<int32_t>(in.bytes().read<uint32_t>()); });
  if (plan.devices.empty() || plan.devices.size() > kMaxDevices || plan.devices[0] != 1)
    in.refuse("the plan's list of devices is impossible");
  const Plan shared = plan;
  read_variant(in, plan);
  plan.variants = in.list<Plan>(56, [&](uint64_t) {
    Plan variant = shared;
    read_variant(in, variant);
    check_alike(in, plan.inputs, variant.inputs);
    check_alike(in, plan.outputs, variant.outputs);
    return variant;
  });
  if (in.ok() && in.bytes().remaining() != 0)
    in.refuse(format("the plan is followed by {} bytes that do not belong to it", in.bytes().remaining()));
  if (!in.ok()) return in.error();
  return plan;
}

}  // namespace tilewright::plan
