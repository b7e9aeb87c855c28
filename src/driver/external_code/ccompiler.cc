// SPDX-License-Identifier: Apache-2.0
// The code generator "ccompiler": tensor arithmetic as C loops.
#include <map>

#include "base/format.h"
#include "driver/external_code/external_graph_reader.h"
#include "driver/external_code/generators.h"

namespace tilewright::driver {
namespace {

constexpr std::pair<const char*, char> kArithmetic[] = {
    {"add", '+'}, {"subtract", '-'}, {"multiply", '*'}, {"divide", '/'}};

// The C type, or null.
const char* c_type(DataType dtype) {
  static const std::map<std::string, const char*> kTypes = {
      {"float32", "float"},   {"float64", "double"}, {"int8", "int8_t"},   {"int16", "int16_t"},
      {"int32", "int32_t"},   {"int64", "int64_t"},  {"uint8", "uint8_t"}, {"uint16", "uint16_t"},
      {"uint32", "uint32_t"}, {"uint64", "uint64_t"}};
  auto found = kTypes.find(dtype.str());
  return found == kTypes.end() ? nullptr : found->second;
}

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

// The index of an element in a broadcast operand: "i1 * 3 + i2".
std::string index_of(const std::vector<int64_t>& operand, size_t rank) {
  std::string out;
  int64_t stride = 1;
  for (size_t d = operand.size(); d-- > 0;) {
    if (operand[d] != 1) out = format("i{} * {}{}{}", d + rank - operand.size(), stride, out.empty() ? "" : " + ", out);
    stride *= operand[d];
  }
  return out.empty() ? "0" : out;
}

class CWriter {
 public:
  CWriter(const std::string& symbol, const ExternalNodes& graph) : symbol_(symbol), graph_(graph) {}

