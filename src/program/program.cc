// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/format.h"
#include "program/function_compiler.h"
#include "relay/bind.h"
#include "relay/op.h"
#include "relay/passes/pipeline/expand_composed.h"

namespace tilewright::program {

using namespace relay;
using runtime::vm::Opcode;
using runtime::vm::Program;
using runtime::vm::TensorSpec;

Diagnostic unsupported(const Expr& e, std::string what) {
  return Diagnostic(ErrorCode::kUnsupportedModel, std::move(what), e->span ? *e->span : "");
}

ProgramCompiler::ProgramCompiler(const Module& module) : module_(module) {
  for (const auto& [name, function] : module.functions)
    for (const Expr& e : post_order(function, true))
      has_references = has_references || e->kind == ExprKind::kRefCreate || e->kind == ExprKind::kRefRead ||
                       e->kind == ExprKind::kRefWrite;
}

// Describes inputs and outputs for the runtime's checks.
Status ProgramCompiler::describe_main() {
  const FunctionNode* main = module_.main_function();
  if (!main) return Diagnostic(ErrorCode::kUnsupportedModel, "the module has no main function");
  auto listed = [&](const char* name) {
    auto it = main->attrs.find(name);
    const auto* list = it == main->attrs.end() ? nullptr : std::get_if<std::vector<std::string>>(&it->second);
    return list ? *list : std::vector<std::string>();
  };
  const std::vector<std::string> kinds = listed("input_kinds"), names = listed("output_names");
  constexpr std::string_view kUnranked = "unranked ";
  for (size_t i = 0; i < main->params.size(); ++i) {
    const Expr& p = main->params[i];
    const std::string kind = i < kinds.size() ? kinds[i] : "";
    TensorSpec spec{as<VarNode>(p)->name, kFloat32, {}};
    if (kind.starts_with(kUnranked)) {
      spec.kind = TensorSpec::Kind::kUnranked;
      spec.dtype = TW_TRY(parse_dtype(kind.substr(kUnranked.size())));
    } else if (kind == "value") {
      spec.kind = TensorSpec::Kind::kOther;
    } else if (const auto* t = as_tensor(p->type)) {
      spec.dtype = t->dtype;
      for (const Dim& d : t->shape) spec.shape.push_back(d.constant().value_or(-1));
      if (t->shape.size() <= 1 && (t->dtype.is_integral() || t->dtype.is_bool())) facts.set_setting(p);
    } else {
      return unsupported(p,
                         format("main's parameter '{}' is {}, not a tensor", as<VarNode>(p)->name, type_str(p->type)));
    }
    if (spec.dtype.is_string()) facts.set_text(p);
    program_.inputs.push_back(std::move(spec));
  }
  const auto* tuple = as<TupleNode>(facts.aliases.resolve(main->body));
  const auto* type = as_tuple(main->body->type);
  // A single result may itself be a tuple: a sequence.
  const size_t results = names.size() == 1 ? 1 : tuple ? tuple->fields.size() : type ? type->fields.size() : 1;
  for (size_t i = 0; i < results; ++i)
    program_.outputs.push_back(names.size() == results ? names[i] : format("output_{}", i));
  return Ok{};
}

Result<Program> ProgramCompiler::run(const std::string& target) {
  program_.target = target;
  TW_TRY_STATUS(describe_main());
  for (const auto& [name, function] : module_.functions) {
    if (!as<FunctionNode>(function))
      return Diagnostic(ErrorCode::kUnsupportedModel, format("global '{}' is not a function", name));
    index_[name] = static_cast<int64_t>(program_.executable.functions.size());
    program_.executable.functions.push_back({});
  }
  for (const auto& [name, function] : module_.functions)
    TW_TRY_STATUS(compile(static_cast<size_t>(index_[name]), name, *as<FunctionNode>(function), {}, nullptr));
  program_.shared = regions_.take_shared();
  TW_TRY_STATUS(runtime::vm::verify_executable(program_.executable));
  return std::move(program_);
}

Status ProgramCompiler::compile(size_t index, const std::string& name, const FunctionNode& function,
                                const std::vector<Expr>& captured, const ExprNode* self) {
  FunctionCompiler compiler(*this, name, self);
  Registers known;
  std::vector<int64_t> own;
  for (size_t i = 0; i < captured.size(); ++i)
    own.push_back(known[captured[i].get()] = compiler.parameter(format("captured_{}", i)));
  for (const Expr& p : function.params) known[p.get()] = compiler.parameter(as<VarNode>(p)->name);
  if (self) {
    std::vector<int64_t> fields{static_cast<int64_t>(index), static_cast<int64_t>(own.size()),
                                known[self] = compiler.fresh()};
    fields.insert(fields.end(), own.begin(), own.end());
    compiler.emit(Opcode::kAllocClosure, std::move(fields));
  }
  TW_TRY_STATUS(compiler.whole(function.body, std::move(known), captured.size()));
  program_.executable.functions[index] = compiler.take();
  return Ok{};
}

Result<int64_t> ProgramCompiler::add_closure(const FunctionNode& function, const std::vector<Expr>& captured,
                                             const ExprNode* self) {
  if (++depth_ > 200) return Diagnostic(ErrorCode::kLimitExceeded, "functions nest deeper than 200");
  const size_t index = program_.executable.functions.size();
  program_.executable.functions.push_back({});
  program_.executable.functions.back().name = format("lambda_{}", index);
  TW_TRY_STATUS(compile(index, format("lambda_{}", index), function, captured, self));
  --depth_;
  return static_cast<int64_t>(index);
}

Result<int64_t> ProgramCompiler::function_index(const Expr& global) const {
  auto it = index_.find(as<GlobalVarNode>(global)->name);
  if (it == index_.end())
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      format("the module has no function '{}'", as<GlobalVarNode>(global)->name));
  return it->second;
}

