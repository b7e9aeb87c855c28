// SPDX-License-Identifier: Apache-2.0
// The code generator "cblas" with modules of type "cblas_json": matrix products by a BLAS (docs/external-codegen.md). A
// plug-in of compiler and runtime, so that neither depends on a BLAS.
#include <cblas.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "plugins/graph_plugin.h"

namespace {

using Json = nlohmann::json;
using tilewright::plugins::Graph;
using tilewright::plugins::is_true;
using Operator = tilewright::plugins::ChainOperator;
using Shape = std::vector<int64_t>;

int64_t count_of(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

void multiply(bool turn_a, bool turn_b, int m, int n, int k, const float* a, int lda, const float* b, int ldb,
              float* c) {
  cblas_sgemm(CblasRowMajor, turn_a ? CblasTrans : CblasNoTrans, turn_b ? CblasTrans : CblasNoTrans, m, n, k, 1, a, lda,
              b, ldb, 0, c, n);
}
void multiply(bool turn_a, bool turn_b, int m, int n, int k, const double* a, int lda, const double* b, int ldb,
              double* c) {
  cblas_dgemm(CblasRowMajor, turn_a ? CblasTrans : CblasNoTrans, turn_b ? CblasTrans : CblasNoTrans, m, n, k, 1, a, lda,
              b, ldb, 0, c, n);
}

// A batched matrix product with its epilogue.
struct Product {
  size_t a = 0, b = 0, out = 0, bias = SIZE_MAX;  // indices of values
  bool turn_a = false, turn_b = false, relu = false;
  int m = 0, n = 0, k = 0;
  int64_t batch = 1, step_a = 0, step_b = 0;  // elements between consecutive matrices; 0 if all share one
};

template <class T>
void run_product(const Product& p, const std::vector<char*>& values) {
  const T *a = reinterpret_cast<const T*>(values[p.a]), *b = reinterpret_cast<const T*>(values[p.b]);
  const T* bias = p.bias == SIZE_MAX ? nullptr : reinterpret_cast<const T*>(values[p.bias]);
  T* out = reinterpret_cast<T*>(values[p.out]);
  for (int64_t i = 0; i < p.batch; ++i, out += int64_t{p.m} * p.n) {
    multiply(p.turn_a, p.turn_b, p.m, p.n, p.k, a + i * p.step_a, p.turn_a ? p.m : p.k, b + i * p.step_b,
             p.turn_b ? p.k : p.n, out);
    if (bias == nullptr && !p.relu) continue;
    for (int64_t e = 0; e < int64_t{p.m} * p.n; ++e) {
      const T value = bias != nullptr ? out[e] + bias[e % p.n] : out[e];
      out[e] = p.relu && value < 0 ? T(0) : value;
    }
  }
}

// The function: memory of values, and products in order.
class Plan {
 public:
  Plan(const Graph& graph, const std::vector<std::string>& constants) : graph_(graph) {
    size_t constant = 0;
    for (size_t i = 0; i < nodes().size(); ++i) {
      values_.push_back(nullptr);
      if (nodes()[i].kind == Graph::Kind::kConstant) {
        values_[i] = const_cast<char*>(constants[constant++].data());
      } else if (nodes()[i].kind == Graph::Kind::kKernel) {
        run_.push_back(product_of(nodes()[i], i));
        memory_.emplace_back(nodes()[i].bytes + 64);
        const size_t off = reinterpret_cast<uintptr_t>(memory_.back().data()) % 64;
        values_[i] = memory_.back().data() + (off == 0 ? 0 : 64 - off);
      }
    }
  }

  void call(tilewright::Args args) {
    const std::vector<size_t>&inputs = graph_.inputs(), &heads = graph_.heads();
    auto data = [&](size_t i) { return static_cast<char*>(args[i].tensor().data) + args[i].tensor().byte_offset; };
    std::vector<char*> values = values_;
    for (size_t i = 0; i < inputs.size(); ++i) values[inputs[i]] = data(i);
    // The last product writes directly to its result; a result that is also read again is copied.
    std::vector<bool> placed(heads.size(), false);
    for (size_t h = 0; h < heads.size(); ++h)
      if (nodes()[heads[h]].kind == Graph::Kind::kKernel && values[heads[h]] == values_[heads[h]])
        values[heads[h]] = data(inputs.size() + h), placed[h] = true;
    for (const Product& p : run_) is_double(p.out) ? run_product<double>(p, values) : run_product<float>(p, values);
    for (size_t h = 0; h < heads.size(); ++h)
      if (!placed[h]) std::copy_n(values[heads[h]], nodes()[heads[h]].bytes, data(inputs.size() + h));
  }

 private:
  const std::vector<Graph::Node>& nodes() const { return graph_.nodes(); }
  const Shape& shape_of(size_t node) const { return nodes()[node].shape; }
  bool is_double(size_t node) const { return nodes()[node].dtype == "float64"; }
  static int small(int64_t extent) {
    if (extent > std::numeric_limits<int>::max())
      throw std::runtime_error("a BLAS takes matrices of 1 to 2147483647 rows and columns");
    return static_cast<int>(extent);
  }

  Product product_of(const Graph::Node& node, size_t index) {
    const std::vector<Operator> chain = tilewright::plugins::operators_of(*node.json);
    auto input = [&](size_t i) { return node.inputs.at(i); };
    const std::string& name = chain.at(0).name;
    if (name != "nn.dense" && name != "nn.matmul" && name != "nn.batch_matmul")
      throw std::runtime_error("a BLAS has no '" + name + "'");
    const Json& attrs = chain[0].attrs;
    Product p;
    p.a = input(0), p.b = input(1), p.out = index;
    p.turn_a = is_true(attrs, "transpose_a"),
    p.turn_b = name == "nn.dense" || is_true(attrs, "transpose_b", name == "nn.batch_matmul");
    const Shape &a = shape_of(p.a), &b = shape_of(p.b), &out = shape_of(index);
    if (a.size() < 2 || a.size() > 3 || a.size() != b.size() || a.size() != out.size())
      throw std::runtime_error("a BLAS multiplies matrices");
    const size_t last = a.size() - 1;
    p.m = small(out[last - 1]), p.n = small(out[last]), p.k = small(a[p.turn_a ? last - 1 : last]);
    if (last == 2) {
      p.batch = out[0];
      p.step_a = a[0] == 1 ? 0 : int64_t{p.m} * p.k, p.step_b = b[0] == 1 ? 0 : int64_t{p.k} * p.n;
    }
    if (a != matrices(a, p.m, p.k, p.turn_a) || b != matrices(b, p.k, p.n, p.turn_b) ||
        (last == 2 && ((a[0] != 1 && a[0] != p.batch) || (b[0] != 1 && b[0] != p.batch))))
      tilewright::plugins::damaged("the matrices of a product do not fit");
    for (size_t i = 1; i < chain.size(); ++i) {
      if (chain[i].name == "nn.relu") {
        p.relu = true;
      } else if ((chain[i].name == "add" || chain[i].name == "nn.bias_add") && p.bias == SIZE_MAX && !p.relu) {
        p.bias = input(2);
        if (count_of(shape_of(p.bias)) != p.n) throw std::runtime_error("a bias has one number for each column");
      } else {
        throw std::runtime_error("nothing computes '" + chain[i].name + "' behind a product of the BLAS");
      }
    }
    for (size_t value : {p.a, p.b, p.bias == SIZE_MAX ? p.a : p.bias})
      if (is_double(value) != is_double(index)) throw std::runtime_error("a BLAS multiplies numbers of one type");
    return p;
  }

  // The shape with these rows and columns.
  static Shape matrices(Shape shape, int64_t rows, int64_t columns, bool turned) {
    shape[shape.size() - 2] = turned ? columns : rows;
    shape[shape.size() - 1] = turned ? rows : columns;
    return shape;
  }

  const Graph& graph_;
  std::vector<char*> values_;  // by node; inputs are null between calls
  std::vector<std::vector<char>> memory_;
  std::vector<Product> run_;
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const tw_external_codegen* tw_compiler_plugin(uint64_t* count) {
  static const tilewright::ExternalCodegen generator = tilewright::plugins::graph_codegen<Plan>("cblas");
  static const tw_external_codegen list[] = {generator.as_c()};
  *count = 1;
  return list;
}

__attribute__((visibility("default"))) int32_t tw_runtime_plugin(void) {
  return tilewright::plugins::register_graph_loader<Plan>("cblas");
}

}  // extern "C"