  Result<SavedModule> run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) TW_TRY_STATUS(name_node(i));
    for (size_t h = 0; h < graph_.heads.size(); ++h) TW_TRY_STATUS(name_head(h));
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op == "kernel") TW_TRY_STATUS(write_loop(i));
    CSource source{text(), "c", {symbol_}, constants_};
    return SavedModule{kCSourceKey, write_c_source(source), {}};
  }

 private:
  Diagnostic refused(const ExternalNode& node, const std::string& why) const {
    return Diagnostic(ErrorCode::kCodegenFailed,
                      format("'{}' of type {} cannot be written in C: {}", node.name,
                             node.dtypes.empty() ? "nothing" : node.dtypes[0].str(), why),
                      {}, "add, subtract, multiply and divide of integers and floats of 32 and 64 bits can");
  }

  Status name_node(size_t i) {
    const ExternalNode& node = graph_.nodes[i];
    if (node.dtypes.size() != 1 || !c_type(node.dtypes[0])) return refused(node, "there is no such type");
    if (node.op == "const") {
      const std::string name = format("constant{}", constants_.size());
      head_ += format("static const {}* {};\n", c_type(node.dtypes[0]), name);
      init_ += format("  {} = (const {}*)tensor_data(args, {});\n", name, c_type(node.dtypes[0]), constants_.size());
      constants_.push_back(node.name);
      names_[i] = name;
    } else if (node.op == "input") {
      names_[i] = format("input{}", inputs_);
      begin_ +=
          format("  const {0}* input{1} = (const {0}*)tensor_data(args, {1});\n", c_type(node.dtypes[0]), inputs_);
      ++inputs_;
    }
    return Ok{};
  }

  // Results are written in place; an argument, or a value returned twice, is copied.
  Status name_head(size_t h) {
    const size_t node = graph_.heads[h].node;
    const char* type = c_type(graph_.nodes[node].dtypes[0]);
    begin_ += format("  {0}* output{1} = ({0}*)tensor_data(args, {2});\n", type, h, inputs_ + h);
    if (graph_.nodes[node].op == "kernel" && !names_.count(node)) {
      names_[node] = format("output{}", h);
      return Ok{};
    }
    end_ += format("  for (int64_t i = 0; i < {}; ++i) output{}[i] = {}[i];\n",
                   element_count(graph_.nodes[node].shapes[0]), h, names_.at(node));
    return Ok{};
  }

  Status write_loop(size_t i) {
    const ExternalNode& node = graph_.nodes[i];
    char sign = 0;
    for (const auto& [name, c] : kArithmetic)
      if (node.name == name) sign = c;
    if (sign == 0 || node.inputs.size() != 2) return refused(node, "it is no such arithmetic");
    if (sign == '/' && !node.dtypes[0].is_float()) return refused(node, "integers are not divided");
    const std::vector<int64_t>& shape = node.shapes[0];
    if (!names_.count(i)) {
      names_[i] = format("value{}", i);
      const char* type = c_type(node.dtypes[0]);
      begin_ += format("  {0}* value{1} = ({0}*)TVMBackendAllocWorkspace(1, 0, {2} * sizeof({0}), 0, 8);\n", type, i,
                       std::max<int64_t>(element_count(shape), 1));
      free_ += format("  TVMBackendFreeWorkspace(1, 0, value{});\n", i);
      check_ += format("{}!value{}", check_.empty() ? "" : " || ", i);
    }
    std::string indent = "  ";
    for (size_t d = 0; d < shape.size(); ++d, indent += "  ")
      loops_ += format("{0}for (int64_t i{1} = 0; i{1} < {2}; ++i{1})\n", indent, d, shape[d]);
    auto operand = [&](size_t k) {
      const ExternalEntry& entry = node.inputs[k];
      return format("{}[{}]", names_.at(entry.node), index_of(graph_.nodes[entry.node].shapes[0], shape.size()));
    };
    loops_ += format("{}{}[{}] = {} {} {};\n", indent, names_[i], index_of(shape, shape.size()), operand(0), sign,
                     operand(1));
    return Ok{};
  }

  std::string text() const {
    std::string out =
        "#include <tvm/runtime/c_runtime_api.h>\n#include <dlpack/dlpack.h>\n#ifdef __cplusplus\nextern \"C\" "
        "{\n#endif\n"
        "static char* tensor_data(TVMValue* args, int i) {\n"
        "  DLTensor* tensor = (DLTensor*)args[i].v_handle;\n"
        "  return (char*)tensor->data + tensor->byte_offset;\n}\n" +
        head_;
    const std::string arguments =
        "(TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code, void* resource) {\n";
    if (!constants_.empty()) out += "TVM_DLL int32_t __init_" + symbol_ + arguments + init_ + "  return 0;\n}\n";
    out += "TVM_DLL int32_t " + symbol_ + arguments;
    out += format("  if (num_args != {}) {{\n    TVMAPISetLastError(\"{} takes {} tensors\");\n    return -1;\n  }}\n",
                  inputs_ + graph_.heads.size(), symbol_, inputs_ + graph_.heads.size());
    out += begin_;
    const std::string body = loops_ + end_;
    if (check_.empty())
      out += body + "  return 0;\n}\n";
    else
      out += "  const int no_memory = " + check_ +
             ";\n  if (no_memory) TVMAPISetLastError(\"out of memory\");\n  if (!no_memory) {\n" + body + "  }\n" +
             free_ + "  return no_memory ? -1 : 0;\n}\n";
    return out + "#ifdef __cplusplus\n}\n#endif\n";
  }

  const std::string& symbol_;
  const ExternalNodes& graph_;
  std::map<size_t, std::string> names_;
  std::vector<std::string> constants_;
  size_t inputs_ = 0;
  std::string head_, init_, begin_, loops_, end_, free_, check_;
};

}  // namespace

Result<SavedModule> generate_c(const std::string& symbol, const std::string& graph_json, const std::vector<Tensor>&) {
  const ExternalNodes graph = TW_TRY(read_external_graph(graph_json));
  return CWriter(symbol, graph).run();
}

}  // namespace tilewright::driver
