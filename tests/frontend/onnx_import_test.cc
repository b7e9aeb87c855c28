// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/import.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "frontend/onnx_files.h"
#include "relay/interpreter.h"
#include "relay/op.h"
#include "relay/passes/quantize/fake_quantization_to_integer.h"

namespace tilewright::onnx {
namespace {

using relay::Module;

// A model of nodes over float inputs and outputs, without a file.
Model model_of(std::vector<Node> nodes, std::vector<std::string> inputs, std::string output, int64_t opset = 13) {
  Model m;
  m.opsets[""] = opset;
  m.graph.nodes = std::move(nodes);
  auto info = [](const std::string& name) {
    ValueInfo v;
    v.name = name;
    v.type.kind = ValueType::kTensor;
    v.type.elem = kFloat32;
    v.type.shape = std::vector<ValueType::DimInfo>{{2, ""}, {std::nullopt, "n"}};
    return v;
  };
  for (const auto& name : inputs) m.graph.inputs.push_back(info(name));
  m.graph.outputs.push_back(info(output));
  return m;
}
Node node(std::string op, std::vector<std::string> in, std::vector<std::string> out,
          std::vector<Attribute> attributes = {}) {
  Node n;
  n.op_type = std::move(op);
  n.inputs = std::move(in);
  n.outputs = std::move(out);
  n.attributes = std::move(attributes);
  return n;
}
Diagnostic error_of(const Model& m, const ImportOptions& options = {}) {
  auto r = import_onnx(m, options);
  EXPECT_FALSE(r.ok());
  return r.ok() ? Diagnostic() : r.error();
}

TEST(OnnxImport, NamesTypesAndSpans) {
  Model m = model_of({node("Add", {"a", "b"}, {"s"}), node("Relu", {"s"}, {"y"})}, {"a", "b"}, "y");
  m.metadata["labels"] = "cat";
  m.graph.nodes[0].name = "sum";
  auto r = import_onnx(m);
  ASSERT_TRUE(r.ok()) << r.error().str();
  EXPECT_EQ(r->metadata.at("labels"), "cat");
  const auto* main = r->main_function();
  ASSERT_EQ(main->params.size(), 2u);
  EXPECT_EQ(std::get<std::vector<std::string>>(main->attrs.at("input_names")), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(std::get<std::vector<std::string>>(main->attrs.at("output_names")), (std::vector<std::string>{"y"}));
  EXPECT_EQ(type_str(main->body->type), "Tensor[(2, n), float32]");
  ASSERT_TRUE(relay::is_call_to(main->body, "nn.relu"));
  const auto* relu = relay::as<relay::CallNode>(main->body);
  EXPECT_EQ(*relu->args[0]->span, "sum");
  EXPECT_EQ(*relu->span, "y");  // a node without a name is called by its output
}

TEST(OnnxImport, ShapesBindDimensionsEverywhere) {
  Model m = model_of({node("Add", {"a", "b"}, {"y"})}, {"a", "b"}, "y");
  ImportOptions options;
  options.shapes["a"] = {-1, 7};
  auto r = import_onnx(m, options);
  ASSERT_TRUE(r.ok()) << r.error().str();
  EXPECT_EQ(type_str(r->main_function()->params[1]->type), "Tensor[(2, 7), float32]");
  options.shapes["nothing"] = {1};
  EXPECT_EQ(error_of(m, options).code, ErrorCode::kUnknownInput);
  options.shapes = {{"a", {3, 7}}};
  EXPECT_EQ(error_of(m, options).code, ErrorCode::kShapeMismatch);
  options.shapes = {{"a", {2}}};
  EXPECT_EQ(error_of(m, options).code, ErrorCode::kShapeMismatch);
  options.shapes = {{"a", {2, 7}}, {"b", {2, 8}}};
  EXPECT_EQ(error_of(m, options).code, ErrorCode::kShapeMismatch);
}

Attribute ints_attribute(std::string name, std::vector<int64_t> values) {
  Attribute a;
  a.name = std::move(name);
  a.kind = AttributeKind::kInts;
  a.ints = std::move(values);
  return a;
}

// Rounding up, ONNX leaves out windows that begin behind the data and the padding before it, on each axis by itself;
// the operator's own (classic) formula keeps them.
TEST(OnnxImport, PoolsThatRoundUpLeaveOutWindowsInThePadding) {
  auto pooled = [](const char* op, std::vector<int64_t> shape, std::vector<int64_t> pads) {
    Model m = model_of({node(op, {"x"}, {"y"},
                             {ints_attribute("kernel_shape", {2, 2}), ints_attribute("strides", {3, 3}),
                              ints_attribute("pads", std::move(pads)), int_attribute("ceil_mode", 1)})},
                       {"x"}, "y");
    std::vector<ValueType::DimInfo> dims;
    for (int64_t d : shape) dims.push_back({d, ""});
    m.graph.inputs[0].type.shape = dims;
    m.graph.outputs[0].type.shape.reset();
    auto r = import_onnx(m);
    return r.ok() ? type_str(r->main_function()->body->type) : r.error().str();
  };
  for (const char* op : {"MaxPool", "AveragePool"}) {
    // Rows: (5 + 2 - 2) / 3 rounds up to 2, and row 2 * 3 is the padding behind the data. Columns: 7 - 2 = 5 does too,
    // and column 6 is the last one.
    EXPECT_EQ(pooled(op, {1, 2, 5, 7}, {1, 0, 1, 0}), "Tensor[(1, 2, 2, 3), float32]") << op;
    EXPECT_EQ(pooled(op, {1, 2, 5, 5}, {1, 1, 1, 1}), "Tensor[(1, 2, 2, 2), float32]") << op;
    EXPECT_EQ(pooled(op, {1, 2, 7, 7}, {0, 0, 0, 0}), "Tensor[(1, 2, 3, 3), float32]") << op;
  }
}

// The sum of the squares does not fit the type, its root does.
TEST(OnnxImport, NormsOfWholeNumbersFit) {
  const std::pair<const char*, std::vector<int64_t>> wanted[] = {{"ReduceL2", {94868, 5}}, {"ReduceLogSum", {21, 2}}};
  for (const auto& [op, results] : wanted) {
    Model m =
        model_of({node(op, {"x"}, {"y"}, {ints_attribute("axes", {1}), int_attribute("keepdims", 0)})}, {"x"}, "y");
    for (auto* value : {&m.graph.inputs[0], &m.graph.outputs[0]}) value->type.elem = kInt32;
    m.graph.inputs[0].type.shape = std::vector<ValueType::DimInfo>{{2, ""}, {10, ""}};
    m.graph.outputs[0].type.shape.reset();
    auto imported = import_onnx(m);
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    Tensor x(kInt32, {2, 10});
    const bool norm = std::string_view(op) == "ReduceL2";
    for (int64_t i = 0; i < 10; ++i) x.set_double(i, norm ? 30000 : 200'000'000), x.set_double(10 + i, i < 7 ? 2 : 0);
    auto y = relay::interpret(*imported, {{"x", relay::value_from(x)}});
    ASSERT_TRUE(y.ok()) << y.error().str();
    EXPECT_EQ((*y)[0].i, results) << op;
  }
}

// What quantisers write stays recognisable: the pass makes integer products of it, and the results stay within two
// steps of the last scale.
TEST(OnnxImport, QuantizedModelsBecomeIntegerArithmetic) {
  auto model = read_model(shared_bytes(file_text(model_path("quantized.onnx"))), "");
  ASSERT_TRUE(model.ok()) << model.error().str();
  auto imported = import_onnx(*model);
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  auto integers = relay::fake_quantization_to_integer(*imported, true);
  ASSERT_TRUE(integers.ok()) << integers.error().str();
  std::map<std::string, int> calls;
  for (const relay::Expr& e : relay::post_order(integers->main()))
    if (const relay::OpDef* op = relay::called_op(e)) ++calls[op->name];
  EXPECT_EQ(calls["qnn.conv2d"], 1);
  EXPECT_EQ(calls["qnn.dense"], 1);
  EXPECT_EQ(calls["nn.conv2d"] + calls["nn.dense"] + calls["nn.matmul"], 0);
  EXPECT_EQ(calls["qnn.quantize"], 1);
  EXPECT_EQ(calls["qnn.dequantize"], 1);
  Tensor x(kFloat32, {1, 3, 8, 8});
  for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * 37 % 101) / 12 - 4);
  auto before = relay::interpret(*imported, {{"x", relay::value_from(x)}});
  auto after = relay::interpret(*integers, {{"x", relay::value_from(x)}});
  ASSERT_TRUE(before.ok() && after.ok());
  double largest = 0;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR((*before)[0].f[i], (*after)[0].f[i], 2 * 1.5);
    largest = std::max(largest, std::fabs((*before)[0].f[i]));
  }
  EXPECT_GT(largest, 20);
}

