// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/read_json.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/format.h"
#include "frontend/torch/schema.h"

namespace tilewright::torch {
namespace {

using nlohmann::json;

Size read_size(const json& j) {
  Size size;
  if (const json* value = find_member(j, "as_int")) {
    size.value = integer_of(*value, "as_int");
  } else {
    size.expression = text_of(member(member(j, "as_expr"), "expr_str"), "expr_str");
    // Newer versions write a symbol as Symbol('s0', positive=True, integer=True).
    constexpr std::string_view kSymbol = "Symbol('";
    if (size.expression.starts_with(kSymbol) && size.expression.ends_with(")") &&
        size.expression.find("Symbol(", 1) == std::string::npos) {
      const size_t end = size.expression.find('\'', kSymbol.size());
      if (end != std::string::npos) size.expression = size.expression.substr(kSymbol.size(), end - kSymbol.size());
    }
    // A symbol that the export found to be one number is written as an expression, too.
    int64_t number = 0;
    const char* end = size.expression.data() + size.expression.size();
    if (auto [at, error] = std::from_chars(size.expression.data(), end, number); error == std::errc() && at == end) {
      size.value = number;
      size.expression.clear();
    }
  }
  return size;
}

Graph read_graph(const json& j, int depth, int64_t* nodes);

// Reads all graphs of a program: its node count is that of the whole program.
struct ArgumentReader {
  int depth = 0;
  int64_t* nodes = nullptr;

