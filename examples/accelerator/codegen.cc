// SPDX-License-Identifier: Apache-2.0
#include "codegen.h"

#include <nlohmann/json.hpp>

#include "module.h"

namespace accelerator {
namespace {
using nlohmann::json;

// Composites: a convolution or a dense layer, with what follows it.
constexpr const char* kPatterns =
    "vecunit.conv2d: nn.conv2d nn.bias_add? nn.relu?\n"
    "vecunit.dense: nn.dense nn.bias_add? nn.relu?\n";

std::vector<int64_t> shape_of(const json& node, size_t output = 0) {
  return node["attrs"]["shape"][0][output].get<std::vector<int64_t>>();
}

int32_t floats(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  if (n > (1 << 24)) throw std::runtime_error("a tensor is too large for the vector unit");
  return static_cast<int32_t>(n);
}

int32_t attribute(const json& node, const char* name, size_t i) {
  return std::stoi(node["attrs"][name][0][i].get<std::string>());
}

// What the unit's instructions cannot do stays on the processor.
bool supports(const std::string& graph_json) {
  const json graph = json::parse(graph_json);
  for (const json& node : graph["nodes"]) {
    for (const json& dtype : node["attrs"]["dtype"][0])
      if (dtype != "float32") return false;
    if (node["op"] != "kernel" || node["name"] != "vecunit.conv2d") continue;
    const json& a = node["attrs"];
    const bool square = a["strides"][0].size() == 2 && attribute(node, "strides", 0) == attribute(node, "strides", 1);
    bool even = a["padding"][0].size() == 4;
    for (size_t i = 1; even && i < 4; ++i) even = attribute(node, "padding", i) == attribute(node, "padding", 0);
    if (!square || !even || a["groups"][0][0] != "1" || attribute(node, "dilation", 0) != 1 ||
        attribute(node, "dilation", 1) != 1 || a["data_layout"][0][0] != "NCHW" || a["kernel_layout"][0][0] != "OIHW" ||
        shape_of(node)[0] != 1)
      return false;
  }
  return true;
}

// Walks the nodes in order and gives every tensor a place in the unit's memory: constants first, for they stay.
Program compile(const std::string& symbol, const std::string& graph_json, const std::vector<DLTensor>& constants) {
  const json graph = json::parse(graph_json);
  Program program;
  program.symbol = symbol;
  std::vector<int32_t> address(graph["nodes"].size());
  size_t next_constant = 0;
  for (size_t i = 0; i < graph["nodes"].size(); ++i) {
    const json& node = graph["nodes"][i];
    if (node["op"] != "const") continue;
    const DLTensor& t = constants.at(next_constant++);
    const auto* data = reinterpret_cast<const float*>(static_cast<const char*>(t.data) + t.byte_offset);
    address[i] = static_cast<int32_t>(program.constants.size());
    program.constants.insert(program.constants.end(), data, data + floats(shape_of(node)));
  }
  int32_t top = static_cast<int32_t>(program.constants.size());
  auto emit = [&](Opcode opcode, std::initializer_list<int32_t> operands) {
    Instruction instruction{opcode, {}};
    std::copy(operands.begin(), operands.end(), instruction.operand);
    program.code.push_back(instruction);
  };
  for (size_t i = 0; i < graph["nodes"].size(); ++i) {
    const json& node = graph["nodes"][i];
    if (node["op"] == "const") continue;
    const std::vector<int64_t> shape = shape_of(node);
    const int32_t count = floats(shape);
    address[i] = top;
    top += count;
    if (node["op"] == "input") {
      emit(Opcode::kLoad, {static_cast<int32_t>(program.counts.size()), address[i], count});
      program.counts.push_back(count);
      continue;
    }
    std::vector<size_t> inputs;
    for (const json& input : node["inputs"]) inputs.push_back(input[0].get<size_t>());
    const std::vector<int64_t> x = shape_of(graph["nodes"][inputs.at(0)]), w = shape_of(graph["nodes"][inputs.at(1)]);
    if (node["name"] == "vecunit.dense") {
      emit(Opcode::kDense,
           {address[inputs[0]], address[inputs[1]], address[i], floats(x) / static_cast<int32_t>(x.back()),
            static_cast<int32_t>(x.back()), static_cast<int32_t>(w[0])});
    } else {
      emit(Opcode::kConv2d,
           {address[inputs[0]], address[inputs[1]], address[i], static_cast<int32_t>(x[1]), static_cast<int32_t>(x[2]),
            static_cast<int32_t>(x[3]), static_cast<int32_t>(w[0]), static_cast<int32_t>(w[2]),
            static_cast<int32_t>(w[3]), attribute(node, "strides", 0), attribute(node, "padding", 0)});
    }
    const std::string operators = node["attrs"]["operators"][0][0].get<std::string>();
    if (operators.find("nn.bias_add") != std::string::npos) {
      const int32_t channels = static_cast<int32_t>(shape.at(1));
      emit(Opcode::kBias, {address[i], address[inputs.at(2)], static_cast<int32_t>(shape[0]), channels,
                           count / static_cast<int32_t>(shape[0]) / channels});
    }
    if (operators.find("nn.relu") != std::string::npos) emit(Opcode::kRelu, {address[i], count});
  }
  for (const json& head : graph["heads"]) {
    const size_t node = head[0].get<size_t>();
    const int32_t count = floats(shape_of(graph["nodes"][node]));
    emit(Opcode::kStore, {static_cast<int32_t>(program.counts.size()), address[node], count});
    program.counts.push_back(count);
  }
  program.num_operands = static_cast<int32_t>(program.counts.size());
  program.memory = top;
  return program;
}

}  // namespace

tilewright::ExternalCodegen codegen() {
  tilewright::ExternalCodegen out;
  out.name = "vecunit";
  out.patterns = kPatterns;
  out.supports = supports;
  out.generate = [](const std::string& symbol, const std::string& graph, const std::vector<DLTensor>& constants) {
    const tilewright::Module module = make_module(compile(symbol, graph, constants));
    return std::pair{module.type_key(), module.save()};
  };
  return out;
}

}  // namespace accelerator
