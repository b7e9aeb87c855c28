// SPDX-License-Identifier: Apache-2.0
#include "driver/external.h"

#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/format.h"
#include "driver/external_code/generators.h"
#include "relay/op.h"
#include "relay/passes/fusion/partition_external.h"
#include "runtime/classic/const_loader.h"
#include "runtime/linked_functions.h"
#include "runtime/tensor_value.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using OrderedJson = nlohmann::ordered_json;

// "[1, 1]" as ["1", "1"], other text as a single item.
OrderedJson attribute_values(const std::string& text) {
  OrderedJson out = OrderedJson::array();
  if (text.size() < 2 || text.front() != '[') {
    out.push_back(text.size() >= 2 && text.front() == '"' ? text.substr(1, text.size() - 2) : text);
    return out;
  }
  const std::string inner = text.substr(1, text.size() - 2);
  for (size_t at = 0; at < inner.size();) {
    const size_t end = std::min(inner.find(',', at), inner.size());
    std::string item = inner.substr(at, end - at);
    item.erase(0, item.find_first_not_of(" ["));
    item.erase(item.find_last_not_of(" ]") + 1);
    if (!item.empty()) out.push_back(item);
    at = end + 1;
  }
  return out;
}

class GraphWriter {
 public:
  explicit GraphWriter(const std::string& symbol) : symbol_(symbol) {}

  Result<ExternalGraph> run(const FunctionNode& function) {
    for (const Expr& p : function.params) TW_TRY_STATUS(add(p, "input", as<VarNode>(p)->name, {}, {}));
    for (const Expr& e : post_order(function.body)) TW_TRY_STATUS(visit(e));
    OrderedJson heads = OrderedJson::array();
    for (const auto& entry : TW_TRY(entries_of(function.body))) heads.push_back(entry);
    OrderedJson rows = OrderedJson::array({0});
    for (int n : outputs_) rows.push_back(rows.back().get<int>() + n);
    OrderedJson graph;
    graph["nodes"] = nodes_;
    graph["arg_nodes"] = arguments_;
    graph["heads"] = heads;
    graph["node_row_ptr"] = rows;
    graph["symbol"] = symbol_;
    out_.json = graph.dump(1, ' ', false, OrderedJson::error_handler_t::replace);
    return std::move(out_);
  }

 private:
  static Diagnostic unsupported(const std::string& what) {
    return Diagnostic(ErrorCode::kUnsupportedModel, format("{} cannot be given to an external code generator", what));
  }

