// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/graph_parts.h"

#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <set>

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

// The beginning of a length-delimited field of so many bytes.
std::string opened(uint32_t tag, uint64_t bytes) {
  std::string out;
  out.push_back(static_cast<char>(bytes_field(tag)));
  protozero::add_varint_to_buffer(&out, bytes);
  return out;
}

std::string_view text_of(std::string_view message, uint32_t tag) {
  std::string_view found;
  for_each_field(message, [&](uint32_t what, std::string_view, std::string_view content) {
    if (what == bytes_field(tag)) found = content;
  });
  return found;
}

struct Call {
  std::map<std::string, std::string_view, std::less<>> attributes;
  std::set<std::string_view> left_out;  // inputs
};
std::string node_of_call(std::string_view node, const Call& call, int depth);

std::string graph_of_call(std::string_view graph, const Call& call, int depth) {
  if (depth > kMaxGraphDepth) throw Damage{Diagnostic(ErrorCode::kLimitExceeded, "graphs lie too deep in each other")};
  std::string out;
  for_each_field(graph, [&](uint32_t what, std::string_view field, std::string_view content) {
    if (what == bytes_field(1))
      protozero::pbf_writer(out).add_message(1, node_of_call(content, call, depth));
    else
      out += field;
  });
  return out;
}

// An attribute with the value of the call's that it stands for, or nothing where the call has none.
std::string attribute_of_call(std::string_view attribute, const Call& call, int depth) {
  std::string out;
  const std::string_view reference = text_of(attribute, 21);
  if (!reference.empty()) {
    auto found = call.attributes.find(reference);
    if (found == call.attributes.end()) return out;
    const std::string_view name = text_of(attribute, 1);
    protozero::pbf_writer(out).add_string(1, name.data(), name.size());
    for_each_field(found->second, [&](uint32_t what, std::string_view field, std::string_view) {
      if (what != bytes_field(1)) out += field;
    });
    return out;
  }
  for_each_field(attribute, [&](uint32_t what, std::string_view field, std::string_view content) {
    if (what == bytes_field(6) || what == bytes_field(11))
      protozero::pbf_writer(out).add_message(what >> 3, graph_of_call(content, call, depth + 1));
    else
      out += field;
  });
  return out;
}

std::string node_of_call(std::string_view node, const Call& call, int depth) {
  std::string out;
  protozero::pbf_writer writer(out);
  for_each_field(node, [&](uint32_t what, std::string_view field, std::string_view content) {
    if (what == bytes_field(1) && call.left_out.count(content))
      writer.add_string(1, "");
    else if (what != bytes_field(5))
      out += field;
    else if (const std::string attribute = attribute_of_call(content, call, depth); !attribute.empty())
      writer.add_message(5, attribute);
  });
  return out;
}

}  // namespace

Result<ModelParts> model_parts(std::string_view model) {
  return reading<ModelParts>([&] {
    ModelParts out;
    for_each_field(model, [&](uint32_t what, std::string_view field, std::string_view content) {
      if (what == varint_field(1) || what == bytes_field(8)) out.head.push_back(field);
      if (what == bytes_field(25)) out.functions.push_back(field);
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
  return opened(7, fields.size() + rest) + fields;
}

Result<std::vector<std::string_view>> renamed_constant(std::string_view field, const std::string& name,
                                                       std::string* text) {
  return reading<std::vector<std::string_view>>([&] {
    std::vector<std::string_view> out;
    for_each_field(field, [&](uint32_t what, std::string_view, std::string_view content) {
      const bool node = what == bytes_field(1);
      if (!node && what != bytes_field(5)) return;
      const uint32_t named = node ? 2 : 8;  // NodeProto.output, TensorProto.name
      std::string head;
      protozero::pbf_writer(head).add_string(named, name);
      size_t rest = 0;
      for_each_field(content, [&](uint32_t inner, std::string_view part, std::string_view) {
        if (inner == bytes_field(named)) return;
        out.push_back(part);
        rest += part.size();
      });
      *text = opened(node ? 1 : 5, head.size() + rest) + head;
      out.insert(out.begin(), *text);
    });
    return out;
  });
}

Result<std::string> called_function(std::string_view function, std::string_view call,
                                    const std::vector<std::string_view>& head) {
  return reading<std::string>([&] {
    Call given;
    std::vector<std::string_view> inputs, outputs, nodes, sets;
    std::vector<bool> left_out;
    for_each_field(function, [&](uint32_t, std::string_view, std::string_view content) {
      for_each_field(content, [&](uint32_t what, std::string_view, std::string_view part) {
        if (what == bytes_field(4)) inputs.push_back(part);
        if (what == bytes_field(5)) outputs.push_back(part);
        if (what == bytes_field(7)) nodes.push_back(part);
        if (what == bytes_field(9)) sets.push_back(part);
        if (what == bytes_field(11)) given.attributes[std::string(text_of(part, 1))] = part;
      });
    });
    for_each_field(call, [&](uint32_t, std::string_view, std::string_view content) {
      for_each_field(content, [&](uint32_t what, std::string_view, std::string_view part) {
        if (what == bytes_field(1)) left_out.push_back(part.empty());
        if (what == bytes_field(5)) given.attributes[std::string(text_of(part, 1))] = part;
      });
    });
    for (size_t i = 0; i < inputs.size(); ++i)
      if (i >= left_out.size() || left_out[i]) given.left_out.insert(inputs[i]);
    std::string graph, out;
    protozero::pbf_writer writer(graph);
    for (auto node : nodes) writer.add_string(1, node_of_call(node, given, 0));
    for (auto name : inputs)
      if (!given.left_out.count(name)) protozero::pbf_writer(writer, 11).add_string(1, name.data(), name.size());
    for (auto name : outputs) protozero::pbf_writer(writer, 12).add_string(1, name.data(), name.size());
    for (auto field : head)
      if (sets.empty() || static_cast<uint8_t>(field[0]) == varint_field(1)) out += field;
    for (auto set : sets) protozero::pbf_writer(out).add_message(8, set.data(), set.size());
    protozero::pbf_writer(out).add_message(7, graph);
    return out;
  });
}

}  // namespace tilewright::onnx