int64_t ProgramCompiler::add_constant(const Tensor& t) {
  program_.executable.constants.push_back({t, "", 0});
  return static_cast<int64_t>(program_.executable.constants.size()) - 1;
}

namespace {

// As the classic machine names what it calls: vm_mod_fused_<operators>, at most 80 characters, then the region's
// number.
std::string primitive_name(const Expr& function, size_t number) {
  std::string name = "vm_mod_fused";
  for (const Expr& e : post_order(function, true))
    if (const OpDef* op = called_op(e); op && name.size() + std::strlen(op->name) < 80) name += format("_{}", op->name);
  std::replace(name.begin(), name.end(), '.', '_');
  return format("{}_{}", name, number);
}

}  // namespace

int64_t ProgramCompiler::add_region(const char* format_name, const Expr& function) {
  program_.executable.primitives.push_back(primitive_name(function, program_.regions.size()));
  program_.regions.push_back(regions_.write(format_name, function));
  return static_cast<int64_t>(program_.regions.size()) - 1;
}

int64_t ProgramCompiler::add_host(const std::string& function, size_t arguments) {
  runtime::vm::Region region{"host", {}, function, {}};
  for (size_t i = 0; i < arguments; ++i) region.inputs.push_back(format("a{}", i));
  program_.executable.primitives.push_back(format("host_{}", function.substr(0, function.find('\n'))));
  program_.regions.push_back(std::move(region));
  return static_cast<int64_t>(program_.regions.size()) - 1;
}

Result<Program> make_program(const Module& module, const std::string& target) {
  // Expansions of composed operators may contain host functions.
  PassContext context;
  const Module expanded = TW_TRY(expand_composed(with_distinct_parameters(module), context));
  return ProgramCompiler(expanded).run(target);
}

Need need_of(const Module& module) {
  const auto* main = module.main_function();
  if (!main) return Need::kNone;
  // Also inside a tuple of results.
  auto any_tensor = [](const Type& type, auto is) {
    const auto* tuple = as_tuple(type);
    const std::vector<Type> parts = tuple ? tuple->fields : std::vector<Type>{type};
    return std::any_of(parts.begin(), parts.end(), [&](const Type& part) {
      const auto* t = as_tensor(part);
      return t && is(*t);
    });
  };
  auto free = [&](const Type& type) {
    return any_tensor(type, [](const TensorTypeNode& t) { return !static_shape(t.shape); });
  };
  // Kernels have no text: what of it does not become numbers during the import or in constant folding is evaluated.
  auto text = [&](const Type& type) {
    return any_tensor(type, [](const TensorTypeNode& t) { return t.dtype.is_string(); });
  };
  if (text(main->body->type)) return Need::kCertain;
  for (const Expr& p : main->params)
    if (!is_complete(p->type) || free(p->type)) return Need::kCertain;
  Need need = Need::kNone;
  std::unordered_set<const ExprNode*> varying;  // depend on the model's inputs
  for (const Expr& e : post_order(main->body)) {
    const std::vector<Expr> parts = children(e);
    if (e->kind == ExprKind::kVar ||
        std::any_of(parts.begin(), parts.end(), [&](const Expr& kid) { return varying.count(kid.get()) != 0; }))
      varying.insert(e.get());
    if (text(e->type)) {
      if (varying.count(e.get())) return Need::kCertain;
      need = Need::kPossible;
    }
    const auto* call = as<CallNode>(e);
    if (call && called_op(e) && !is_complete(e->type)) return Need::kCertain;
    const bool decides = e->kind == ExprKind::kIf || e->kind == ExprKind::kMatch || e->kind == ExprKind::kRefCreate;
    if (decides || (call && (free(e->type) || (!called_op(e) && !is_closed_function(call->callee)))))
      need = Need::kPossible;
  }
  return need;
}

}  // namespace tilewright::program