// Without offsets a deformable convolution is the plain one; what does not fit its window is an error.
TEST(OnnxImport, DeformableConvolutions) {
  auto model = [](std::vector<int64_t> offsets, int64_t sets) {
    Model m = model_of({node("DeformConv", {"x", "w", "o"}, {"y"}, {int_attribute("offset_group", sets)}),
                        node("Conv", {"x", "w"}, {"z"}), node("Sub", {"y", "z"}, {"d"})},
                       {"x", "w", "o"}, "d", 19);
    const std::vector<int64_t> shapes[] = {{1, 4, 5, 6}, {3, 4, 2, 3}, std::move(offsets)};
    for (size_t i = 0; i < 3; ++i) {
      m.graph.inputs[i].type.shape.emplace();
      for (int64_t size : shapes[i]) m.graph.inputs[i].type.shape->push_back({size, ""});
    }
    m.graph.outputs[0].type.shape.reset();
    return m;
  };
  auto r = import_onnx(model({1, 24, 4, 4}, 2));
  ASSERT_TRUE(r.ok()) << r.error().str();
  Tensor x(kFloat32, {1, 4, 5, 6}), w(kFloat32, {3, 4, 2, 3});
  for (Tensor* t : {&x, &w})
    for (int64_t i = 0; i < t->size(); ++i) t->set_double(i, static_cast<double>(i * 37 % 101) / 50 - 1);
  auto out = relay::interpret(*r, {{"x", relay::value_from(x)},
                                   {"w", relay::value_from(w)},
                                   {"o", relay::value_from(Tensor::zeros(kFloat32, {1, 24, 4, 4}))}});
  ASSERT_TRUE(out.ok()) << out.error().str();
  ASSERT_EQ((*out)[0].shape, (std::vector<int64_t>{1, 3, 4, 4}));
  for (double v : (*out)[0].f) EXPECT_NEAR(v, 0, 1e-5);
  for (auto& [offsets, sets] : std::vector<std::pair<std::vector<int64_t>, int64_t>>{
           {{1, 12, 4, 4}, 2}, {{1, 24, 4, 3}, 2}, {{2, 24, 4, 4}, 2}, {{1, 36, 4, 4}, 3}, {{1, 24, 4, 4}, 0}})
    EXPECT_FALSE(error_of(model(offsets, sets)).message.empty());
}