  Status visit(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kConstant:
        out_.constants.push_back(as<ConstantNode>(e)->data);
        return add(e, "const", format("{}_const_{}", symbol_, out_.constants.size() - 1), {}, {});
      case ExprKind::kCall: {
        const auto* call = as<CallNode>(e);
        if (const OpDef* op = called_op(e)) return add(e, "kernel", op->name, call->args, attributes(*call));
        const auto* function = as<FunctionNode>(call->callee);
        auto composite = function ? function->attrs.find("Composite") : DictAttrs::const_iterator();
        if (!function || composite == function->attrs.end())
          return unsupported("a call of a function that is no composite");
        return call_composite(e, *function, std::get<std::string>(composite->second));
      }
      case ExprKind::kVar:
        return ids_.count(e.get()) ? Status(Ok{}) : Status(unsupported("a variable of another function"));
      case ExprKind::kOp:
      case ExprKind::kFunction:
      case ExprKind::kTuple:
      case ExprKind::kTupleGetItem:
        return Ok{};
      case ExprKind::kGlobalVar:
      case ExprKind::kLet:
      case ExprKind::kIf:
      case ExprKind::kConstructor:
      case ExprKind::kMatch:
      case ExprKind::kRefCreate:
      case ExprKind::kRefRead:
      case ExprKind::kRefWrite:
        break;
    }
    return unsupported("control flow");
  }

  // Adds one node: its arguments, then inner constants in order of use. Its
  // attributes are those of its operators (the first wins on conflicts);
  // operator_attrs has each operator's complete attributes as JSON text.
  Status call_composite(const Expr& e, const FunctionNode& function, const std::string& name) {
    std::vector<Expr> inputs;
    OrderedJson attrs = OrderedJson::object(), each = OrderedJson::array();
    std::string operators;
    const auto* call = as<CallNode>(e);
    for (const Expr& inner : post_order(function.body)) {
      const OpDef* op = called_op(inner);
      if (!op) continue;
      operators += (operators.empty() ? "" : " ") + std::string(op->name);
      for (const Expr& arg : as<CallNode>(inner)->args) {
        if (as<ConstantNode>(arg) && !ids_.count(arg.get())) TW_TRY_STATUS(visit(arg));
        const auto param = std::find(function.params.begin(), function.params.end(), arg);
        if (param != function.params.end())
          inputs.push_back(call->args[static_cast<size_t>(param - function.params.begin())]);
        else if (as<ConstantNode>(arg))
          inputs.push_back(arg);
      }
      const OrderedJson of_operator = attributes(*as<CallNode>(inner));
      for (const auto& [key, value] : of_operator.items())
        if (!attrs.contains(key)) attrs[key] = value;
      each.push_back(OrderedJson{{"op", op->name}, {"attrs", of_operator}}.dump());
    }
    attrs["operators"] = OrderedJson::array({OrderedJson::array({operators})});
    attrs["operator_attrs"] = OrderedJson::array({each});
    if (auto from = function.attrs.find("PartitionedFromPattern"); from != function.attrs.end())
      attrs["PartitionedFromPattern"] = OrderedJson::array({OrderedJson::array({std::get<std::string>(from->second)})});
    return add(e, "kernel", name, inputs, attrs);
  }

  static OrderedJson attributes(const CallNode& call) {
    OrderedJson out = OrderedJson::object();
    for (const auto& [name, text] : attr_texts(call.attrs)) out[name] = OrderedJson::array({attribute_values(text)});
    return out;
  }

  Status add(const Expr& e, const char* op, const std::string& name, const std::vector<Expr>& inputs,
             OrderedJson attrs) {
    const auto* tuple = as_tuple(e->type);
    std::vector<Type> types = tuple ? tuple->fields : std::vector<Type>{e->type};
    OrderedJson shapes = OrderedJson::array(), dtypes = OrderedJson::array(), wires = OrderedJson::array();
    for (const Type& type : types) {
      const auto* tensor = as_tensor(type);
      auto shape = tensor ? static_shape(tensor->shape) : std::nullopt;
      if (!shape) return unsupported(format("'{}' of type {}", name, type_str(type)));
      shapes.push_back(*shape);
      dtypes.push_back(tensor->dtype.str());
    }
    for (const Expr& input : inputs)
      for (const auto& entry : TW_TRY(entries_of(input))) wires.push_back(entry);
    OrderedJson node;
    node["op"] = op;
    node["name"] = name;
    if (std::string_view(op) == "kernel") {
      attrs["num_inputs"] = format("{}", wires.size());
      attrs["num_outputs"] = format("{}", types.size());
      node["inputs"] = wires;
    } else {
      arguments_.push_back(nodes_.size());
    }
    attrs["shape"] = OrderedJson::array({shapes});
    attrs["dtype"] = OrderedJson::array({dtypes});
    node["attrs"] = attrs;
    ids_[e.get()] = nodes_.size();
    nodes_.push_back(std::move(node));
    outputs_.push_back(static_cast<int>(types.size()));
    return Ok{};
  }

  // [node, output, 0] for each tensor of a value.
  Result<std::vector<OrderedJson>> entries_of(const Expr& e) {
    std::vector<OrderedJson> out;
    if (const auto* tuple = as<TupleNode>(e)) {
      for (const Expr& field : tuple->fields)
        for (auto& entry : TW_TRY(entries_of(field))) out.push_back(std::move(entry));
      return out;
    }
    if (const auto* get = as<TupleGetItemNode>(e)) {
      auto all = TW_TRY(entries_of(get->tuple));
      if (static_cast<size_t>(get->index) >= all.size()) return unsupported("a field that its tuple lacks");
      return std::vector<OrderedJson>{all[static_cast<size_t>(get->index)]};
    }
    auto found = ids_.find(e.get());
    if (found == ids_.end()) return unsupported("such a value");
    const auto* tuple = as_tuple(e->type);
    for (size_t i = 0; i < (tuple ? tuple->fields.size() : 1); ++i)
      out.push_back(OrderedJson::array({found->second, i, 0}));
    return out;
  }

  const std::string& symbol_;
  ExternalGraph out_;
  OrderedJson nodes_ = OrderedJson::array(), arguments_ = OrderedJson::array();
  std::vector<int> outputs_;
  std::unordered_map<const ExprNode*, size_t> ids_;
};

