// SPDX-License-Identifier: Apache-2.0
#include "frontend/classic/graph_json_reader.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/format.h"

namespace tilewright::frontend {
namespace {
using nlohmann::json;

constexpr int kDeepest = 32;  // nesting of lists; a graph needs 4

Diagnostic damaged(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), "graph JSON", "write the graph again");
}

Result<const json*> member(const json& object, const char* key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) return damaged(format("'{}' is missing", key));
  return &*found;
}

Result<const json*> list(const json& object, const char* key) {
  const json* found = TW_TRY(member(object, key));
  if (!found->is_array()) return damaged(format("'{}' is no list", key));
  return found;
}

// An index below `limit`.
Result<size_t> index(const json& value, size_t limit, const char* what) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= limit)
    return damaged(format("{} is not a number below {}", what, limit));
  return static_cast<size_t>(value.get<uint64_t>());
}

// [node, output] or [node, output, version]; the output index is checked once all nodes are known.
Result<GraphJson::Entry> entry(const json& value, size_t nodes) {
  if (!value.is_array() || value.size() < 2 || value.size() > 3)
    return damaged("an entry is not [node, output, version]");
  const size_t node = TW_TRY(index(value[0], nodes, "the node of an entry"));
  const size_t output = TW_TRY(index(value[1], size_t{1} << 32, "the output of an entry"));
  return GraphJson::Entry{node, output};
}

Result<GraphJson::Node> node(const json& value, size_t number) {
  GraphJson::Node out;
  const json* op = TW_TRY(member(value, "op"));
  const json* name = TW_TRY(member(value, "name"));
  if (!name->is_string()) return damaged(format("the name of node {} is no text", number));
  out.name = name->get<std::string>();
  if (*op != "null" && *op != "tvm_op")
    return damaged(format("the operator of node '{}' is neither null nor tvm_op", out.name));
  out.is_call = *op == "tvm_op";
  for (const json& e : *TW_TRY(list(value, "inputs"))) out.inputs.push_back(TW_TRY(entry(e, number)));
  for (const char* key : {"attrs", "attr"})
    if (auto attrs = value.find(key); attrs != value.end()) {
      if (!attrs->is_object()) return damaged(format("the attributes of node '{}' are no object", out.name));
      for (const auto& [k, v] : attrs->items()) {
        if (!v.is_string()) return damaged(format("attribute '{}' of node '{}' is no text", k, out.name));
        out.attrs[k] = v.get<std::string>();
      }
    }
  if (!out.is_call) {
    if (!out.inputs.empty()) return damaged(format("node '{}' takes nothing and has inputs", out.name));
    return out;
  }
  for (const char* key : {"func_name", "num_inputs", "num_outputs", "flatten_data"})
    if (!out.attrs.count(key)) return damaged(format("node '{}' lacks the attribute '{}'", out.name, key));
  auto number_of = [&](const char* key, size_t* to) {
    const std::string& text = out.attrs[key];
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *to);
    return error == std::errc() && end == text.data() + text.size() && *to < (size_t{1} << 20);
  };
  size_t inputs = 0;
  if (!number_of("num_inputs", &inputs) || !number_of("num_outputs", &out.outputs))
    return damaged(format("node '{}' has an impossible number of inputs or outputs", out.name));
  if (inputs != out.inputs.size())
    return damaged(format("node '{}' says that it has {} inputs and has {}", out.name, inputs, out.inputs.size()));
  return out;
}

// attrs.KEY: [tag, one value for each output of each node].
Result<const json*> values(const json& attrs, const char* key, const char* tag, size_t count) {
  const json* pair = TW_TRY(list(attrs, key));
  if (pair->size() != 2 || (*pair)[0] != tag || !(*pair)[1].is_array())
    return damaged(format("'{}' is not [\"{}\", values]", key, tag));
  if ((*pair)[1].size() != count)
    return damaged(format("'{}' has {} values for {} outputs of nodes", key, (*pair)[1].size(), count));
  return &(*pair)[1];
}