TEST(OnnxImport, InputsCanBecomeConstants) {
  Model m = model_of({node("Add", {"a", "b"}, {"y"})}, {"a", "b"}, "y");
  ImportOptions options;
  options.constants["b"] = Tensor::zeros(kFloat32, {2, 5});
  options.shapes["a"] = {2, 5};
  auto r = import_onnx(m, options);
  ASSERT_TRUE(r.ok()) << r.error().str();
  EXPECT_EQ(r->main_function()->params.size(), 1u);
}

TEST(OnnxImport, EveryUnsupportedNodeIsReported) {
  Model m = model_of(
      {node("Foo", {"a"}, {"t"}), node("Relu", {"t"}, {"u"}), node("Bar", {"u"}, {"v"}), node("Foo", {"v"}, {"y"})},
      {"a"}, "y");
  m.graph.nodes[2].name = "third";
  Diagnostic d = error_of(m);
  EXPECT_EQ(d.code, ErrorCode::kUnsupportedOp);
  EXPECT_NE(d.message.find("3 of the model's nodes"), std::string::npos) << d.message;
  EXPECT_NE(d.message.find("Foo (opset 13) x2: 't' (Tensor[(2, n), float32]), 'y' (?)"), std::string::npos)
      << d.message;
  EXPECT_NE(d.message.find("Bar (opset 13) x1: 'third'"), std::string::npos) << d.message;
  EXPECT_FALSE(d.hint.empty());
}

TEST(OnnxImport, MalformedGraphs) {
  auto code = [](std::vector<Node> nodes) { return error_of(model_of(std::move(nodes), {"a"}, "y")).code; };
  EXPECT_EQ(code({node("Relu", {"nothing"}, {"y"})}), ErrorCode::kMalformedModel);
  EXPECT_EQ(code({node("Relu", {"a"}, {"x"})}), ErrorCode::kMalformedModel);                                  // no y
  EXPECT_EQ(code({node("Add", {"a", "y"}, {"x"}), node("Relu", {"x"}, {"y"})}), ErrorCode::kMalformedModel);  // a cycle
  EXPECT_EQ(code({node("Relu", {"a"}, {"y"}), node("Relu", {"a"}, {"y"})}), ErrorCode::kMalformedModel);
  EXPECT_EQ(code({node("Relu", {"a"}, {"a"}), node("Relu", {"a"}, {"y"})}), ErrorCode::kMalformedModel);
  EXPECT_EQ(code({node("Relu", {}, {"y"})}), ErrorCode::kMalformedModel);
  EXPECT_EQ(code({node("Softmax", {"a"}, {"y"}, {int_attribute("axis", 9)})}), ErrorCode::kMalformedModel);
  EXPECT_EQ(code({node("Elu", {"a"}, {"y"}, {int_attribute("alpha", 9)})}), ErrorCode::kMalformedModel);  // wrong kind
  Diagnostic d = error_of(model_of({node("Relu", {"a"}, {"x"}), node("Add", {"x", "gone"}, {"y"})}, {"a"}, "y"));
  EXPECT_EQ(d.where, "node 'y' (Add)");
}