  Argument value(const json& named) const {
    Argument a;
    a.kind = Argument::kValue;
    a.text = text_of(member(named, "name"), "name");
    return a;
  }
  template <class Read>
  Argument list(const json& items, const char* what, Read&& read) const {
    Argument a;
    a.kind = Argument::kList;
    for (const json& item : list_of(items, what)) a.items.push_back(read(item));
    return a;
  }
  Argument boolean(const json& j) const {
    Argument a;
    a.kind = Argument::kBool;
    a.integer = bool_of(j, "as_bool");
    return a;
  }
  Argument integer(const json& j) const {
    Argument a;
    a.kind = Argument::kInt;
    a.integer = integer_of(j, "as_int");
    return a;
  }
  Argument real(const json& j) const {
    Argument a;
    a.kind = Argument::kFloat;
    a.number = number_of(j, "as_float");
    return a;
  }
  Argument text(const json& j) const {
    Argument a;
    a.kind = Argument::kText;
    a.text = text_of(j, "as_string");
    return a;
  }
  // A number given as a literal or by the name of a value.
  Argument symbolic(const json& j) const {
    if (const json* name = find_member(j, "as_name")) {
      Argument a;
      a.kind = Argument::kValue;
      a.text = text_of(*name, "as_name");
      return a;
    }
    return read(j);
  }
  Argument inner(const json& j) const { return ArgumentReader{depth + 1, nodes}.read(j); }
  Argument read(const json& j) const;
};

Argument ArgumentReader::read(const json& j) const {
  if (depth > kMaxDepth) throw Diagnostic(ErrorCode::kLimitExceeded, "the graph's arguments are nested too deeply");
  const auto only = only_member(j, "an argument of the graph");
  const std::string& kind = only.first;
  const json& v = only.second;
  auto numbered = [&](Argument::Kind k) {
    Argument a;
    a.kind = k;
    a.integer = integer_of(v, kind.c_str());
    return a;
  };
  auto each_value = [&](const json& item) { return value(item); };
  auto each_symbolic = [&](const json& item) { return symbolic(item); };
  if (kind == "as_none") return {};
  if (kind == "as_tensor" || kind == "as_value" || kind == "as_token") return value(v);
  if (kind == "as_tensors") return list(v, "as_tensors", each_value);
  if (kind == "as_int") return integer(v);
  if (kind == "as_ints") return list(v, "as_ints", [&](const json& i) { return integer(i); });
  if (kind == "as_float") return real(v);
  if (kind == "as_floats") return list(v, "as_floats", [&](const json& i) { return real(i); });
  if (kind == "as_string") return text(v);
  if (kind == "as_strings") return list(v, "as_strings", [&](const json& i) { return text(i); });
  if (kind == "as_bool") return boolean(v);
  if (kind == "as_bools") return list(v, "as_bools", [&](const json& i) { return boolean(i); });
  if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") return symbolic(v);
  if (kind == "as_sym_ints" || kind == "as_sym_bools" || kind == "as_sym_floats")
    return list(v, kind.c_str(), each_symbolic);
  if (kind == "as_optional_tensor") return inner(v);
  if (kind == "as_optional_tensors" || kind == "as_list")
    return list(v, kind.c_str(), [&](const json& item) { return inner(item); });
  if (kind == "as_nested_tensors")
    return list(v, kind.c_str(), [&](const json& item) { return list(item, "as_nested_tensors", each_value); });
  if (kind == "as_int_lists")
    return list(v, kind.c_str(), [&](const json& item) {
      return list(item, "as_int_lists", [&](const json& i) { return integer(i); });
    });
  if (kind == "as_scalar_type") {
    Argument a;
    a.kind = Argument::kDtype;
    const int64_t number = integer_of(v, "as_scalar_type");
    const std::optional<DataType> part = complex_part(number);
    a.complex = part.has_value();
    a.dtype = part ? *part : dtype_of(number);
    return a;
  }
  if (kind == "as_operator") {
    Argument a;
    a.kind = Argument::kText;
    a.text = text_of(v, "as_operator");
    return a;
  }
  if (kind == "as_layout") return numbered(Argument::kLayout);
  if (kind == "as_memory_format") return numbered(Argument::kMemoryFormat);
  if (kind == "as_device") {
    Argument a;
    a.kind = Argument::kDevice;
    a.text = text_of(member(v, "type"), "type");
    return a;
  }
  if (kind == "as_complex") {
    Argument a;
    a.kind = Argument::kComplex;
    a.number = number_of(member(v, "real"), "real");
    a.imaginary = number_of(member(v, "imag"), "imag");
    return a;
  }
  if (kind == "as_graph") {
    Argument a;
    a.kind = Argument::kGraph;
    a.text = text_of(member(v, "name"), "name");
    a.graph = std::make_shared<const Graph>(read_graph(member(v, "graph"), depth + 1, nodes));
    return a;
  }
  Argument other;
  other.kind = Argument::kOther;
  other.text = kind;
  return other;
}

Node read_one_node(const json& j, int depth, int64_t* nodes) {
  if (++*nodes > kMaxNodes)
    throw Diagnostic(ErrorCode::kLimitExceeded, format("the model has more than {} nodes", kMaxNodes));
  Node node;
  node.target = text_of(member(j, "target"), "target");
  for (std::string_view prefix : {"torch.ops.", "_operator.", "builtins."})
    if (node.target.starts_with(prefix)) {
      node.target = (prefix == "torch.ops." ? "" : "operator.") + node.target.substr(prefix.size());
      break;
    }
  const ArgumentReader reader{depth, nodes};
  for (const json& input : list_of(member(j, "inputs"), "inputs"))
    node.inputs.push_back({text_of(member(input, "name"), "name"), reader.read(member(input, "arg"))});
  for (const json& output : list_of(member(j, "outputs"), "outputs")) node.outputs.push_back(reader.read(output));
  if (const json* name = find_member(j, "name")) node.name = text_of(*name, "name");
  if (node.name.empty() && !node.outputs.empty() && node.outputs[0].kind == Argument::kValue)
    node.name = node.outputs[0].text;
  return node;
}

Graph read_graph(const json& j, int depth, int64_t* nodes) {
  if (depth > kMaxDepth) throw Diagnostic(ErrorCode::kLimitExceeded, "the graph's sub-graphs are nested too deeply");
  Graph graph;
  const ArgumentReader reader{depth, nodes};
  for (const json& input : list_of(member(j, "inputs"), "inputs")) graph.inputs.push_back(reader.read(input));
  for (const json& output : list_of(member(j, "outputs"), "outputs")) graph.outputs.push_back(reader.read(output));
  for (const json& node : list_of(member(j, "nodes"), "nodes"))
    graph.nodes.push_back(read_one_node(node, depth, nodes));
  if (const json* tensors = find_member(j, "tensor_values")) {
    if (!tensors->is_object()) malformed("the graph's 'tensor_values' are not named");
    // Only the types of graph inputs are needed; all others are inferred.
    for (const Argument& input : graph.inputs)
      if (auto it = tensors->find(input.text); input.kind == Argument::kValue && it != tensors->end())
        graph.tensors.emplace(input.text, read_tensor_meta(*it));
  }
  if (const json* integers = find_member(j, "sym_int_values")) {
    if (!integers->is_object()) malformed("the graph's 'sym_int_values' are not named");
    for (const auto& [name, size] : integers->items()) graph.integers.emplace(name, read_size(size));
  }
  return graph;
}

InputSpec read_input_spec(const json& j) {
  const auto only = only_member(j, "an input of the signature");
  const std::string& kind = only.first;
  const json& v = only.second;
  InputSpec spec;
  int64_t nodes = 0;
  const ArgumentReader reader{0, &nodes};
  auto tensor = [&](InputSpec::Kind k, const char* target) {
    spec.kind = k;
    spec.name = text_of(member(member(v, "arg"), "name"), "name");
    if (target) spec.target = text_of(member(v, target), target);
  };
  if (kind == "user_input") {
    spec.literal = reader.read(member(v, "arg"));
    if (spec.literal.kind == Argument::kValue)
      spec.name = spec.literal.text;
    else
      spec.kind = InputSpec::kLiteral;
  } else if (kind == "parameter") {
    tensor(InputSpec::kParameter, "parameter_name");
  } else if (kind == "buffer") {
    tensor(InputSpec::kBuffer, "buffer_name");
  } else if (kind == "tensor_constant") {
    tensor(InputSpec::kTensorConstant, "tensor_constant_name");
  } else if (kind == "custom_obj") {
    tensor(InputSpec::kObject, "custom_obj_name");
  } else if (kind == "token") {
    tensor(InputSpec::kToken, nullptr);
  } else if (kind == "constant_input") {
    spec.kind = InputSpec::kLiteral;
    spec.name = text_of(member(v, "name"), "name");
    spec.literal = reader.read(member(v, "value"));
  } else {
    malformed(format("the signature has an input of the unknown kind '{}'", kind));
  }
  return spec;
}

OutputSpec read_output_spec(const json& j) {
  const auto only = only_member(j, "an output of the signature");
  const std::string& kind = only.first;
  const json& v = only.second;
  OutputSpec spec;
  int64_t nodes = 0;
  const ArgumentReader reader{0, &nodes};
  auto tensor = [&](OutputSpec::Kind k, const char* target) {
    spec.kind = k;
    spec.value = reader.value(member(v, "arg"));
    if (target) spec.target = text_of(member(v, target), target);
  };
  if (kind == "user_output")
    spec.value = reader.read(member(v, "arg"));
  else if (kind == "loss_output")
    tensor(OutputSpec::kLoss, nullptr);
  else if (kind == "buffer_mutation")
    tensor(OutputSpec::kBufferMutation, "buffer_name");
  else if (kind == "parameter_mutation")
    tensor(OutputSpec::kParameterMutation, "parameter_name");
  else if (kind == "user_input_mutation")
    tensor(OutputSpec::kInputMutation, "user_input_name");
  else if (kind == "gradient_to_parameter")
    tensor(OutputSpec::kGradient, "parameter_name");
  else if (kind == "gradient_to_user_input")
    tensor(OutputSpec::kGradient, "user_input_name");
  else if (kind == "token")
    tensor(OutputSpec::kToken, nullptr);
  else
    malformed(format("the signature has an output of the unknown kind '{}'", kind));
  return spec;
}

// Members meant for people, which are skipped: stack traces are the largest part of the file.
bool is_trace(const std::string& key) {
  return key == "stack_trace" || key == "nn_module_stack" || key == "source_fn_stack" || key == "torch_fn" ||
         key == "from_node" || key == "forward_source_path";
}

json parsed(std::string_view text) {
  std::string key;
  auto keep = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key) key = value.get<std::string>();
    return event != json::parse_event_t::value || !value.is_string() || !is_trace(key);
  };
  json j = json::parse(text.begin(), text.end(), keep, /*allow_exceptions=*/false);
  if (j.is_discarded()) malformed("the graph is not JSON");
  return j;
}