// Uses the global function relay.ext.<compiler> as a generator.
Result<SavedModule> generate_by_name(const std::string& name, const std::string& symbol, const ExternalGraph& graph) {
  runtime::FunctionRef function = TW_TRY(runtime::require_global(name, "relay.ext."));
  std::vector<runtime::Value> constants;
  for (const Tensor& t : graph.constants) constants.push_back(runtime::copy_value({"", t.dtype(), t.shape()}, t.raw()));
  const runtime::Value arguments[] = {runtime::Value::string(symbol), runtime::Value::string(graph.json),
                                      runtime::Value::array(std::move(constants))};
  const tw_value raw[] = {arguments[0].get(), arguments[1].get(), arguments[2].get()};
  runtime::Value made = TW_TRY(runtime::call(function.get(), raw));
  auto module = TW_TRY(runtime::Arguments(std::span(&made.get(), 1), name).module(0));
  std::string bytes = TW_TRY(module->save());
  return SavedModule{module->type_key(), std::move(bytes), {}};
}

const ExternalCodegen* generator_of(const std::string& compiler, const std::vector<ExternalCodegen>& codegens) {
  for (const ExternalCodegen& c : codegens)
    if (c.name == compiler && (c.generate || c.generate_from)) return &c;
  return runtime::find_global("relay.ext." + compiler) ? nullptr : own_generator(compiler);
}

Result<SavedModule> generate(const lower::ExternalFunction& f, const ExternalCodegen* codegen) {
  if (codegen && codegen->generate_from) return codegen->generate_from(f.symbol, f.function);
  const ExternalGraph graph = TW_TRY(external_graph(*as<FunctionNode>(f.function), f.symbol));
  return codegen ? codegen->generate(f.symbol, graph.json, graph.constants)
                 : generate_by_name("relay.ext." + f.compiler, f.symbol, graph);
}

// A function's constants by the names that its module expects.
Result<std::map<std::string, Tensor>> named_constants(const lower::ExternalFunction& f,
                                                      const ExternalCodegen* codegen) {
  if (codegen && codegen->constants) return codegen->constants(f.symbol, f.function);
  const ExternalGraph graph = TW_TRY(external_graph(*as<FunctionNode>(f.function), f.symbol));
  std::map<std::string, Tensor> out;
  for (size_t i = 0; i < graph.constants.size(); ++i) out[format("{}_const_{}", f.symbol, i)] = graph.constants[i];
  return out;
}

// Collects the library's imported modules; those with constants go below one const_loader.
class CodeCollector {
 public:
  // `constants` gives the function's constants by name; called only if the module needs some.
  template <class Constants>
  Status add(const lower::ExternalFunction& f, SavedModule made, Constants constants) {
    std::vector<std::string> wanted = std::move(made.constants);
    const bool source = made.type_key == kCSourceKey;
    if (source) {
      CSource code = TW_TRY(read_c_source(made.bytes));
      wanted = code.constants;
      std::vector<std::string> functions = code.functions;
      if (!wanted.empty()) functions.push_back("__init_" + f.symbol);
      std::vector<std::string>& names = wanted.empty() ? linked_ : linked_with_constants_;
      names.insert(names.end(), functions.begin(), functions.end());
      out_.sources.push_back(std::move(code));
    } else {
      (wanted.empty() ? plain_ : with_constants_).push_back({made.type_key, std::move(made.bytes)});
    }
    if (wanted.empty()) return Ok{};
    const std::map<std::string, Tensor> known = TW_TRY(constants());
    for (const std::string& name : wanted) TW_TRY_STATUS(add_constant(name, known));
    if (source)
      for (const std::string& name : wanted) out_.source_constants[f.symbol].push_back(known.at(name));
    record_.functions.push_back({f.symbol, std::move(wanted)});
    return Ok{};
  }

  ExternalCode finish() && {
    if (!linked_.empty()) out_.modules.push_back({runtime::kLinkedRecord, runtime::write_linked_record(linked_)});
    out_.modules.insert(out_.modules.end(), plain_.begin(), plain_.end());
    if (record_.functions.empty()) return std::move(out_);
    out_.modules.push_back({runtime::kConstLoader, runtime::write_const_loader(record_)});
    const uint64_t loader = out_.modules.size();
    if (!linked_with_constants_.empty())
      out_.modules.push_back({runtime::kLinkedRecord, runtime::write_linked_record(linked_with_constants_), loader});
    for (runtime::ImportRecord& module : with_constants_) {
      module.importer = loader;
      out_.modules.push_back(std::move(module));
    }
    return std::move(out_);
  }

