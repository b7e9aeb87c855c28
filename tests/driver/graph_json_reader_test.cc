// SPDX-License-Identifier: Apache-2.0
// Graph JSON: what the classic stack wrote, what we write, and what is damaged.
#include "frontend/classic/graph_json_reader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "driver/build.h"
#include "driver/graphs.h"
#include "runtime/classic/graph_json.h"
#include "test_folders.h"

namespace tilewright::driver {
namespace {
using namespace testing;
using frontend::GraphJson;
using frontend::read_graph_json;

std::string classic() {
  std::ifstream file(TW_TEST_DATA "/classic/smallnet_graph.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(GraphJsonReader, ReadsTheClassicOne) {
  auto graph = read_graph_json(classic());
  ASSERT_TRUE(graph.ok()) << graph.error().str();
  EXPECT_GT(graph->nodes.size(), 8u);
  EXPECT_GT(graph->arguments.size(), 3u);
  ASSERT_EQ(graph->heads.size(), 1u);
  EXPECT_TRUE(graph->nodes[graph->heads[0].first].is_call);
  EXPECT_EQ(graph->nodes[graph->heads[0].first].attrs.at("func_name").rfind("tvmgen_default_fused", 0), 0u);
  EXPECT_EQ(graph->rows.back(), graph->shapes.size());
  uint64_t all = 0;
  for (size_t i = 0; i < graph->shapes.size(); ++i) {
    uint64_t n = 4;
    for (int64_t d : graph->shapes[i]) n *= static_cast<uint64_t>(d);
    all += n;
  }
  EXPECT_GT(graph->storage_bytes(), 0u);
  EXPECT_LT(graph->storage_bytes(), all) << "values share memory";
}

TEST(GraphJsonReader, ReadsOurs) {
  Expr x = input("x", {1, 8, 12, 12});
  BuildOptions options;
  options.jobs = 1;
  auto built = build(relay::Module().with_main(relay::make_function(
                         {x}, relay::make_tuple({relu(conv(x, 8, 8, 3, 1, 1)), call("nn.softmax", {x})}))),
                     options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  const plan::Plan& plan = built->lowered.plan;
  auto graph = read_graph_json(runtime::write_graph_json(plan));
  ASSERT_TRUE(graph.ok()) << graph.error().str();
  EXPECT_EQ(graph->nodes.size(), plan.inputs.size() + plan.params.size() + plan.steps.size());
  EXPECT_EQ(graph->heads.size(), 2u);
}

// Names of members, of an object's and of each kind of node, with the types of their values.
std::set<std::string> members(const nlohmann::json& j, const std::string& path = "") {
  std::set<std::string> out;
  for (const auto& [key, value] : j.items()) {
    const std::string here = path + "." + (j.is_object() ? key : "[]");
    out.insert(here + ": " + std::string(value.type_name()));
    if (value.is_structured()) {
      const bool node = path == ".nodes";
      out.merge(members(value, node ? here + value["op"].get<std::string>() : here));
    }
  }
  return out;
}

TEST(GraphJsonReader, OursHasTheMembersOfTheClassicOne) {
  Expr x = input("x", {1, 8, 12, 12});
  BuildOptions options;
  options.jobs = 1;
  auto built =
      build(relay::Module().with_main(relay::make_function({x}, call("nn.softmax", {relu(conv(x, 8, 8, 3, 1, 1))}))),
            options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  std::set<std::string> ours = members(nlohmann::json::parse(runtime::write_graph_json(built->lowered.plan))),
                        theirs = members(nlohmann::json::parse(classic()));
  // Attributes of the fused functions: layouts, and a hash where LabelOps has run.
  auto of_function = [](const std::string& name) {
    return name.find("_layout: ") != std::string::npos || name.find("attrs.layout: ") != std::string::npos ||
           name.find("attrs.hash: ") != std::string::npos;
  };
  std::erase_if(ours, of_function);
  std::erase_if(theirs, of_function);
  EXPECT_GT(theirs.size(), 20u);
  for (const std::string& name : theirs) EXPECT_TRUE(ours.count(name)) << name;
  for (const std::string& name : ours) EXPECT_TRUE(theirs.count(name)) << name;
}

TEST(GraphJsonReader, EveryLieIsNamed) {
  const std::string good = R"({"nodes": [{"op": "null", "name": "x", "inputs": []},
 {"op": "tvm_op", "name": "f", "attrs": {"func_name": "f", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"},
  "inputs": [[0, 0, 0]]}],
 "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
 "attrs": {"shape": ["list_shape", [[1, 3], [2]]], "dltype": ["list_str", ["float32", "int8"]],
           "storage_id": ["list_int", [0, 1]]}})";
  ASSERT_TRUE(read_graph_json(good).ok()) << read_graph_json(good).error().str();
  auto says = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    auto graph = read_graph_json(bad);
    return graph.ok() ? "accepted" : graph.error().message;
  };
  EXPECT_EQ(says("\"tvm_op\"", "\"conv\""), "the operator of node 'f' is neither null nor tvm_op");
  EXPECT_EQ(says("[[0, 0, 0]]", "[[1, 0, 0]]"), "the node of an entry is not a number below 1");
  EXPECT_EQ(says("[[0, 0, 0]]", "[[0, 1, 0]]"), "node 'f' reads an output that does not exist");
  EXPECT_EQ(says("\"num_inputs\": \"1\"", "\"num_inputs\": \"2\""), "node 'f' says that it has 2 inputs and has 1");
  EXPECT_EQ(says("\"num_outputs\": \"1\"", "\"num_outputs\": \"99999999\""),
            "node 'f' has an impossible number of inputs or outputs");
  EXPECT_EQ(says("\"func_name\"", "\"func\""), "node 'f' lacks the attribute 'func_name'");
  EXPECT_EQ(says("[0, 1, 2]", "[0, 1, 3]"), "node_row_ptr does not give node 'f' its 1 outputs");
  EXPECT_EQ(says("\"arg_nodes\": [0]", "\"arg_nodes\": [1]"), "the argument 'f' is a call");
  EXPECT_EQ(says("[[1, 0, 0]]", "[[1, 7, 0]]"), "a head is an output that does not exist");
  EXPECT_EQ(says("[2]", "[-2]"), "a shape has something that is no number from 0");
  EXPECT_NE(says("[2]", "[9007199254740993, 9007199254740993]"), "accepted");
  EXPECT_NE(says("\"int8\"", "\"int9x\""), "accepted");
  EXPECT_EQ(says("[0, 1]]", "[0]]"), "'storage_id' has 1 values for 2 outputs of nodes");
  EXPECT_EQ(says("\"heads\"", "\"hats\""), "'heads' is missing");
  EXPECT_EQ(says("[[1, 3]", std::string(5000, '[') + "[1, 3]"), "it nests too deeply for a graph");
  EXPECT_EQ(says("{\"nodes\"", "\"nodes\""), "the text is not valid JSON");
}

TEST(GraphJsonReader, TruncationsAndFlippedBitsAreSafe) {
  const std::string text = classic();
  for (size_t n = 0; n + 2 < text.size(); n += 29) EXPECT_FALSE(read_graph_json(text.substr(0, n)).ok()) << n;
  std::string broken = text;
  for (size_t i = 0; i < text.size(); i += 3) {
    broken[i] = static_cast<char>(broken[i] ^ (1 << (i % 7)));
    auto graph = read_graph_json(broken);
    if (graph.ok()) {
      EXPECT_EQ(graph->rows.back(), graph->shapes.size());
    }
    broken[i] = text[i];
  }
}

}  // namespace
}  // namespace tilewright::driver
