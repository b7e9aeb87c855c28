// SPDX-License-Identifier: Apache-2.0
#include "driver/functions.h"

#include <algorithm>
#include <set>
#include <thread>

#include "base/format.h"
#include "base/formats/function_table.h"
#include "base/version.h"
#include "codegen/backend.h"
#include "codegen/kernel_cache.h"
#include "driver/guarded.h"
#include "tir/block.h"
#include "tir/passes/lower_kernel.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/walk.h"

namespace tilewright::driver {
namespace {

using tir::ExprKind;
using tir::PrimExpr;

std::optional<plan::SizeOp> size_op_of(ExprKind kind) {
  switch (kind) {
    case ExprKind::kAdd:
      return plan::SizeOp::kAdd;
    case ExprKind::kSub:
      return plan::SizeOp::kSub;
    case ExprKind::kMul:
      return plan::SizeOp::kMul;
    case ExprKind::kFloorDiv:
      return plan::SizeOp::kFloorDiv;
    case ExprKind::kFloorMod:
      return plan::SizeOp::kFloorMod;
    case ExprKind::kMin:
      return plan::SizeOp::kMin;
    case ExprKind::kMax:
      return plan::SizeOp::kMax;
    case ExprKind::kEQ:
      return plan::SizeOp::kEqual;
    case ExprKind::kLT:
      return plan::SizeOp::kLess;
    case ExprKind::kLE:
      return plan::SizeOp::kLessEqual;
    case ExprKind::kAnd:
      return plan::SizeOp::kAnd;
    case ExprKind::kOr:
      return plan::SizeOp::kOr;
    default:
      return std::nullopt;
  }
}

// Encodes expressions over sizes as programs of the function table.
class SizeWriter {
 public:
  SizeWriter(const te::Lowered& lowered, const std::string& function) : lowered_(lowered), function_(function) {}

  Result<plan::SizeProgram> program(const PrimExpr& e) {
    plan::SizeProgram out;
    TW_TRY_STATUS(add(e, &out));
    return out;
  }

 private:
  Status add_swapped(plan::SizeOp op, const tir::BinaryNode& n, bool negate, plan::SizeProgram* out) {
    TW_TRY_STATUS(add(n.b, out));
    TW_TRY_STATUS(add(n.a, out));
    out->push_back({op});
    if (negate) out->push_back({plan::SizeOp::kNot});
    return Ok{};
  }

  Status add(const PrimExpr& e, plan::SizeProgram* out) {
    const auto& sizes = lowered_.size_values;
    if (auto value = tir::as_const_int(e)) {
      out->push_back({plan::SizeOp::kConstant, *value});
      return Ok{};
    }
    if (auto found = std::find(sizes.begin(), sizes.end(), e); found != sizes.end()) {
      out->push_back({plan::SizeOp::kSize, found - sizes.begin()});
      return Ok{};
    }
    if (tir::is_binary(e->kind)) {
      const auto& n = static_cast<const tir::BinaryNode&>(*e);
      if (e->kind == ExprKind::kGT) return add_swapped(plan::SizeOp::kLess, n, false, out);
      if (e->kind == ExprKind::kGE) return add_swapped(plan::SizeOp::kLessEqual, n, false, out);
      if (e->kind == ExprKind::kNE) return add_swapped(plan::SizeOp::kEqual, n, true, out);
      if (auto op = size_op_of(e->kind)) return add_all({n.a, n.b}, *op, out);
    }
    if (const auto* n = tir::as<tir::NotNode>(e)) return add_all({n->a}, plan::SizeOp::kNot, out);
    if (const auto* n = tir::as<tir::SelectNode>(e))
      return add_all({n->condition, n->on_true, n->on_false}, plan::SizeOp::kSelect, out);
    if (const auto* n = tir::as<tir::CallNode>(e); n && n->op == tir::Intrinsic::k_if_then_else)
      return add_all(n->args, plan::SizeOp::kSelect, out);
    if (const auto* n = tir::as<tir::CastNode>(e); n && n->dtype.is_int() && n->value->dtype.is_int())
      return add(n->value, out);
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("the size {} cannot be computed before a call", tir::to_text(e)),
                      format("function {}", function_), "use sums, products and quotients of sizes");
  }
  Status add_all(const std::vector<PrimExpr>& parts, plan::SizeOp op, plan::SizeProgram* out) {
    for (const PrimExpr& part : parts) TW_TRY_STATUS(add(part, out));
    out->push_back({op});
    return Ok{};
  }

