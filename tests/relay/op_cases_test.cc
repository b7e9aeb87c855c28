// SPDX-License-Identifier: Apache-2.0
// Every case of tests/data/relay/op_cases.txt (made by make_op_cases.py with onnxruntime and numpy).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "relay/op_testing.h"
#include "test_folders.h"

namespace tilewright::relay {
namespace {

// Fills attributes from "name value" texts.
class AttrReader : public AttrVisitor {
 public:
  explicit AttrReader(const std::map<std::string, std::string>& texts) : texts_(texts) {}
  std::set<std::string> used;
  void visit(const char* name, bool* v) override {
    with(name, [&](const std::string& t) { *v = t == "1"; });
  }
  void visit(const char* name, int64_t* v) override {
    with(name, [&](const std::string& t) { *v = std::stoll(t); });
  }
  void visit(const char* name, double* v) override {
    with(name, [&](const std::string& t) { *v = std::stod(t); });
  }
  void visit(const char* name, std::string* v) override {
    with(name, [&](const std::string& t) { *v = t; });
  }
  void visit(const char* name, DataType* v) override {
    with(name, [&](const std::string& t) { *v = parse_dtype(t).value(); });
  }
  void visit(const char* name, std::optional<int64_t>* v) override {
    with(name, [&](const std::string& t) { *v = std::stoll(t); });
  }
  void visit(const char* name, std::vector<int64_t>* v) override {
    with(name, [&](const std::string& t) { *v = list<int64_t>(t); });
  }
  void visit(const char* name, std::optional<std::vector<int64_t>>* v) override {
    with(name, [&](const std::string& t) { *v = list<int64_t>(t); });
  }
  void visit(const char* name, std::vector<double>* v) override {
    with(name, [&](const std::string& t) { *v = list<double>(t); });
  }
  void visit(const char* name, std::vector<std::string>* v) override {
    with(name, [&](const std::string& t) { *v = list<std::string>(t); });
  }
  void visit(const char* name, std::vector<std::vector<int64_t>>* v) override {
    with(name, [&](std::string t) {
      for (char& c : t)
        if (c == ',') c = ' ';
      std::istringstream rows(t);
      for (std::string row; std::getline(rows, row, ';');) v->push_back(list<int64_t>(row));
    });
  }

 private:
  template <class T>
  static std::vector<T> list(const std::string& text) {
    std::istringstream in(text);
    std::vector<T> out;
    for (T x; in >> x;) out.push_back(x);
    return out;
  }
  template <class F>
  void with(const char* name, F&& set) {
    auto it = texts_.find(name);
    if (it == texts_.end()) return;
    used.insert(name);
    set(it->second);
  }
  const std::map<std::string, std::string>& texts_;
};

struct Case {
  std::string op;
  bool tuple = false;
  int line = 0;
  std::map<std::string, std::string> attrs;
  std::vector<Value> inputs, outputs;
};

Value read_value(std::istringstream& in) {
  std::string dtype, token;
  in >> dtype;
  std::vector<int64_t> shape;
  while (in >> token && token != ":") shape.push_back(std::stoll(token));
  Value v = make_value(parse_dtype(dtype).value(), shape);
  for (int64_t i = 0; i < v.size(); ++i) {
    in >> token;
    if (v.is_float())
      v.f[i] = std::stod(token);
    else
      v.i[i] = v.dtype == kUInt64 ? static_cast<int64_t>(std::stoull(token)) : std::stoll(token);
  }
  return v;
}

std::vector<Case> read_cases() {
  std::ifstream file(TW_TEST_DATA "/relay/op_cases.txt");
  std::vector<Case> cases;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream in(line);
    std::string tag, word;
    in >> tag;
    if (tag == "op") {
      Case c;
      c.line = number;
      in >> c.op >> word;
      c.tuple = word == "tuple";
      cases.push_back(std::move(c));
    } else if (tag == "attr") {
      in >> word;
      std::string rest;
      std::getline(in >> std::ws, rest);
      cases.back().attrs[word] = rest;
    } else if (tag == "in") {
      cases.back().inputs.push_back(read_value(in));
    } else if (tag == "out") {
      cases.back().outputs.push_back(read_value(in));
    }
  }
  return cases;
}

TEST(OpCases, EqualOnnxruntimeAndNumpy) {
  std::vector<Case> cases = read_cases();
  ASSERT_GT(cases.size(), 300u);
  std::set<std::string> covered;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op + ", line " + std::to_string(c.line));
    covered.insert(c.op);
    const OpDef* def = find_op(c.op);
    ASSERT_TRUE(def);
    AttrsRef attrs = def->make_attrs ? def->make_attrs() : AttrsRef();
    AttrReader reader(c.attrs);
    if (attrs) const_cast<AttrsNode*>(attrs.get())->visit(reader);
    EXPECT_EQ(reader.used.size(), c.attrs.size()) << "an attribute of the case has no field";
    auto got = try_apply(c.op.c_str(), c.inputs, attrs, c.tuple);
    EXPECT_TRUE(got.ok()) << (got.ok() ? "" : got.error().str());
    if (!got.ok()) continue;
    EXPECT_EQ(got->size(), c.outputs.size());
    for (size_t i = 0; i < std::min(got->size(), c.outputs.size()); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      EXPECT_EQ((*got)[i].dtype, c.outputs[i].dtype);
      if (c.outputs[i].is_float())
        expect_floats((*got)[i], c.outputs[i].shape, c.outputs[i].f, 3e-5);
      else
        expect_ints((*got)[i], c.outputs[i].shape, c.outputs[i].i);
    }
  }
  covered.insert("qnn.concatenate");  // three tuples: the test below
  // Operators that no case touches; the list may only shrink.
  std::set<std::string> missing;
  for (const OpDef& op : all_ops())
    if (!covered.count(op.name)) missing.insert(op.name);
  EXPECT_EQ(missing, (std::set<std::string>{})) << "operators without a case";
}

TEST(OpCases, QuantisedTensorsAreJoinedAtOneScale) {
  auto bytes = [](std::vector<int64_t> values) {
    Tensor t = Tensor::zeros(kUInt8, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<int64_t>(i), values[i]);
    return make_constant(t);
  };
  auto zero = [](int64_t v) { return make_scalar(static_cast<double>(v), kInt32); };
  Expr joined = call("qnn.concatenate",
                     {make_tuple({bytes({10, 20}), bytes({5, 255})}), make_tuple({make_scalar(0.5), make_scalar(0.25)}),
                      make_tuple({zero(4), zero(5)}), make_scalar(0.5), zero(10)});
  auto got = evaluate(joined, {});
  ASSERT_TRUE(got.ok()) << got.error().str();
  expect_ints((*got)[0], {4}, {16, 26, 10, 135});
  EXPECT_FALSE(try_call("qnn.concatenate", {make_tuple({bytes({1})}), make_tuple({make_scalar(0.5), make_scalar(0.5)}),
                                            make_tuple({zero(0)}), make_scalar(0.5), zero(0)})
                   .ok());
}

}  // namespace
}  // namespace tilewright::relay
