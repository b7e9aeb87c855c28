// SPDX-License-Identifier: Apache-2.0
// The graph of a function for third-party kernels (docs/external-codegen.md), read from the bytes of a library: what it
// says of nodes, tensors and their order is checked here once, and what it says of operators by the plans.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tilewright/function.h"

namespace tilewright::plugins {

[[noreturn]] inline void damaged(const std::string& what) {
  throw std::runtime_error("the graph of an external function is damaged: " + what);
}

class Graph {
 public:
  enum class Kind { kInput, kConstant, kKernel };
  struct Node {
    Kind kind = Kind::kInput;
    std::string dtype;
    std::vector<int64_t> shape;
    size_t bytes = 0;
    std::vector<size_t> inputs;            // nodes before this one
    const nlohmann::json* json = nullptr;  // of a kernel: with the attributes of its operators
  };
  static constexpr size_t kMaxRank = 6, kMaxNodes = 1 << 16, kMaxBytes = size_t{1} << 34;

  // Throws for a graph whose nodes read later ones, or whose tensors have more than kMaxBytes; `constants` are the
  // bytes of its constants in their order.
  Graph(const std::string& text, const std::vector<std::string>& constants) : json_(nlohmann::json::parse(text)) {
    const nlohmann::json& list = json_.at("nodes");
    if (!list.is_array() || list.size() > kMaxNodes) damaged("it has no list of nodes, or too many");
    size_t constant = 0;
    for (const nlohmann::json& json : list) {
      nodes_.push_back(node_of(json));
      const Node& node = nodes_.back();
      bytes_ += node.bytes;
      if (bytes_ > kMaxBytes) damaged("its tensors have more than 16 GiB");
      if (node.kind == Kind::kConstant && (constant >= constants.size() || constants[constant++].size() != node.bytes))
        damaged("a constant is missing or has a wrong size");
      if (node.kind == Kind::kInput) inputs_.push_back(nodes_.size() - 1);
    }
    for (const nlohmann::json& head : json_.at("heads")) heads_.push_back(index(head.at(0), nodes_.size()));
  }
  Graph(const Graph&) = delete;  // nodes refer to the text

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<size_t>& inputs() const { return inputs_; }
  const std::vector<size_t>& heads() const { return heads_; }
  size_t bytes() const { return bytes_; }  // of all tensors

  // Throws for tensors that are not those of the graph's inputs and results.
  void check(Args args) const {
    if (args.size() != inputs_.size() + heads_.size())
      throw std::runtime_error("an external function is given " + std::to_string(args.size()) + " tensors and takes " +
                               std::to_string(inputs_.size() + heads_.size()));
    for (size_t i = 0; i < args.size(); ++i) {
      const Node& node = nodes_[i < inputs_.size() ? inputs_[i] : heads_[i - inputs_.size()]];
      const DLTensor& t = args[i].tensor();
      size_t bytes = t.dtype.bits / 8;
      for (int d = 0; d < t.ndim; ++d) bytes *= static_cast<size_t>(t.shape[d]);
      if (t.dtype.code != kDLFloat || t.dtype.lanes != 1 || t.dtype.bits != (node.dtype == "float64" ? 64 : 32) ||
          bytes != node.bytes)
        throw std::runtime_error("tensor " + std::to_string(i) + " of an external function is not of " + node.dtype +
                                 " and " + std::to_string(node.bytes) + " bytes");
    }
  }

 private:
  static size_t index(const nlohmann::json& json, size_t end) {
    if (!json.is_number_integer() || json.get<uint64_t>() >= end) damaged("a node is read that is not there yet");
    return json.get<size_t>();
  }

  Node node_of(const nlohmann::json& json) const {
    Node node;
    const auto& op = json.at("op").get_ref<const std::string&>();
    if (op != "input" && op != "const" && op != "kernel") damaged("a node is '" + op + "'");
    node.kind = op == "input" ? Kind::kInput : op == "const" ? Kind::kConstant : Kind::kKernel;
    const nlohmann::json& attrs = json.at("attrs");
    node.dtype = attrs.at("dtype").at(0).at(0).get<std::string>();
    if (node.dtype != "float32" && node.dtype != "float64")
      throw std::runtime_error("external functions have no kernels of " + node.dtype);
    node.bytes = node.dtype == "float64" ? 8 : 4;
    for (const nlohmann::json& d : attrs.at("shape").at(0).at(0)) {
      if (!d.is_number_integer() || d.get<int64_t>() < 1 || d.get<uint64_t>() > kMaxBytes)
        damaged("an extent is no number from 1 on");
      node.shape.push_back(d.get<int64_t>());
      if (__builtin_mul_overflow(node.bytes, d.get<size_t>(), &node.bytes) || node.bytes > kMaxBytes)
        damaged("a tensor has more than 16 GiB");
    }
    if (node.shape.size() > kMaxRank) damaged("a tensor has more than six dimensions");
    if (node.kind != Kind::kKernel) return node;
    node.json = &json;
    for (const nlohmann::json& entry : json.at("inputs")) node.inputs.push_back(index(entry.at(0), nodes_.size()));
    return node;
  }

  const nlohmann::json json_;
  std::vector<Node> nodes_;
  std::vector<size_t> inputs_, heads_;
  size_t bytes_ = 0;
};

}  // namespace tilewright::plugins