Result<std::vector<int64_t>> integers(const json& value, int64_t least, const char* what) {
  std::vector<int64_t> out;
  if (!value.is_array()) return damaged(format("{} is no list", what));
  for (const json& v : value) {
    if (!v.is_number_integer() || v.get<int64_t>() < least || (v.is_number_unsigned() && v.get<uint64_t>() >> 62))
      return damaged(format("{} has something that is no number from {}", what, least));
    out.push_back(v.get<int64_t>());
  }
  return out;
}

Result<GraphJson> read(const json& root) {
  GraphJson graph;
  const json* nodes = TW_TRY(list(root, "nodes"));
  for (const json& value : *nodes) graph.nodes.push_back(TW_TRY(node(value, graph.nodes.size())));
  for (const json& value : *TW_TRY(list(root, "node_row_ptr")))
    graph.rows.push_back(TW_TRY(index(value, size_t{1} << 40, "a row of node_row_ptr")));
  if (graph.rows.size() != graph.nodes.size() + 1 || graph.rows[0] != 0)
    return damaged("node_row_ptr does not have one number more than there are nodes");
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.rows[i + 1] != graph.rows[i] + graph.nodes[i].outputs)
      return damaged(
          format("node_row_ptr does not give node '{}' its {} outputs", graph.nodes[i].name, graph.nodes[i].outputs));
  for (const json& value : *TW_TRY(list(root, "arg_nodes"))) {
    graph.arguments.push_back(TW_TRY(index(value, graph.nodes.size(), "an argument")));
    if (graph.nodes[graph.arguments.back()].is_call)
      return damaged(format("the argument '{}' is a call", graph.nodes[graph.arguments.back()].name));
  }
  for (const json& value : *TW_TRY(list(root, "heads")))
    graph.heads.push_back(TW_TRY(entry(value, graph.nodes.size())));
  auto exists = [&](const GraphJson::Entry& e) { return e.second < graph.nodes[e.first].outputs; };
  for (const GraphJson::Node& n : graph.nodes)
    for (const auto& e : n.inputs)
      if (!exists(e)) return damaged(format("node '{}' reads an output that does not exist", n.name));
  if (!std::all_of(graph.heads.begin(), graph.heads.end(), exists))
    return damaged("a head is an output that does not exist");

  const json* attrs = TW_TRY(member(root, "attrs"));
  const size_t count = graph.rows.back();
  for (const json& value : *TW_TRY(values(*attrs, "shape", "list_shape", count))) {
    graph.shapes.push_back(TW_TRY(integers(value, 0, "a shape")));
    TW_TRY(checked_element_count(graph.shapes.back()));
  }
  for (const json& value : *TW_TRY(values(*attrs, "dltype", "list_str", count))) {
    if (!value.is_string()) return damaged("a dtype is no text");
    graph.dtypes.push_back(value.get<std::string>());
    if (graph.dtypes.back() != "handle") TW_TRY(parse_dtype(graph.dtypes.back()));
  }
  graph.storage = TW_TRY(integers(*TW_TRY(values(*attrs, "storage_id", "list_int", count)), -1, "storage_id"));
  if (attrs->contains("device_index"))
    graph.devices = TW_TRY(integers(*TW_TRY(values(*attrs, "device_index", "list_int", count)), 0, "device_index"));
  return graph;
}

}  // namespace

uint64_t GraphJson::storage_bytes() const {
  std::map<int64_t, uint64_t> largest;
  for (size_t i = 0; i < storage.size(); ++i) {
    auto dtype = parse_dtype(dtypes[i]);
    auto elements = checked_element_count(shapes[i]);
    if (!dtype.ok() || !elements.ok()) continue;  // a handle takes none of the graph's memory
    uint64_t& bytes = largest[storage[i] < 0 ? -1 - static_cast<int64_t>(i) : storage[i]];
    bytes = std::max(bytes, dtype->bytes_for(static_cast<uint64_t>(*elements)));
  }
  uint64_t total = 0;
  for (const auto& [id, bytes] : largest) total += bytes;
  return total;
}

Result<GraphJson> read_graph_json(std::string_view text) {
  // Checks the nesting depth in the text before parsing: the parser and the destructors of its values are recursive.
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else
        quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > kDeepest) return damaged("it nests too deeply for a graph");
  }
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded())
    return Diagnostic(ErrorCode::kParseError, "the text is not valid JSON", "graph JSON", "write the graph again");
  return read(root);
}

}  // namespace tilewright::frontend