  const te::Lowered& lowered_;
  const std::string& function_;
};

std::string symbol_of(const std::string& name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  return out;
}

Result<plan::Function> described(const LoweredFunction& f, std::span<const tir::PrimFunc> kernels, uint32_t first) {
  plan::Function out;
  out.name = f.name;
  SizeWriter writer(f.lowered, f.name);
  for (const PrimExpr& s : f.lowered.sizes) out.sizes.push_back(static_cast<const tir::VarNode&>(*s).name);
  uint32_t scalars = 0;
  size_t tensors = 0;
  std::vector<bool> kinds = f.scalar;
  if (f.lowered.returns) kinds.push_back(false);
  for (const bool scalar : kinds) {
    plan::FunctionArgument argument;
    argument.scalar = scalar;
    if (scalar) {
      argument.name = out.sizes[scalars];
      const bool number = scalars < f.lowered.numbers.size() && f.lowered.numbers[scalars];
      argument.dtype = f.lowered.sizes[scalars]->dtype.is_float() ? kFloat64 : number ? kInt32 : kInt64;
      argument.size = scalars++;
    } else {
      const te::Lowered::Argument& tensor = f.lowered.arguments[tensors++];
      argument.name = tensor.name;
      argument.dtype = tensor.dtype;
      for (const PrimExpr& d : tensor.shape) argument.shape.push_back(TW_TRY(writer.program(d)));
      out.tensors.push_back(static_cast<uint32_t>(out.arguments.size()));
    }
    out.arguments.push_back(std::move(argument));
  }
  if (f.lowered.returns) out.arguments.back().returned = true;
  for (uint32_t i = 0; i < kernels.size(); ++i) out.kernels.push_back({first + i, static_cast<bool>(kernels[i].tid)});
  for (const te::Lowered::Workspace& w : f.lowered.workspaces) {
    const auto bytes = static_cast<int64_t>(w.buffer->dtype.bytes());
    out.workspaces.push_back({TW_TRY(writer.program(w.elements * bytes)), w.per_thread});
  }
  for (const te::Lowered::Call& c : f.lowered.calls) {
    plan::FunctionCall& call = out.calls.emplace_back();
    call.before = static_cast<uint32_t>(c.before);
    call.name = c.name;
    for (const te::Lowered::Call::Value& v : c.args) {
      plan::FunctionCall::Argument& a = call.arguments.emplace_back();
      if (v.number && v.number->dtype.is_float()) {
        const auto number = tir::as_const_float(v.number);
        if (!number)
          return Diagnostic(ErrorCode::kInvalidArgument, format("an argument of '{}' is computed", c.name),
                            format("function {}", f.name), "give functions of the runtime numbers and tensors");
        a.kind = plan::FunctionCall::Kind::kFloat, a.number = *number;
      } else if (v.number) {
        a.kind = plan::FunctionCall::Kind::kInteger;
        a.integer = TW_TRY(writer.program(v.number));
      } else {
        a.kind = plan::FunctionCall::Kind::kTensor, a.memory = static_cast<uint32_t>(v.memory), a.dtype = v.dtype;
        for (const PrimExpr& d : v.shape) a.shape.push_back(TW_TRY(writer.program(d)));
      }
    }
  }
  TW_TRY_STATUS(plan::check_function(out));
  return out;
}

}  // namespace

Result<LoweredFunction> with_body(const LoweredFunction& function, const tir::Stmt& body) {
  LoweredFunction out = function;
  const std::vector<tir::Buffer> params =
      function.lowered.kernels.empty() ? std::vector<tir::Buffer>() : function.lowered.kernels[0].params;
  const tir::Stmt kept = tir::mutate(  // kernels evaluate nothing without effect
      body, [](PrimExpr e) { return e; },
      [](const tir::Stmt& s) {
        const auto* call = tir::as<tir::CallExternNode>(s);
        return call && call->name == tir::kEvaluate ? tir::seq({}) : s;
      });
  std::vector<tir::Stmt> parts = {kept};
  if (const auto* seq = tir::as<tir::SeqNode>(kept)) parts = seq->stmts;
  if (!function.lowered.calls.empty() && parts.size() != function.lowered.kernels.size())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("the function calls others between its {} kernels, and {} statements are given",
                             function.lowered.kernels.size(), parts.size()),
                      format("function {}", function.name), "keep the number of statements");
  out.lowered.kernels.clear();
  for (const tir::Stmt& part : parts) {
    tir::PrimFunc kernel;
    kernel.name = parts.size() == 1 ? function.name : format("{}_{}", function.name, out.lowered.kernels.size());
    kernel.params = params;
    kernel.body = part;
    TW_TRY_STATUS(tir::verify(kernel));
    out.lowered.kernels.push_back(std::move(kernel));
  }
  return out;
}

