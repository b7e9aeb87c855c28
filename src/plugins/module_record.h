// SPDX-License-Identifier: Apache-2.0
// The stored form of a function for third-party kernels: name, graph (docs/external-codegen.md), and constants in node
// order.
#pragma once
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tilewright/compiler.h"

namespace tilewright::plugins {

struct ModuleRecord {
  std::string symbol, graph;
  std::vector<std::string> constants;
};

inline void append_number(std::string* out, uint64_t n) {
  for (size_t i = 0; i < 8; ++i) out->push_back(static_cast<char>(n >> (8 * i) & 0xff));
}
inline void append_text(std::string* out, const std::string& text) {
  append_number(out, text.size());
  *out += text;
}

inline std::string write_record(const ModuleRecord& record) {
  std::string out;
  append_text(&out, record.symbol), append_text(&out, record.graph);
  for (const std::string& bytes : record.constants) append_text(&out, bytes);
  return out;
}

// A module of C source (docs/external-codegen.md): its functions, and the names of the constants that it wants.
inline std::string write_source_record(const std::string& code, const std::vector<std::string>& functions,
                                       const std::vector<std::string>& constants) {
  std::string out;
  append_text(&out, code), append_text(&out, "c");
  for (const auto* names : {&functions, &constants}) {
    append_number(&out, names->size());
    for (const std::string& name : *names) append_text(&out, name);
  }
  return out;
}

inline ModuleRecord read_record(const std::string& bytes) {
  size_t at = 0;
  auto text = [&] {
    uint64_t n = 0;
    if (bytes.size() - at < 8) throw std::runtime_error("the record of an external function ends early");
    for (size_t i = 8; i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[at + i]);
    at += 8;
    if (n > bytes.size() - at) throw std::runtime_error("the record of an external function ends early");
    at += n;
    return bytes.substr(at - n, n);
  };
  ModuleRecord out;
  out.symbol = text();
  out.graph = text();
  while (at < bytes.size()) out.constants.push_back(text());
  return out;
}

inline ModuleRecord record_of(const std::string& symbol, const std::string& graph,
                              const std::vector<DLTensor>& constants) {
  ModuleRecord record{symbol, graph, {}};
  for (const DLTensor& t : constants) {
    size_t bytes = t.dtype.bits / 8;
    for (int d = 0; d < t.ndim; ++d) bytes *= static_cast<size_t>(t.shape[d]);
    record.constants.emplace_back(static_cast<const char*>(t.data) + t.byte_offset, bytes);
  }
  return record;
}

// One operator of a chain, with its attributes.
struct ChainOperator {
  std::string name;
  nlohmann::json attrs;
};

inline std::vector<ChainOperator> operators_of(const nlohmann::json& node) {
  const nlohmann::json& attrs = node.at("attrs");
  if (!attrs.contains("operator_attrs")) return {{node.at("name").get<std::string>(), attrs}};
  std::vector<ChainOperator> out;
  for (const nlohmann::json& text : attrs.at("operator_attrs").at(0)) {
    const nlohmann::json one = nlohmann::json::parse(text.get<std::string>());
    out.push_back({one.at("op").get<std::string>(), one.at("attrs")});
  }
  return out;
}

inline std::string attribute(const nlohmann::json& attrs, const char* name, const std::string& otherwise = "") {
  return attrs.contains(name) ? attrs.at(name).at(0).at(0).get<std::string>() : otherwise;
}
inline bool is_true(const nlohmann::json& attrs, const char* name, bool otherwise = false) {
  const std::string text = attribute(attrs, name, otherwise ? "1" : "0");
  return text == "True" || text == "1" || text == "true";
}

}  // namespace tilewright::plugins
