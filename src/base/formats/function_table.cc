// SPDX-License-Identifier: Apache-2.0
#include "base/formats/function_table.h"

#include <algorithm>

#include "base/checked.h"
#include "base/format.h"

namespace tilewright::plan {
namespace {

constexpr uint32_t kWithoutCalls = 1, kWithCalls = 2, kWithResults = 3;  // versions, each with what the last one has
constexpr size_t kMaxSteps = 1 << 16;

int operands_of(SizeOp op) {
  switch (op) {
    case SizeOp::kConstant:
    case SizeOp::kSize:
      return 0;
    case SizeOp::kNot:
      return 1;
    case SizeOp::kSelect:
      return 3;
    default:
      return 2;
  }
}

// Whether the program leaves exactly one value and uses valid sizes.
bool is_program(const SizeProgram& program, uint64_t sizes) {
  int64_t depth = 0;
  for (const SizeStep& step : program) {
    if (step.op > SizeOp::kSelect) return false;
    if (step.op == SizeOp::kSize && (step.value < 0 || static_cast<uint64_t>(step.value) >= sizes)) return false;
    const int needed = operands_of(step.op);
    if (depth < needed) return false;
    depth += 1 - needed;
  }
  return depth == 1;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

// False on overflow or division by zero.
bool apply(SizeOp op, int64_t a, int64_t b, int64_t* out) {
  switch (op) {
    case SizeOp::kAdd:
      return !__builtin_add_overflow(a, b, out);
    case SizeOp::kSub:
      return !__builtin_sub_overflow(a, b, out);
    case SizeOp::kMul:
      return !__builtin_mul_overflow(a, b, out);
    case SizeOp::kFloorDiv:
    case SizeOp::kFloorMod:
      if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
      *out = op == SizeOp::kFloorDiv ? floor_div(a, b) : a - floor_div(a, b) * b;
      return true;
    case SizeOp::kMin:
      *out = std::min(a, b);
      return true;
    case SizeOp::kMax:
      *out = std::max(a, b);
      return true;
    case SizeOp::kEqual:
      *out = a == b;
      return true;
    case SizeOp::kLess:
      *out = a < b;
      return true;
    case SizeOp::kLessEqual:
      *out = a <= b;
      return true;
    case SizeOp::kAnd:
      *out = a != 0 && b != 0;
      return true;
    case SizeOp::kOr:
      *out = a != 0 || b != 0;
      return true;
    default:
      return false;
  }
}

const char* symbol_of(SizeOp op) {
  static constexpr const char* kSymbols[] = {"",    "",    "+",  "-", "*",  "//",  "%",
                                             "min", "max", "==", "<", "<=", "and", "or"};
  return kSymbols[static_cast<size_t>(op)];
}

void write_program(ByteWriter& out, const SizeProgram& program) {
  out.write<uint64_t>(program.size());
  for (const SizeStep& step : program) {
    out.write(static_cast<uint8_t>(step.op));
    out.write(step.value);
  }
}

SizeProgram read_program(ByteReader& in, uint64_t sizes) {
  SizeProgram program;
  const uint64_t n = in.read_count(9);
  if (n > kMaxSteps) in.fail();
  for (uint64_t i = 0; i < n && in.ok(); ++i) {
    const auto op = in.read<uint8_t>();
    program.push_back({static_cast<SizeOp>(op), in.read<int64_t>()});
  }
  if (!is_program(program, sizes)) in.fail();
  return program;
}

void write_function(ByteWriter& out, const Function& f) {
  out.write_string(f.name);
  out.write<uint64_t>(f.sizes.size());
  for (const std::string& s : f.sizes) out.write_string(s);
  out.write<uint64_t>(f.arguments.size());
  for (const FunctionArgument& a : f.arguments) {
    out.write_string(a.name);
    out.write<uint8_t>(a.returned ? 2 : a.scalar ? 1 : 0);
    out.write<uint32_t>(a.size);
    out.write_string(a.dtype.str());
    out.write<uint64_t>(a.shape.size());
    for (const SizeProgram& p : a.shape) write_program(out, p);
  }
  out.write<uint64_t>(f.tensors.size());
  for (uint32_t t : f.tensors) out.write(t);
  out.write<uint64_t>(f.kernels.size());
  for (const FunctionKernel& k : f.kernels) {
    out.write(k.kernel);
    out.write<uint8_t>(k.parallel);
  }
  out.write<uint64_t>(f.workspaces.size());
  for (const FunctionWorkspace& w : f.workspaces) {
    write_program(out, w.bytes);
    out.write<uint8_t>(w.per_thread);
  }
}

void write_calls(ByteWriter& out, const Function& f) {
  out.write<uint64_t>(f.calls.size());
  for (const FunctionCall& c : f.calls) {
    out.write(c.before);
    out.write_string(c.name);
    out.write<uint64_t>(c.arguments.size());
    for (const FunctionCall::Argument& a : c.arguments) {
      out.write(static_cast<uint8_t>(a.kind));
      if (a.kind == FunctionCall::Kind::kInteger) write_program(out, a.integer);
      if (a.kind == FunctionCall::Kind::kFloat) out.write(a.number);
      if (a.kind != FunctionCall::Kind::kTensor) continue;
      out.write(a.memory);
      out.write_string(a.dtype.str());
      out.write<uint64_t>(a.shape.size());
      for (const SizeProgram& p : a.shape) write_program(out, p);
    }
  }
}

FunctionCall::Argument read_call_argument(ByteReader& in, const Function& f) {
  FunctionCall::Argument a;
  const auto kind = in.read<uint8_t>();
  if (kind > static_cast<uint8_t>(FunctionCall::Kind::kFloat)) in.fail();
  a.kind = static_cast<FunctionCall::Kind>(kind);
  if (a.kind == FunctionCall::Kind::kInteger) a.integer = read_program(in, f.sizes.size());
  if (a.kind == FunctionCall::Kind::kFloat) a.number = in.read<double>();
  if (a.kind != FunctionCall::Kind::kTensor) return a;
  a.memory = in.read<uint32_t>();
  const size_t places = f.tensors.size() + f.workspaces.size();
  if (a.memory >= places || (a.memory >= f.tensors.size() && f.workspaces[a.memory - f.tensors.size()].per_thread))
    in.fail();
  auto dtype = parse_dtype(in.read_string(64));
  if (!dtype.ok()) in.fail();
  if (dtype.ok()) a.dtype = *dtype;
  for (uint64_t i = 0, n = in.read_count(8); i < n && in.ok(); ++i) a.shape.push_back(read_program(in, f.sizes.size()));
  return a;
}

void read_calls(ByteReader& in, Function* f) {
  for (uint64_t i = 0, n = in.read_count(8); i < n && in.ok(); ++i) {
    FunctionCall& c = f->calls.emplace_back();
    c.before = in.read<uint32_t>();
    c.name = in.read_string();
    if (c.before > f->kernels.size() || (i > 0 && c.before < f->calls[i - 1].before)) in.fail();
    for (uint64_t k = 0, args = in.read_count(1); k < args && in.ok(); ++k)
      c.arguments.push_back(read_call_argument(in, *f));
  }
}

FunctionArgument read_argument(ByteReader& in, uint64_t sizes) {
  FunctionArgument a;
  a.name = in.read_string();
  const auto kind = in.read<uint8_t>();
  if (kind > 2) in.fail();
  a.scalar = kind == 1, a.returned = kind == 2;
  a.size = in.read<uint32_t>();
  auto dtype = parse_dtype(in.read_string(64));
  if (!dtype.ok() || (a.scalar && a.size >= sizes)) in.fail();
  if (dtype.ok()) a.dtype = *dtype;
  const uint64_t rank = in.read_count(8);
  for (uint64_t i = 0; i < rank && in.ok(); ++i) a.shape.push_back(read_program(in, sizes));
  if (a.returned && (a.dtype.lanes != 1 || a.dtype.bytes() > sizeof(int64_t))) in.fail();
  return a;
}

Function read_function(ByteReader& in, uint64_t kernels) {
  Function f;
  f.name = in.read_string();
  for (uint64_t i = 0, n = in.read_count(8); i < n && in.ok(); ++i) f.sizes.push_back(in.read_string());
  for (uint64_t i = 0, n = in.read_count(8); i < n && in.ok(); ++i)
    if (f.returns())
      in.fail();  // which comes last
    else
      f.arguments.push_back(read_argument(in, f.sizes.size()));
  for (uint64_t i = 0, n = in.read_count(4); i < n && in.ok(); ++i) {
    f.tensors.push_back(in.read<uint32_t>());
    if (f.tensors.back() >= f.arguments.size() || f.arguments[f.tensors.back()].scalar) in.fail();
  }
  for (uint64_t i = 0, n = in.read_count(5); i < n && in.ok(); ++i) {
    const auto kernel = in.read<uint32_t>();
    f.kernels.push_back({kernel, in.read<uint8_t>() != 0});
    if (kernel >= kernels) in.fail();
  }
  for (uint64_t i = 0, n = in.read_count(9); i < n && in.ok(); ++i) {
    SizeProgram bytes = read_program(in, f.sizes.size());
    f.workspaces.push_back({std::move(bytes), in.read<uint8_t>() != 0});
  }
  return f;
}

}  // namespace

std::optional<int64_t> evaluate(const SizeProgram& program, std::span<const int64_t> sizes) {
  std::vector<int64_t> stack;
  auto pop = [&] {
    const int64_t v = stack.back();
    stack.pop_back();
    return v;
  };
  for (const SizeStep& step : program) {
    if (step.op == SizeOp::kConstant || step.op == SizeOp::kSize) {
      stack.push_back(step.op == SizeOp::kConstant ? step.value : sizes[static_cast<size_t>(step.value)]);
      continue;
    }
    const int64_t b = pop();
    if (step.op == SizeOp::kNot) {
      stack.push_back(b == 0);
      continue;
    }
    const int64_t a = pop();
    if (step.op == SizeOp::kSelect) {
      stack.push_back(pop() != 0 ? a : b);
      continue;
    }
    int64_t value = 0;
    if (!apply(step.op, a, b, &value)) return std::nullopt;
    stack.push_back(value);
  }
  return stack.back();
}

std::string to_text(const SizeProgram& program, std::span<const std::string> names) {
  std::vector<std::string> stack;
  auto pop = [&] {
    std::string v = std::move(stack.back());
    stack.pop_back();
    return v;
  };
  for (const SizeStep& step : program) {
    const int needed = operands_of(step.op);
    if (needed == 0) {
      stack.push_back(step.op == SizeOp::kConstant ? format("{}", step.value) : names[static_cast<size_t>(step.value)]);
      continue;
    }
    std::string b = pop();
    if (needed == 1) {
      stack.push_back(format("not {}", b));
      continue;
    }
    std::string a = pop();
    if (needed == 3)
      stack.push_back(format("select({}, {}, {})", pop(), a, b));
    else if (step.op == SizeOp::kMin || step.op == SizeOp::kMax)
      stack.push_back(format("{}({}, {})", symbol_of(step.op), a, b));
    else
      stack.push_back(format("({} {} {})", a, symbol_of(step.op), b));
  }
  std::string out = pop();
  return out.starts_with('(') && out.find('(', 1) == std::string::npos ? out.substr(1, out.size() - 2) : out;
}

std::string to_text(const Function& function, const FunctionArgument& a) {
  if (a.scalar) return a.dtype == kFloat64 ? a.name + ": float" : a.name;
  std::string shape;
  for (const SizeProgram& p : a.shape) shape += (shape.empty() ? "" : ", ") + to_text(p, function.sizes);
  return format("{}: {}[{}]", a.name, a.dtype.str(), shape);
}

std::string to_text(const Function& function) {
  std::string out;
  for (const FunctionArgument& a : function.arguments)
    if (!a.returned) out += (out.empty() ? "" : ", ") + to_text(function, a);
  return format("{}({}){}", function.name, out,
                function.returns() ? " -> " + function.arguments.back().dtype.str() : std::string());
}

Status check_function(const Function& f) {
  std::vector<bool> said(f.sizes.size(), false);
  for (const FunctionArgument& a : f.arguments) {
    if (a.scalar) said[a.size] = true;
    for (const SizeProgram& p : a.shape)
      if (p.size() == 1 && p[0].op == SizeOp::kSize) said[static_cast<size_t>(p[0].value)] = true;
  }
  for (size_t i = 0; i < said.size(); ++i)
    if (!said[i])
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("the size '{}' is no argument and no dimension of one", f.sizes[i]),
                        format("function {}", f.name), "give the variable as an argument");
  return Ok{};
}

std::string write_functions(std::span<const Function> functions) {
  ByteWriter out;
  // The oldest version that has what is there: an older runtime refuses the others.
  uint32_t version = kWithoutCalls;
  for (const Function& f : functions)
    version = std::max(version, f.returns() ? kWithResults : f.calls.empty() ? kWithoutCalls : kWithCalls);
  out.write(version);
  out.write<uint64_t>(functions.size());
  for (const Function& f : functions) {
    write_function(out, f);
    if (version >= kWithCalls) write_calls(out, f);
  }
  return out.take();
}

Result<std::vector<Function>> read_functions(std::string_view bytes, uint64_t kernels) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  const Diagnostic damaged(ErrorCode::kBadArtifact, "the table of functions is damaged", {}, "build the library again");
  const auto version = in.read<uint32_t>();
  if (version < kWithoutCalls || version > kWithResults) return Diagnostic(damaged);
  std::vector<Function> out;
  for (uint64_t i = 0, n = in.read_count(8); i < n && in.ok(); ++i) {
    out.push_back(read_function(in, kernels));
    if (out.back().returns() && version < kWithResults) in.fail();
    if (version >= kWithCalls && in.ok()) read_calls(in, &out.back());
    if (in.ok() && !check_function(out.back()).ok()) in.fail();
  }
  if (!in.ok() || in.remaining() != 0) return Diagnostic(damaged);
  return out;
}

}  // namespace tilewright::plan
