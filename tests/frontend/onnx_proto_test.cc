// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/proto.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "frontend/onnx_files.h"
#include "test_folders.h"

namespace tilewright::onnx {
namespace {

Model read(const std::string& name) {
  auto model = read_model(model_path(name));
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().str());
  return model.ok() ? std::move(model).value() : Model();
}

const Tensor& tensor(const Model& model, const std::string& name) {
  for (const auto& t : model.graph.initializers)
    if (t.name == name) return t.data;
  static Tensor none;
  ADD_FAILURE() << "no initializer " << name;
  return none;
}

TEST(OnnxProto, ReadsNodesTypesAndMetadata) {
  Model m = read("convnet.onnx");
  EXPECT_EQ(m.opsets.at(""), 13);
  EXPECT_EQ(m.producer, "make_models");
  EXPECT_EQ(m.metadata.at("labels"), "cat\ndog");
  ASSERT_EQ(m.graph.nodes.size(), 6u);
  EXPECT_EQ(m.graph.nodes[0].label(), "'conv' (Conv)");
  EXPECT_EQ(m.graph.nodes[0].find("pads")->ints, (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(m.graph.nodes[0].inputs, (std::vector<std::string>{"x", "w", "b"}));
  EXPECT_EQ(m.graph.inputs[0].type.str(), "float32[batch,3,8,8]");
  EXPECT_EQ(tensor(m, "w").shape(), (std::vector<int64_t>{4, 3, 3, 3}));
}

TEST(OnnxProto, ReadsEveryElementType) {
  Model m = read("dtypes.onnx");
  auto doubles = [&](const char* name) {
    const Tensor& t = tensor(m, name);
    std::vector<double> out;
    for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.at_double(i));
    return out;
  };
  using D = std::vector<double>;
  for (const char* name : {"t_float", "t_float16", "t_bfloat16", "r_float", "r_float16"})
    EXPECT_EQ(doubles(name), (D{1.5, -2})) << name;
  EXPECT_EQ(doubles("t_double"), (D{1.25, -2}));
  EXPECT_EQ(doubles("t_int8"), (D{-3, 7}));
  EXPECT_EQ(doubles("t_uint8"), (D{3, 250}));
  EXPECT_EQ(doubles("t_int16"), (D{-300, 7}));
  EXPECT_EQ(doubles("t_uint16"), (D{300, 65535}));
  EXPECT_EQ(doubles("t_int32"), (D{-70000, 7}));
  EXPECT_EQ(doubles("t_uint32"), (D{70000, 4294967295.0}));
  EXPECT_EQ(tensor(m, "t_int64").at_int(0), -(int64_t{1} << 40));
  EXPECT_EQ(tensor(m, "t_uint64").at_int(0), int64_t{1} << 40);
  EXPECT_EQ(doubles("t_bool"), (D{1, 0}));
  EXPECT_EQ(doubles("r_bool"), (D{1, 0}));
  EXPECT_EQ(doubles("t_e4m3fn"), (D{1.5, -2}));
  EXPECT_EQ(doubles("t_e5m2"), (D{1.5, -2}));
  EXPECT_EQ(doubles("t_uint4"), (D{3, 15, 1}));
  EXPECT_EQ(doubles("t_int4"), (D{3, -1, 1}));
  EXPECT_EQ(tensor(m, "t_int4").dtype().str(), "int4");
  EXPECT_EQ(tensor(m, "t_string").string_values(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(tensor(m, "t_scalar").rank(), 0);
  EXPECT_EQ(tensor(m, "t_empty").shape(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(tensor(m, "r_int64").shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(doubles("s_float"), (D{0, 5, 0, 0, 6, 0}));
}

TEST(OnnxProto, ReadsEveryAttributeKind) {
  Model m = read("attributes.onnx");
  const Node& n = m.graph.nodes.at(0);
  EXPECT_EQ(n.domain, "test.domain");
  EXPECT_EQ(n.find("f")->f, 0.5f);
  EXPECT_EQ(n.find("i")->i, -7);
  EXPECT_EQ(n.find("s")->s, "text");
  EXPECT_EQ(n.find("t")->tensors.at(0).at_int(1), 2);
  EXPECT_EQ(n.find("g")->graphs.at(0)->nodes.at(0).op_type, "Neg");
  EXPECT_EQ(n.find("floats")->floats, (std::vector<float>{1, 2.5}));
  EXPECT_EQ(n.find("ints")->ints, (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(n.find("strings")->strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(n.find("tensors")->tensors.size(), 1u);
  EXPECT_EQ(n.find("graphs")->graphs.size(), 2u);
  EXPECT_EQ(n.find("none"), nullptr);
}

TEST(OnnxProto, ExternalDataStaysInTheFolder) {
  Model m = read("external.onnx");
  EXPECT_EQ(tensor(m, "w").at_double(5), 5);
  for (const char* bad : {"absolute", "parent", "missing", "past_end", "negative", "unknown_key"}) {
    auto result = read_model(model_path(std::string("external_") + bad + ".onnx"));
    ASSERT_FALSE(result.ok()) << bad;
    auto code = std::string(bad) == "missing" ? ErrorCode::kFileNotFound : ErrorCode::kMalformedModel;
    EXPECT_EQ(result.error().code, code) << result.error().str();
    EXPECT_NE(result.error().where.find("initializer 0 'w'"), std::string::npos) << result.error().str();
  }
  // Without a folder nothing outside the bytes is read.
  auto text = file_text(model_path("external.onnx"));
  EXPECT_FALSE(read_model(shared_bytes(text), "").ok());
}

TEST(OnnxProto, ExternalDataRefusesLinks) {
  namespace fs = std::filesystem;
  char folder[] = "/tmp/tilewright_onnx_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  fs::path dir(folder);
  fs::create_directory(dir / "model");
  fs::copy(model_path("external.onnx"), dir / "model/external.onnx");
  fs::copy(model_path("external.bin"), dir / "secret.bin");
  auto code = [&] {
    auto r = read_model((dir / "model/external.onnx").string());
    return r.ok() ? 0 : static_cast<int>(r.error().code);
  };
  fs::create_symlink("../secret.bin", dir / "model/external.bin");
  EXPECT_EQ(code(), 201);
  fs::remove(dir / "model/external.bin");
  fs::create_hard_link(dir / "secret.bin", dir / "model/external.bin");
  EXPECT_EQ(code(), 201);
  ReadOptions linked;
  linked.allow_hard_links = true;
  EXPECT_TRUE(read_model((dir / "model/external.onnx").string(), linked).ok());
  fs::remove(dir / "model/external.bin");
  ASSERT_EQ(mkfifo((dir / "model/external.bin").c_str(), 0600), 0);
  EXPECT_EQ(code(), 201);
  fs::remove_all(dir);
}

TEST(OnnxProto, MissingAndForeignFiles) {
  auto missing = read_model("/no/such/model.onnx");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kFileNotFound);
  EXPECT_EQ(missing.error().where, "/no/such/model.onnx");
  EXPECT_EQ(read_model(model_path("make_models.py")).error().code, ErrorCode::kMalformedModel);
  EXPECT_EQ(read_model(shared_bytes(""), "").error().code, ErrorCode::kMalformedModel);
  EXPECT_EQ(read_model("/tmp").error().code, ErrorCode::kFileNotFound);
}

TEST(OnnxProto, TruncationAtEveryByteIsAnError) {
  for (const char* name : {"convnet.onnx", "dtypes.onnx", "attributes.onnx"}) {
    std::string text = file_text(model_path(name));
    ASSERT_TRUE(read_model(shared_bytes(text), "").ok());
    int accepted = 0;
    for (size_t n = 0; n < text.size(); ++n) {
      auto r = read_model(shared_bytes(text.substr(0, n)), "");
      if (r.ok())
        ++accepted;
      else
        EXPECT_TRUE(r.error().code == ErrorCode::kMalformedModel || r.error().code == ErrorCode::kLimitExceeded);
    }
    // Only cuts between two fields of the outermost message leave a whole model.
    EXPECT_LE(accepted, 4) << name;
  }
}

TEST(OnnxProto, FlippedBitsNeverCrash) {
  std::mt19937 random(20240601);
  for (const char* name : {"convnet.onnx", "dtypes.onnx", "attributes.onnx", "external.onnx"}) {
    std::string text = file_text(model_path(name));
    int rejected = 0;
    for (int round = 0; round < 3000; ++round) {
      std::string damaged = text;
      for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
        damaged[random() % damaged.size()] ^= static_cast<char>(1u << (random() % 8));
      rejected += !read_model(shared_bytes(damaged), std::string(TW_TEST_DATA) + "/onnx").ok();
    }
    EXPECT_GT(rejected, 100) << name;
  }
}

// Hand-made bytes: field headers of ModelProto.graph (7), GraphProto.initializer (5), TensorProto.
std::string number(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
std::string field(uint64_t tag, const std::string& body) { return number(tag << 3 | 2) + number(body.size()) + body; }
std::string varint(uint64_t tag, uint64_t value) { return number(tag << 3) + number(value); }
ErrorCode code_of(const std::string& graph) {
  auto r = read_model(shared_bytes(field(8, varint(2, 13)) + field(7, graph)), "");
  return r.ok() ? ErrorCode::kInternal : r.error().code;
}

TEST(OnnxProto, HostileSizes) {
  std::string huge_dims = varint(1, 1ull << 40) + varint(1, 1ull << 40);
  EXPECT_EQ(code_of(field(5, huge_dims + varint(2, 1) + field(8, "w"))), ErrorCode::kLimitExceeded);
  EXPECT_EQ(code_of(field(5, varint(1, 1ull << 47) + varint(2, 1) + field(8, "w"))), ErrorCode::kMalformedModel);
  EXPECT_EQ(code_of(field(5, varint(1, static_cast<uint64_t>(-1)) + varint(2, 1) + field(8, "w"))),
            ErrorCode::kLimitExceeded);
  EXPECT_EQ(code_of(field(5, varint(1, 2) + varint(2, 99) + field(8, "w"))), ErrorCode::kMalformedModel);
  std::string many_dims;
  for (int i = 0; i < 33; ++i) many_dims += varint(1, 1);
  EXPECT_EQ(code_of(field(5, many_dims + varint(2, 1) + field(8, "w"))), ErrorCode::kLimitExceeded);
  // Raw data of the wrong size, both raw and typed data, a sparse tensor of a terabyte.
  EXPECT_EQ(code_of(field(5, varint(1, 2) + varint(2, 1) + field(8, "w") + field(9, "abc"))),
            ErrorCode::kMalformedModel);
  EXPECT_EQ(code_of(field(5, varint(1, 1) + varint(2, 7) + field(8, "w") + varint(7, 1) + field(9, "12345678"))),
            ErrorCode::kMalformedModel);
  std::string values = field(1, varint(1, 1) + varint(2, 7) + varint(7, 1) + field(8, "s"));
  std::string indices = field(2, varint(1, 1) + varint(2, 7) + varint(7, 0));
  EXPECT_EQ(code_of(field(15, values + indices + varint(3, 1ull << 40))), ErrorCode::kLimitExceeded);
  // Subgraphs without end.
  std::string graph = field(1, field(4, "If"));
  for (int i = 0; i < 100; ++i)
    graph = field(1, field(4, "If") + field(5, field(1, "g") + varint(20, 5) + field(6, graph)));
  EXPECT_EQ(code_of(graph), ErrorCode::kLimitExceeded);
  // Two initializers of one name; two attributes of one name.
  std::string w = field(5, varint(1, 0) + varint(2, 1) + field(8, "w"));
  EXPECT_EQ(code_of(w + w), ErrorCode::kMalformedModel);
  std::string a = field(5, field(1, "axis") + varint(20, 2) + varint(3, 1));
  EXPECT_EQ(code_of(field(1, field(4, "Softmax") + a + a)), ErrorCode::kMalformedModel);
}

TEST(OnnxProto, TensorsAndSequences) {
  auto t = read_tensor(shared_bytes(varint(1, 2) + varint(2, 7) + varint(7, 5) + varint(7, 6)));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->data.at_int(1), 6);
  std::string one = varint(1, 1) + varint(2, 7) + varint(7, 5);
  auto s = read_sequence(shared_bytes(varint(2, 1) + field(3, one) + field(3, one)));
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->size(), 2u);
  EXPECT_FALSE(read_tensor(shared_bytes(varint(1, 2) + varint(2, 7) + varint(7, 5))).ok());
}

}  // namespace
}  // namespace tilewright::onnx