TEST(OnnxImport, NodesMayComeInAnyOrder) {
  auto r = import_onnx(model_of({node("Relu", {"x"}, {"y"}), node("Neg", {"a"}, {"x"})}, {"a"}, "y"));
  ASSERT_TRUE(r.ok()) << r.error().str();
  EXPECT_TRUE(relay::is_call_to(r->main_function()->body, "nn.relu"));
}

TEST(OnnxImport, FunctionsAreInlined) {
  Model m = model_of({node("Twice", {"a"}, {"y"}, {int_attribute("unused", 1)})}, {"a"}, "y");
  m.graph.nodes[0].name = "call";
  Function f;
  f.name = "Twice";
  f.inputs = {"v"};
  f.outputs = {"w"};
  f.nodes = {node("Neg", {"v"}, {"t"}), node("Neg", {"t"}, {"w"})};
  m.functions.push_back(f);
  auto r = import_onnx(m);
  ASSERT_TRUE(r.ok()) << r.error().str();
  EXPECT_EQ(*r->main_function()->body->span, "call/w");
  // A function that calls itself ends in an error.
  m.functions[0].nodes = {node("Twice", {"v"}, {"w"})};
  EXPECT_EQ(error_of(m).code, ErrorCode::kLimitExceeded);
}

Module import_file(const std::string& name, const ImportOptions& options = {}) {
  auto r = import_onnx(model_path(name), options);
  EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().str());
  return r.ok() ? std::move(r).value() : Module();
}

TEST(OnnxImport, ShapeChainsVanish) {
  ImportOptions options;
  options.shapes["x"] = {2, 3, 8};
  Module m = import_file("shape_chain.onnx", options);
  const auto* main = m.main_function();
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(type_str(main->body->type), "Tensor[(2, 6, 4), float32]");
  EXPECT_EQ(relay::post_order(main->body).size(), 2u);  // x and the reshape
}

TEST(OnnxImport, FreeDimensionsAreListed) {
  auto r = import_onnx(model_path("shape_chain.onnx"));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::kFreeDimension) << r.error().str();
  EXPECT_NE(r.error().message.find("x is float32[batch,3,8]"), std::string::npos) << r.error().str();
  EXPECT_NE(r.error().hint.find("--shape x=1x3x8"), std::string::npos) << r.error().str();
  // A network that needs no sizes keeps them symbolic.
  EXPECT_EQ(type_str(import_file("convnet.onnx").main_function()->body->type), "Tensor[(batch, 5), float32]");
}

TEST(OnnxImport, ControlFlowIsUnrolled) {
  Module m = import_file("control.onnx");
  std::vector<float> x = {1, -2};
  auto out = relay::interpret(m, {{"x", relay::value_from(Tensor::from<float>(kFloat32, {2}, x))}});
  ASSERT_TRUE(out.ok()) << out.error().str();
  // x doubled is 2 -4; the loop makes 4, 8, 16; the scan adds them to 16.
  EXPECT_EQ(out->at(0).f, (std::vector<double>{44, -88}));
  EXPECT_EQ(out->at(1).f, (std::vector<double>{20, -40, 28, -56, 44, -88}));
}

TEST(OnnxImport, UnfrozenParametersAreInputs) {
  std::map<std::string, Tensor> params;
  ImportOptions options;
  options.freeze_params = false;
  options.params = &params;
  Module m = import_file("convnet.onnx", options);
  EXPECT_EQ(params.size(), 8u);
  EXPECT_EQ(m.main_function()->params.size(), 9u);
  EXPECT_EQ(std::get<std::vector<std::string>>(m.main_function()->attrs.at("input_names")).size(), 1u);
}

TEST(OnnxImport, FlippedBitsNeverCrash) {
  std::mt19937 random(7);
  for (const char* name : {"convnet.onnx", "dtypes.onnx"}) {
    std::string text = file_text(model_path(name));
    for (int round = 0; round < 2000; ++round) {
      std::string damaged = text;
      for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
        damaged[random() % damaged.size()] ^= static_cast<char>(1u << (random() % 8));
      auto r = import_onnx(shared_bytes(damaged));
      EXPECT_TRUE(r.ok() || r.error().code != ErrorCode::kInternal) << r.error().str();
    }
  }
}

}  // namespace
}  // namespace tilewright::onnx
