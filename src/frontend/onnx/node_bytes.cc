// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/node_bytes.h"

#include <memory>
#include <protozero/pbf_writer.hpp>
#include <span>

namespace tilewright::onnx {
namespace {

using protozero::pbf_writer;

int64_t element_number(DataType dtype) {
  for (int64_t i = 1; i < 64; ++i)
    if (element_type(i) == dtype) return i;
  return 0;
}

void write_tensor(pbf_writer out, const Tensor& t) {
  for (int64_t d : t.shape()) out.add_int64(1, d);
  out.add_int32(2, static_cast<int32_t>(element_number(t.dtype())));
  if (t.dtype().is_string())
    for (const std::string& text : t.string_values()) out.add_bytes(6, text);
  else
    out.add_bytes(9, reinterpret_cast<const char*>(t.raw()), t.bytes());
}

// AttributeProto's kinds are numbered as theirs.
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
    case AttributeKind::kSparseTensor:  // dense once it is read
      write_tensor(pbf_writer(out, 5), a.tensors.at(0));
      break;
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
      for (const Tensor& t : a.tensors) write_tensor(pbf_writer(out, 10), t);
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

}  // namespace

std::string write_node(const Node& node, int64_t version) {
  std::string bytes;
  pbf_writer model(bytes);
  model.add_int64(1, 8);
  {
    pbf_writer graph(model, 7);
    pbf_writer out(graph, 1);
    for (const auto& name : node.inputs) out.add_string(1, name);
    for (const auto& name : node.outputs) out.add_string(2, name);
    out.add_string(3, node.name);
    out.add_string(4, node.op_type);
    for (const Attribute& a : node.attributes)
      if (is_written(a.kind)) write_attribute(pbf_writer(out, 5), a);
    out.add_string(7, node.domain);
  }
  pbf_writer opset(model, 8);
  opset.add_string(1, node.domain);
  opset.add_int64(2, version);
  return bytes;
}

Result<Model> read_node(const std::string& bytes) {
  auto owner = std::make_shared<const std::string>(bytes);
  Model model = TW_TRY(read_model(SharedBytes{std::as_bytes(std::span(*owner)), owner}, ""));
  if (model.graph.nodes.size() != 1)
    return Diagnostic(ErrorCode::kMalformedModel, "an onnx.node holds no node, or more than one");
  return model;
}

}  // namespace tilewright::onnx
