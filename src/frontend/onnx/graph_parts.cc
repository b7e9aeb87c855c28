// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/graph_parts.h"

#include <protozero/pbf_writer.hpp>

#include "frontend/onnx/wire.h"

namespace tilewright::onnx {
namespace {

using protozero::pbf_reader;

// Calls visit(tag and type, whole field, content) for each field; content is empty for what is not length-delimited.
template <class Visit>
void for_each_field(std::string_view message, Visit&& visit) {
  pbf_reader m(message.data(), message.size());
  const char* from = message.data();
  while (m.next()) {
    std::string_view content;
    const uint32_t what = static_cast<uint32_t>(m.tag_and_type());
    if (m.wire_type() == protozero::pbf_wire_type::length_delimited) {
      auto view = m.get_view();
      content = {view.data(), view.size()};
    } else {
      m.skip();
    }
    const char* to = m.data().data();
    visit(what, std::string_view(from, static_cast<size_t>(to - from)), content);
    from = to;
  }
}

template <class T, class Read>
Result<T> reading(Read&& read) {
  ReadState state;
  return guarded<T>(state, std::forward<Read>(read));
}

}  // namespace

Result<ModelParts> model_parts(std::string_view model) {
  return reading<ModelParts>([&] {
    ModelParts out;
    for_each_field(model, [&](uint32_t what, std::string_view field, std::string_view content) {
      if (what == varint_field(1) || what == bytes_field(8) || what == bytes_field(25)) out.head.push_back(field);
      if (what == bytes_field(7)) out.graph = content;
    });
    return out;
  });
}

Result<GraphParts> graph_parts(std::string_view graph) {
  return reading<GraphParts>([&] {
    GraphParts out;
    for_each_field(graph, [&](uint32_t what, std::string_view field, std::string_view) {
      if (what == bytes_field(1)) out.nodes.push_back(field);
      if (what == bytes_field(5) || what == bytes_field(15)) out.initializers.push_back(field);
    });
    return out;
  });
}

Result<std::string_view> subgraph_part(std::string_view node, std::string_view attribute) {
  return reading<std::string_view>([&] {
    std::string_view found;
    for_each_field(node, [&](uint32_t, std::string_view, std::string_view content) {  // the one field is the node
      for_each_field(content, [&](uint32_t what, std::string_view, std::string_view body) {
        if (what != bytes_field(5)) return;
        std::string_view name, graph;
        for_each_field(body, [&](uint32_t inner, std::string_view, std::string_view value) {
          if (inner == bytes_field(1)) name = value;
          if (inner == bytes_field(6)) graph = value;
        });
        if (name == attribute) found = graph;
      });
    });
    return found;
  });
}

std::string graph_head(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, uint64_t rest) {
  std::string fields;
  {
    protozero::pbf_writer graph(fields);
    for (const auto& name : inputs) protozero::pbf_writer(graph, 11).add_string(1, name);
    for (const auto& name : outputs) protozero::pbf_writer(graph, 12).add_string(1, name);
  }
  std::string out;
  out.push_back(static_cast<char>(bytes_field(7)));
  protozero::add_varint_to_buffer(&out, fields.size() + rest);
  return out + fields;
}

}  // namespace tilewright::onnx