 private:
  Status add_constant(const std::string& name, const std::map<std::string, Tensor>& constants) {
    auto found = constants.find(name);
    if (found == constants.end()) {
      std::string known;
      for (const auto& [other, tensor] : constants) known += (known.empty() ? "" : ", ") + other;
      return Diagnostic(ErrorCode::kCodegenFailed,
                        format("the module wants a constant '{}', which the function has not", name), {},
                        known.empty() ? "the function has no constants" : "its constants are " + known);
    }
    if (!seen_.insert(name).second) return Ok{};
    const Tensor& t = kept_.emplace_back(found->second);
    record_.variables.push_back(
        {name, t.dtype(), t.shape(), {static_cast<const std::byte*>(t.raw()), static_cast<size_t>(t.bytes())}});
    return Ok{};
  }

  ExternalCode out_;
  std::vector<std::string> linked_, linked_with_constants_;
  std::vector<runtime::ImportRecord> plain_, with_constants_;
  runtime::ConstLoaderRecord record_;
  std::deque<Tensor> kept_;  // tensors that the record refers to
  std::set<std::string> seen_;
};

}  // namespace

Result<ExternalGraph> external_graph(const FunctionNode& function, const std::string& symbol) {
  return GraphWriter(symbol).run(function);
}

Result<Module> take_external_parts(const Module& module, const std::vector<ExternalCodegen>& codegens,
                                   const std::string& mod_name) {
  Module out = module;
  for (const ExternalCodegen& codegen : codegens) {
    if (codegen.patterns.empty()) continue;
    std::vector<CompositePattern> patterns = TW_TRY(parse_composite_patterns(codegen.patterns));
    ExternalCompiler compiler{codegen.name, std::move(patterns), {}};
    Status problem = Ok{};
    if (codegen.supports)
      compiler.supports = [&](const FunctionNode& composite) {
        if (!problem.ok()) return false;
        // Presents the match as part of one kernel.
        std::vector<Expr> params;
        for (const Expr& p : composite.params) params.push_back(make_var(as<VarNode>(p)->name, p->type));
        Expr alone = make_function(
            params, call_function(make_function(composite.params, composite.body, composite.attrs), params));
        auto graph = external_graph(*as<FunctionNode>(alone), "match");
        if (!graph.ok()) return false;  // for example a free size
        auto taken = codegen.supports(graph->json);
        if (taken.ok()) return *taken;
        problem = std::move(taken).error();
        return false;
      };
    out = TW_TRY(partition_external(out, compiler, mod_name));
    TW_TRY_STATUS(std::move(problem));
  }
  return out;
}

Result<std::vector<codegen::CExternal>> c_externals(const plan::Plan& plan, const ExternalCode& code) {
  std::set<std::string> linked;
  for (const CSource& source : code.sources) linked.insert(source.functions.begin(), source.functions.end());
  std::vector<codegen::CExternal> out;
  for (const std::string& symbol : plan.externals) {
    if (!linked.count(symbol))
      return Diagnostic(ErrorCode::kUnsupportedModel,
                        format("the model calls '{}' of an imported module, and a program in C has no runtime to find "
                               "it with",
                               symbol),
                        {},
                        "generate C source for it, compile without the external code generator, or export a library");
    auto constants = code.source_constants.find(symbol);
    out.push_back({symbol, constants == code.source_constants.end() ? std::vector<Tensor>() : constants->second});
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> c_external_files(const ExternalCode& code, const std::string& name,
                                                                  int first) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const CSource& source : code.sources)
    out.emplace_back(format("codegen/host/src/{}_lib{}.{}", name, first + static_cast<int>(out.size()), source.form),
                     with_classic_headers(source.code));
  return out;
}

Result<ExternalCode> compile_external(const std::vector<lower::ExternalFunction>& functions,
                                      const std::vector<ExternalCodegen>& codegens) {
  CodeCollector collector;
  for (const lower::ExternalFunction& f : functions) {
    if (f.compiler.empty()) continue;  // Extern: its code is in an imported module
    auto compile = [&]() -> Status {
      const ExternalCodegen* codegen = generator_of(f.compiler, codegens);
      SavedModule made = TW_TRY(generate(f, codegen));
      if (made.type_key.empty()) return Diagnostic(ErrorCode::kCodegenFailed, "the module has no type key");
      // A script's updater is told of every function, also where the module wants no constants.
      std::optional<std::map<std::string, Tensor>> known;
      if (codegen && codegen->constants) known = TW_TRY(named_constants(f, codegen));
      return collector.add(f, std::move(made), [&]() -> Result<std::map<std::string, Tensor>> {
        if (known) return *known;
        return named_constants(f, codegen);
      });
    };
    if (Status done = compile(); !done.ok()) {
      Diagnostic error = std::move(done).error();
      error.where = format("external code generator '{}', function '{}'", f.compiler, f.symbol);
      return error;
    }
  }
  return std::move(collector).finish();
}

}  // namespace tilewright::driver