Program program_of(const json& j) {
  Program program;
  const json& version = member(j, "schema_version");
  program.schema_major = integer_of(member(version, "major"), "major");
  program.schema_minor = integer_of(member(version, "minor"), "minor");
  if (const json* torch = find_member(j, "torch_version")) program.torch_version = text_of(*torch, "torch_version");
  if (program.schema_major > kSchemaMajor)
    throw Diagnostic(ErrorCode::kUnsupportedModel,
                     format("the model is of version {}.{} of torch.export's schema (written by PyTorch {}); version "
                            "{} is the newest that can be read",
                            program.schema_major, program.schema_minor, program.torch_version, kSchemaMajor),
                     "", "update Tilewright, or export the model with an older PyTorch");
  const json& module = member(j, "graph_module");
  int64_t nodes = 0;
  program.graph = read_graph(member(module, "graph"), 0, &nodes);
  const json& signature = member(module, "signature");
  for (const json& input : list_of(member(signature, "input_specs"), "input_specs"))
    program.inputs.push_back(read_input_spec(input));
  for (const json& output : list_of(member(signature, "output_specs"), "output_specs"))
    program.outputs.push_back(read_output_spec(output));
  if (const json* ranges = find_member(j, "range_constraints")) {
    if (!ranges->is_object()) malformed("the program's 'range_constraints' are not named");
    for (const auto& [symbol, range] : ranges->items()) {
      Range r;
      if (const json* least = find_member(range, "min_val")) r.least = integer_of(*least, "min_val");
      if (const json* most = find_member(range, "max_val")) r.most = integer_of(*most, "max_val");
      program.ranges.emplace(symbol, r);
    }
  }
  return program;
}

