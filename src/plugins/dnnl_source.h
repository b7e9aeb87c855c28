// SPDX-License-Identifier: Apache-2.0
// A function for oneDNN as one C file, which calls oneDNN's C interface: dnnl_calls.h, then the network, step by step.
// Primitives are made and weights reordered at the first call; the constants come by __init_<symbol>.
#pragma once
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "plugins/dnnl_calls_text.h"
#include "plugins/dnnl_steps.h"
#include "tilewright/compiler.h"

namespace tilewright::plugins::onednn {

class SourceWriter {
 public:
  SourceWriter(const std::string& symbol, const Graph& graph) : symbol_(symbol), graph_(graph), reader_(graph) {}

  std::string write() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Graph::Node& node = graph_.nodes()[i];
      switch (node.kind) {
        case Graph::Kind::kInput:
          arguments_.push_back(value(i));
          line(value(i) + " = onednn_argument(net, " + rank_and_sizes(node.shape) + ");");
          break;
        case Graph::Kind::kConstant:
          line(value(i) + " = onednn_constant(net, " + rank_and_sizes(node.shape) + ", constants[" +
               std::to_string(constants_.size()) + "]);");
          constants_.push_back(symbol_ + "_const_" + std::to_string(constants_.size()));
          break;
        case Graph::Kind::kKernel:
          kernel(reader_.step_of(i));
          break;
      }
    }
    for (size_t h = 0; h < graph_.heads().size(); ++h) {
      const size_t node = graph_.heads()[h];
      arguments_.push_back("result" + std::to_string(h));
      line(arguments_.back() + " = onednn_result(net, " + value(node) + ", " + rank_and_sizes(shape_of(node)) + ");");
    }
    return text();
  }

  const std::vector<std::string>& constants() const { return constants_; }

 private:
  const Dims& shape_of(size_t node) const { return graph_.nodes()[node].shape; }
  void line(const std::string& text) { statement("const onednn_value " + text); }
  // Broken behind commas where it is long.
  void statement(const std::string& text) {
    constexpr size_t kWidth = 100;
    std::string rest = "  " + text;
    while (rest.size() > kWidth) {
      const size_t comma = rest.rfind(", ", kWidth);
      if (comma == std::string::npos || comma < kWidth / 2) break;
      body_ += rest.substr(0, comma + 1) + "\n";
      rest = std::string(6, ' ') + rest.substr(comma + 2);
    }
    body_ += rest + "\n";
  }

  static std::string value(size_t node) { return "v" + std::to_string(node); }
  static std::string numbers(const Dims& dims) {
    std::string out;
    for (int64_t d : dims) out += (out.empty() ? "" : ", ") + std::to_string(d);
    return out;
  }
  static std::string list(const Dims& dims) { return "{" + numbers(dims) + "}"; }
  static std::string sizes(const Dims& dims) { return "SIZES(" + numbers(dims) + ")"; }
  // A tensor without axes has one of one element.
  static std::string rank_and_sizes(const Dims& dims) {
    return dims.empty() ? "1, SIZES(1)" : std::to_string(dims.size()) + ", " + sizes(dims);
  }
  static std::string number(float value) {
    if (std::isinf(value)) return value > 0 ? "HUGE_VALF" : "-HUGE_VALF";
    if (std::isnan(value)) return "NAN";
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    const bool whole = std::string(text).find_first_of(".e") == std::string::npos;
    return std::string(text) + (whole ? ".0f" : "f");
  }
  static std::string window(const Window& w) {
    return "(onednn_window){" + list(w.strides) + ", " + list(w.dilation) + ", " + list(w.before) + ", " +
           list(w.after) + "}";
  }

  // The node's value with other sizes; the same where they are its own.
  std::string seen_as(size_t node, const Dims& seen) const {
    return shape_of(node) == seen ? value(node) : seen_anew(node, seen);
  }
  // Row major, too.
  std::string seen_anew(size_t node, const Dims& seen) const {
    return "onednn_seen_as(net, " + value(node) + ", " + rank_and_sizes(shape_of(node)) + ", " + rank_and_sizes(seen) +
           ")";
  }

  // Writes the tail of a convolution or a product; returns its name.
  std::string tail(const Step& step) {
    std::string name = "tail" + std::to_string(step.node);
    statement("onednn_tail " + name + " = onednn_begin_tail(net);");
    if (step.bias != kNone) statement(name + ".bias = " + seen_as(step.bias, {step.out[1]}) + ";");
    for (const PostOp& op : step.tail) switch (op.kind) {
        case PostOp::Kind::kEltwise:
          statement("onednn_then_eltwise(net, &" + name + ", " + op.function.name + ", " + number(op.alpha) + ", " +
                    number(op.beta) + ");");
          break;
        case PostOp::Kind::kSum:
          statement("onednn_then_sum(net, &" + name + ", " + value(op.operand) + ", " +
                    (step.sum_may_be_written ? "1" : "0") + ");");
          break;
        case PostOp::Kind::kBinaryAdd:
          statement("onednn_then_add(net, &" + name + ", " + seen_anew(op.operand, op.seen) + ");");
          break;
      }
    return name;
  }

  void kernel(const Step& step) {
    body_ += "  /* " + step.operators + " */\n";
    const std::string out = value(step.node), data = value(step.data),
                      kind = step.algorithm.name ? step.algorithm.name : "";
    switch (step.kind) {
      case Step::Kind::kConvolution: {
        const std::string name = tail(step);
        line(out + " = onednn_conv2d(net, &" + name + ", " + data + ", " + sizes(step.in) + ", " +
             seen_as(step.other, step.weights) + ", " + rank_and_sizes(step.weights) + ", " + sizes(step.out) + ", " +
             window(step.slide) + ");");
        return;
      }
      case Step::Kind::kProduct: {
        const std::string name = tail(step);
        line(out + " = onednn_dense(net, &" + name + ", " + data + ", " + rank_and_sizes(step.in) + ", " +
             value(step.other) + ", " + sizes(step.weights) + ", " + sizes(step.out) + ");");
        return;
      }
      case Step::Kind::kPool:
        line(out + " = onednn_pool2d(net, " + kind + ", " + data + ", " + sizes(step.out) + ", " + sizes(step.window) +
             ", " + window(step.slide) + ");");
        return;
      case Step::Kind::kSoftmax:
        line(out + " = onednn_softmax(net, " + data + ", " + std::to_string(step.axis) + ");");
        return;
      case Step::Kind::kEltwise:
        line(out + " = onednn_eltwise(net, " + kind + ", " + data + ", " + number(step.alpha) + ", " +
             number(step.beta) + ");");
        return;
      case Step::Kind::kBinary: {
        const bool same = shape_of(step.other) == step.out;
        const std::string other = same ? value(step.other) : seen_anew(step.other, step.weights);
        line(out + " = onednn_binary(net, " + kind + ", " + data + ", " + other + ", " + (same ? "1" : "0") + ");");
        return;
      }
    }
  }

  std::string text() const {
    const std::string count = std::to_string(arguments_.size());
    const std::string parameters =
        "(TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code, void* resource) {\n"
        "  (void)type_codes, (void)num_args, (void)result, (void)result_code, (void)resource;\n";
    std::string out = "/* " + symbol_ +
                      " by oneDNN: link with -ldnnl. */\n#pragma comment(lib, \"dnnl\")\n"
                      "#include <dlpack/dlpack.h>\n#include <math.h>\n#include <pthread.h>\n#include "
                      "<tvm/runtime/c_runtime_api.h>\n\n" +
                      std::string(kCallsText) +
                      "\nstatic onednn_net network;\nstatic pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* the "
                      "network's memory "
                      "serves one run at a time */\nstatic int made;\nstatic onednn_value arguments[" +
                      count + "]; /* inputs, then results */\n";
    if (!constants_.empty()) out += "static const float* constants[" + std::to_string(constants_.size()) + "];\n";
    out +=
        "\nstatic char* tensor_data(TVMValue* args, int i) {\n  DLTensor* tensor = (DLTensor*)args[i].v_handle;\n"
        "  return (char*)tensor->data + tensor->byte_offset;\n}\n\nstatic void make_network(onednn_net* net) {\n"
        "  onednn_open(net);\n" +
        body_;
    for (size_t i = 0; i < arguments_.size(); ++i)
      out += "  arguments[" + std::to_string(i) + "] = " + arguments_[i] + ";\n";
    out +=
        "}\n\n#if defined(__GNUC__)\n__attribute__((destructor)) static void close_network(void) { "
        "onednn_close(&network); }\n#endif\n\n";
    if (!constants_.empty())
      out += "TVM_DLL int32_t __init_" + symbol_ + parameters + "  for (int i = 0; i < " +
             std::to_string(constants_.size()) +
             "; ++i) constants[i] = (const float*)tensor_data(args, i);\n  return 0;\n}\n\n";
    out += "TVM_DLL int32_t " + symbol_ + parameters + "  if (num_args != " + count + ") {\n    TVMAPISetLastError(\"" +
           symbol_ + " takes " + count +
           " tensors\");\n    return -1;\n  }\n  pthread_mutex_lock(&turn);\n  if (!made) make_network(&network);\n"
           "  made = 1;\n  for (int i = 0; i < " +
           count +
           "; ++i) onednn_set(&network, arguments[i], tensor_data(args, i));\n"
           "  const char* failed = onednn_run(&network);\n  pthread_mutex_unlock(&turn);\n"
           "  if (failed) TVMAPISetLastError(failed);\n  return failed ? -1 : 0;\n}\n";
    return out;
  }

  const std::string& symbol_;
  const Graph& graph_;
  const StepReader reader_;
  std::vector<std::string> constants_, arguments_;  // arguments_: of the function, by their values
  std::string body_;
};

// The code generator `name`, whose modules are C source. What `tried` refuses, it refuses.
inline ExternalCodegen source_codegen(const std::string& name, const ExternalCodegen& tried) {
  ExternalCodegen g;
  g.name = name;
  g.generate = [tried](const std::string& symbol, const std::string& json, const std::vector<DLTensor>& constants) {
    (void)tried.generate(symbol, json, constants);
    const ModuleRecord record = record_of(symbol, json, constants);
    const Graph graph(record.graph, record.constants);
    SourceWriter writer(symbol, graph);
    const std::string code = writer.write();
    return std::pair(std::string("c"), write_source_record(code, {symbol}, writer.constants()));
  };
  return g;
}

}  // namespace tilewright::plugins::onednn