LoweredFunction function_of_kernel(const tir::PrimFunc& kernel) {
  LoweredFunction out;
  out.name = kernel.name;
  out.lowered.kernels = {kernel};
  for (const tir::Buffer& b : kernel.params)
    out.lowered.arguments.push_back({b->name, b->dtype, {tir::make_int(b->size)}});
  out.scalar.assign(kernel.params.size(), false);
  return out;
}

// Names that are not C identifiers are a script's intrinsics, which a lowering rule should have replaced.
static Status check_names(const LoweredFunction& f) {
  std::string wrong;
  auto check = [&](const std::string& name) {
    bool plain = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
    for (char c : name) plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
    if (!plain) wrong = name;
  };
  for (const tir::PrimFunc& k : f.lowered.kernels) {
    tir::for_each_expr(k.body, [&](const PrimExpr& e) {
      if (const auto* n = tir::as<tir::ExternNode>(e)) check(n->name);
    });
    tir::for_each_stmt(k.body, [&](const tir::Stmt& s) {
      if (const auto* n = tir::as<tir::CallExternNode>(s)) check(n->name);
    });
  }
  if (wrong.empty()) return Ok{};
  return Diagnostic(ErrorCode::kInvalidArgument, format("nothing says what the intrinsic '{}' becomes", wrong),
                    format("function {}", f.name),
                    "give it a rule with register_intrin_lowering, or call a C function");
}

Result<std::vector<tir::PrimFunc>> finished_kernels(const LoweredFunction& function) {
  std::vector<tir::PrimFunc> out;
  for (const tir::PrimFunc& k : function.lowered.kernels) {
    tir::PrimFunc kernel = k;
    kernel.name = format("{}_compute_{}", symbol_of(function.name), out.size());
    out.push_back(TW_TRY(tir::lower_kernel(std::move(kernel))));
  }
  return out;
}

Status add_functions(FunctionList functions, Built* built) {
  if (functions.empty()) return Ok{};
  lower::Lowered& lowered = built->lowered;
  std::vector<plan::Function> table;
  std::set<std::string> names;
  for (const auto& f : functions) {
    if (!names.insert(symbol_of(f->name)).second)
      return Diagnostic(ErrorCode::kInvalidArgument, format("two functions are called '{}'", f->name), {},
                        "give each function a name of its own");
    if (!f->lowered.bound.empty())
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("a loop is bound to '{}', and processors have no such threads", f->lowered.bound[0]),
                        format("function {}", f->name), "use parallel in the place of bind");
    TW_TRY_STATUS(check_names(*f));
    std::vector<tir::PrimFunc> kernels = TW_TRY(finished_kernels(*f));
    table.push_back(TW_TRY(described(*f, kernels, static_cast<uint32_t>(lowered.kernels.size()))));
    for (tir::PrimFunc& k : kernels) {
      lowered.plan.kernels.push_back(k.name);
      lowered.kernel_devices.push_back(0);
      lowered.kernels.push_back(std::move(k));
    }
  }
  lowered.plan.metadata[plan::kFunctionsKey] = plan::write_functions(table);
  return Ok{};
}

Status compile_imports(FunctionList functions, Built* built) {
  std::set<std::string> imported;
  for (const auto& f : functions)
    if (!f->lowered.imports.empty() && codegen::backend_of(built->target).product != codegen::Product::kMachineCode)
      return Diagnostic(ErrorCode::kUnsupportedModel,
                        format("the function brings LLVM IR, which the target {} does not take", built->target.kind),
                        format("function {}", f->name), "give a target llvm");
  for (const auto& f : functions)
    for (const std::string& text : f->lowered.imports)
      if (imported.insert(text).second)
        built->objects.push_back(TW_TRY(codegen::compile_llvm_text(text, built->target)));
  return Ok{};
}

Result<Built> build_functions(FunctionList functions, const BuildOptions& options) {
  return guarded([&]() -> Result<Built> {
    Built built;
    built.target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(options.target))));
    built.system_lib = options.system_lib;
    plan::Plan& plan = built.lowered.plan;
    plan.model_name = options.name;
    plan.compiler_version = version();
    plan.target = built.target.str();
    plan.cpu_features = built.target.cpu_features;
    TW_TRY_STATUS(add_functions(functions, &built));
    const int jobs =
        options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    codegen::KernelCache cache(options.kernel_cache);
    built.objects = TW_TRY(codegen::compile_kernels(built.lowered.kernels, built.target, jobs, {}, &cache)).objects;
    TW_TRY_STATUS(compile_imports(functions, &built));
    return built;
  });
}

}  // namespace tilewright::driver