template <class T, class Read>
Result<T> guarded_read(Read&& read) try {
  return read();
} catch (Diagnostic& failure) {
  return std::move(failure);
} catch (const json::exception&) {
  return Diagnostic(ErrorCode::kMalformedModel, "the graph does not follow torch.export's schema", "",
                    "export the model again");
} catch (const std::bad_alloc&) {
  return Diagnostic(ErrorCode::kLimitExceeded, "not enough memory to read the graph");
}

}  // namespace

TensorMeta read_tensor_meta(const json& meta) {
  TensorMeta out;
  const int64_t number = integer_of(member(meta, "dtype"), "dtype");
  const std::optional<DataType> part = complex_part(number);
  out.complex = part.has_value();
  out.dtype = part ? *part : dtype_of(number);
  for (const json& size : list_of(member(meta, "sizes"), "sizes")) out.sizes.push_back(read_size(size));
  if (out.complex) out.sizes.push_back({2, {}});
  if (out.sizes.size() > static_cast<size_t>(onnx::kMaxRank))
    throw Diagnostic(ErrorCode::kLimitExceeded, format("a tensor has {} dimensions", out.sizes.size()));
  constexpr int64_t kStrided = 7;
  if (const json* layout = find_member(meta, "layout")) out.strided = integer_of(*layout, "layout") == kStrided;
  return out;
}

Result<Program> read_program(std::string_view text, std::map<std::string, Tensor> weights) {
  auto program = guarded_read<Program>([&] { return program_of(parsed(text)); });
  if (program.ok()) program->weights = std::move(weights);
  return program;
}

Result<Node> read_node(std::string_view text) {
  int64_t nodes = 0;
  return guarded_read<Node>([&] { return read_one_node(parsed(text), 0, &nodes); });
}

}  // namespace tilewright::torch
