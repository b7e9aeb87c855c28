// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/write.h"

#include <protozero/pbf_reader.hpp>
#include <set>

#include "base/format.h"

namespace tilewright::onnx {
namespace {

using protozero::pbf_writer;

int64_t element_number(DataType dtype) {
  for (int64_t i = 1; i < 64; ++i)
    if (element_type(i) == dtype) return i;
  return 0;
}

void write_tensor(pbf_writer& out, const Tensor& t) {
  for (int64_t d : t.shape()) out.add_int64(1, d);
  out.add_int32(2, static_cast<int32_t>(element_number(t.dtype())));
  if (t.dtype().is_string())
    for (const std::string& text : t.string_values()) out.add_bytes(6, text);
  else
    out.add_bytes(9, reinterpret_cast<const char*>(t.raw()), t.bytes());
}

// The kinds have the numbers of AttributeProto's types.
void write_attribute(pbf_writer out, const Attribute& a) {
  out.add_string(1, a.name);
  switch (a.kind) {
    case AttributeKind::kFloat:
      out.add_float(2, a.f);
      break;
    case AttributeKind::kInt:
      out.add_int64(3, a.i);
      break;
    case AttributeKind::kString:
      out.add_bytes(4, a.s);
      break;
    case AttributeKind::kTensor:
    case AttributeKind::kSparseTensor:  // expanded to dense when it was read
    {
      pbf_writer tensor(out, 5);
      write_tensor(tensor, a.tensors.at(0));
    } break;
    case AttributeKind::kFloats:
      out.add_packed_float(7, a.floats.begin(), a.floats.end());
      break;
    case AttributeKind::kInts:
      out.add_packed_int64(8, a.ints.begin(), a.ints.end());
      break;
    case AttributeKind::kStrings:
      for (const std::string& text : a.strings) out.add_bytes(9, text);
      break;
    case AttributeKind::kTensors:
    case AttributeKind::kSparseTensors:
      for (const Tensor& t : a.tensors) {
        pbf_writer tensor(out, 10);
        write_tensor(tensor, t);
      }
      break;
    case AttributeKind::kUndefined:
    case AttributeKind::kGraph:
    case AttributeKind::kGraphs:
    case AttributeKind::kType:
    case AttributeKind::kTypes:
      break;
  }
  const AttributeKind kind = a.kind == AttributeKind::kSparseTensor    ? AttributeKind::kTensor
                             : a.kind == AttributeKind::kSparseTensors ? AttributeKind::kTensors
                                                                       : a.kind;
  out.add_int32(20, static_cast<int32_t>(kind));
}

bool is_written(AttributeKind kind) {
  return kind != AttributeKind::kUndefined && kind != AttributeKind::kGraph && kind != AttributeKind::kGraphs &&
         kind != AttributeKind::kType && kind != AttributeKind::kTypes;
}

using protozero::data_view;
using protozero::pbf_reader;

// Copies a field unchanged, with its tag.
void copy_field(pbf_writer& out, pbf_reader& field) {
  const uint32_t tag = field.tag();
  switch (field.wire_type()) {
    case protozero::pbf_wire_type::varint:
      out.add_uint64(tag, field.get_uint64());
      break;
    case protozero::pbf_wire_type::fixed32:
      out.add_fixed32(tag, field.get_fixed32());
      break;
    case protozero::pbf_wire_type::fixed64:
      out.add_fixed64(tag, field.get_fixed64());
      break;
    default:
      out.add_bytes(tag, field.get_view());
  }
}

std::string text(data_view view) { return std::string(view.data(), view.size()); }

constexpr uint32_t kModelGraph = 7, kModelOpset = 8;
constexpr uint32_t kGraphNode = 1, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12, kGraphValueInfo = 13,
                   kGraphQuantization = 14, kGraphSparse = 15;

// Writes a node with new names and everything else unchanged.
void copy_node(pbf_writer& out, data_view original, const Node& node) {
  for (const auto& name : node.inputs) out.add_string(1, name);
  for (const auto& name : node.outputs) out.add_string(2, name);
  for (pbf_reader field(original); field.next();)
    if (field.tag() <= 2)
      field.skip();
    else
      copy_field(out, field);
}

std::string name_of(data_view value_info) {
  for (pbf_reader field(value_info); field.next(); field.skip())
    if (field.tag() == 1) return text(field.get_view());
  return {};
}

void write_graph(pbf_writer& out, data_view original, const EditedModel& model) {
  std::set<std::string> named;  // values that remain
  std::set<std::string> gone;   // initializers to drop: defaults of an input of the same name
  for (const auto& t : model.initializers) named.insert(t.name);
  for (const auto& t : model.original->graph.initializers)
    if (!named.count(t.name)) gone.insert(t.name);
  for (const auto& n : model.nodes) named.insert(n.node.outputs.begin(), n.node.outputs.end());
  std::vector<data_view> nodes;
  for (pbf_reader field(original); field.next();)
    if (field.tag() == kGraphNode)
      nodes.push_back(field.get_view());
    else
      field.skip();
  for (const EditedNode& n : model.nodes) {
    pbf_writer node(out, kGraphNode);
    if (n.source >= 0)
      copy_node(node, nodes.at(static_cast<size_t>(n.source)), n.node);
    else
      write_node_fields(node, n.node);
  }
  for (const auto& t : model.initializers) {
    pbf_writer tensor(out, kGraphInitializer);
    tensor.add_string(8, t.name);
    write_tensor(tensor, t.data);
  }
  for (pbf_reader field(original); field.next();) {
    const uint32_t tag = field.tag();
    if (tag == kGraphNode || tag == kGraphInitializer || tag == kGraphQuantization || tag == kGraphSparse) {
      field.skip();
    } else if (tag == kGraphInput || tag == kGraphValueInfo) {
      const data_view value = field.get_view();
      const std::string name = name_of(value);
      if (tag == kGraphInput ? gone.count(name) == 0 : named.count(name) > 0) out.add_bytes(tag, value);
    } else {
      copy_field(out, field);
    }
  }
  for (const EditedOutput& o : model.more_outputs) {
    pbf_writer value(out, kGraphOutput);
    value.add_string(1, o.name);
    pbf_writer type(value, 2), tensor(type, 1);
    tensor.add_int32(1, static_cast<int32_t>(element_number(o.dtype)));
  }
}

}  // namespace

void write_node_fields(pbf_writer& out, const Node& node) {
  for (const auto& name : node.inputs) out.add_string(1, name);
  for (const auto& name : node.outputs) out.add_string(2, name);
  out.add_string(3, node.name);
  out.add_string(4, node.op_type);
  for (const Attribute& a : node.attributes)
    if (is_written(a.kind)) write_attribute(pbf_writer(out, 5), a);
  out.add_string(7, node.domain);
}

Result<std::string> write_model(const EditedModel& model) {
  uint64_t bytes = 0;
  for (const auto& t : model.initializers) bytes += t.data.dtype().is_string() ? 0 : t.data.bytes();
  if (bytes > uint64_t{2047} << 20)
    return Diagnostic(ErrorCode::kLimitExceeded,
                      format("{} MiB of weights do not fit into one ONNX file", bytes >> 20));
  const auto& original = model.original->files.front().bytes;
  std::string out;
  pbf_writer writer(out);
  for (pbf_reader field(reinterpret_cast<const char*>(original.data()), original.size()); field.next();) {
    if (field.tag() == kModelGraph) {
      const data_view graph = field.get_view();
      pbf_writer into(writer, kModelGraph);
      write_graph(into, graph, model);
    } else {
      copy_field(writer, field);
    }
  }
  for (const auto& [domain, version] : model.more_opsets) {
    if (model.original->opsets.count(domain)) continue;
    pbf_writer opset(writer, kModelOpset);
    opset.add_string(1, domain);
    opset.add_int64(2, version);
  }
  return out;
}

}  // namespace tilewright::onnx
