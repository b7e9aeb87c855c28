// SPDX-License-Identifier: Apache-2.0
// The cases of tests/data/relay/op_cases*.txt: operands and results of operators, made by tests/relay/make_*cases.py
// with onnxruntime and numpy.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "relay/op_testing.h"
#include "test_folders.h"

namespace tilewright::relay {

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
  std::string place;  // "op_cases.txt:12"
  std::map<std::string, std::string> attrs;
  std::vector<Value> inputs, outputs;
};

inline Value read_value(std::istringstream& in) {
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

inline void read_cases(const std::filesystem::path& path, std::vector<Case>* out) {
  std::ifstream file(path);
  std::vector<Case>& cases = *out;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream in(line);
    std::string tag, word;
    in >> tag;
    if (tag == "op") {
      Case c;
      c.place = path.filename().string() + ":" + std::to_string(number);
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
}
// Of every file op_cases*.txt, in order of their names.
inline std::vector<Case> read_cases() {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TW_TEST_DATA "/relay"))
    if (entry.path().filename().string().starts_with("op_cases")) files.insert(entry.path());
  std::vector<Case> cases;
  for (const auto& path : files) read_cases(path, &cases);
  return cases;
}

// The operator's attributes as the case gives them. `complete`: each has a field.
inline AttrsRef attributes(const OpDef& op, const Case& c, bool* complete) {
  AttrsRef attrs = op.make_attrs ? op.make_attrs() : AttrsRef();
  AttrReader reader(c.attrs);
  if (attrs) const_cast<AttrsNode*>(attrs.get())->visit(reader);
  *complete = reader.used.size() == c.attrs.size();
  return attrs;
}

}  // namespace tilewright::relay
