// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/sparse_weights.h"

#include <charconv>
#include <sstream>

#include "base/format.h"
#include "relay/ops/attrs.h"
#include "relay/passes/classic/weight_parameters.h"

namespace tilewright::relay {
namespace {

const ConfigKey<std::vector<std::string>> kDense{"relay.DenseToSparse.weights", {}},
    kConv{"relay.Conv2dToSparse.weights", {}}, kBlock{"relay.Conv2dToSparse2.blocksize", {}};
const ConfigKey<std::string> kLayout{"relay.Conv2dToSparse.layout", "NHWC"},
    kLayout2{"relay.Conv2dToSparse2.layout", "NHWC"};
const ConfigKey<int64_t> kKernel{"relay.Conv2dToSparse.kernel_size", 1},
    kKernel2{"relay.Conv2dToSparse2.kernel_size", 1};
const ConfigKey<double> kThreshold{"relay.Conv2dToSparse2.sparsity_threshold", 0};

Diagnostic wrong(std::string message) { return Diagnostic(ErrorCode::kInvalidArgument, std::move(message)); }

Result<std::vector<int64_t>> numbers(const std::string& text) {
  std::vector<int64_t> out;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    int64_t n = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (error != std::errc() || end != part.data() + part.size() || n < 0)
      return wrong(format("'{}' is not a list of sizes", text));
    out.push_back(n);
  }
  return out;
}

// Shapes of data, indices and indptr, by the weight's name.
using PartSizes = std::map<std::string, std::vector<int64_t>>;
Result<PartSizes> sizes_of(const std::vector<std::string>& entries, size_t fewest) {
  PartSizes out;
  for (const std::string& entry : entries) {
    const size_t sign = entry.rfind('=');
    if (sign == std::string::npos) return wrong(format("'{}' is not weight=sizes", entry));
    std::vector<int64_t> sizes = TW_TRY(numbers(entry.substr(sign + 1)));
    if (sizes.size() < fewest || sizes.size() > 5)
      return wrong(format("'{}' does not have the sizes of data (blocks, rows, columns), indices and indptr", entry));
    out[entry.substr(0, sign)] = std::move(sizes);
  }
  return out;
}

struct Parameters {
  Expr data, indices, indptr;
};
Parameters make_parameters(const VarNode& weight, const std::vector<int64_t>& sizes) {
  const size_t rank = sizes.size() - 2;
  auto parameter = [&](const char* suffix, const std::vector<int64_t>& shape, DataType dtype) {
    return make_var(weight.name + suffix, tensor_type(to_shape(shape), dtype), weight.span);
  };
  return {parameter(".data", {sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank)},
                    as_tensor(weight.type)->dtype),
          parameter(".indices", {sizes[rank]}, kInt32), parameter(".indptr", {sizes[rank + 1]}, kInt32)};
}

// Replaces calls of `op` on the listed weights by `make`. Errors: those of typing the new calls.
Result<Module> with_sparse_weights(const Module& module, std::string_view op, const PartSizes& weights,
                                   const std::function<bool(const Expr&)>& fits,
                                   const std::function<Result<Expr>(const Expr&, const Parameters&)>& make) {
  std::optional<Diagnostic> error;
  Module out = rewrite_functions(module, [&](const Expr& function) {
    std::map<const ExprNode*, Parameters> made;
    Expr body = rewrite_expr(as<FunctionNode>(function)->body, [&](const Expr&, const Expr& e) {
      if (!is_call_to(e, op) || !fits(e)) return e;
      const auto* weight = as<VarNode>(arg(e, 1));
      auto listed = weight ? weights.find(weight->name) : weights.end();
      if (listed == weights.end()) return e;
      auto [it, fresh] = made.try_emplace(weight);
      if (fresh) it->second = make_parameters(*weight, listed->second);
      auto call = make(e, it->second);
      if (call.ok() && type_equal((*call)->type, e->type)) return *call;
      if (!error)
        error = wrong(format("the sizes of the weight '{}' are not those of {}{}", weight->name, type_str(weight->type),
                             call.ok() ? "" : ": " + call.error().message));
      return e;
    });
    return with_used_params(function, body);
  });
  if (error) return *error;
  return out;
}

// Whether nn.sparse_conv2d can compute the convolution, in its layout.
bool fits_sparse(const Expr& e, const std::string& layout, int64_t kernel) {
  const auto& a = attrs_of<Conv2DAttrs>(e);
  auto shape = static_shape(tensor_of(arg(e, 1)).shape);
  if (!shape || a.data_layout != layout || a.kernel_layout != (layout == "NHWC" ? "HWIO" : "OIHW") ||
      !(a.out_layout.empty() || a.out_layout == layout) || a.groups != 1)
    return false;
  const size_t down = layout == "NHWC" ? 0 : 2;
  if ((*shape)[down] != kernel || (*shape)[down + 1] != kernel) return false;
  for (int64_t s : a.strides)
    if (s != 1) return false;
  for (int64_t d : a.dilation)
    if (d != 1 && kernel != 1) return false;
  for (int64_t p : a.padding)
    if (p != (kernel == 3 ? 1 : 0)) return false;
  return true;
}

Status check_form(const std::string& layout, int64_t kernel) {
  if (layout != "NHWC" && layout != "NCHW") return wrong(format("layout '{}' is not NHWC or NCHW", layout));
  if (kernel != 1 && kernel != 3) return wrong(format("kernel_size is {}, not 1 or 3", kernel));
  return Ok{};
}

AttrsRef form(const std::string& layout, int64_t kernel) {
  return make_attrs<SparseConv2DAttrs>([&](auto& a) {
    a.layout = layout;
    a.kernel_size = {kernel, kernel};
  });
}

// The non-zero blocks of a convolution's weight as data, indices and indptr; nothing when too few blocks would be
// dropped, or the blocks do not divide the weight.
std::optional<std::vector<Tensor>> blocks_of(const Tensor& weight, const std::string& layout, int64_t rows,
                                             int64_t columns, double threshold) {
  const auto& shape = weight.shape();
  const bool last = layout == "NHWC";
  const int64_t out = shape[last ? 3 : 0], in = weight.size() / std::max<int64_t>(out, 1);
  if (out == 0 || in == 0 || out % rows != 0 || in % columns != 0) return std::nullopt;
  auto element = [&](int64_t o, int64_t i) { return weight.at_double(last ? i * out + o : o * in + i); };
  std::vector<double> data;
  std::vector<int64_t> indices, indptr{0};
  for (int64_t r = 0; r < out / rows; ++r) {
    for (int64_t c = 0; c < in / columns; ++c) {
      bool any = false;
      for (int64_t i = 0; i < rows * columns; ++i)
        any |= element(r * rows + i / columns, c * columns + i % columns) != 0;
      if (!any) continue;
      indices.push_back(c);
      for (int64_t i = 0; i < rows * columns; ++i)
        data.push_back(element(r * rows + i / columns, c * columns + i % columns));
    }
    indptr.push_back(static_cast<int64_t>(indices.size()));
  }
  if (1 - static_cast<double>(data.size()) / static_cast<double>(weight.size()) < threshold) return std::nullopt;
  const int64_t count = static_cast<int64_t>(indices.size());
  std::vector<Tensor> made;
  made.push_back(Tensor::zeros(weight.dtype(), {count, rows, columns}));
  for (size_t i = 0; i < data.size(); ++i) made[0].set_double(static_cast<int64_t>(i), data[i]);
  for (const auto* list : {&indices, &indptr}) {
    made.push_back(Tensor::zeros(kInt32, {static_cast<int64_t>(list->size())}));
    for (size_t i = 0; i < list->size(); ++i) made.back().set_int(static_cast<int64_t>(i), (*list)[i]);
  }
  return made;
}

}  // namespace

Result<Module> dense_to_sparse(const Module& module, PassContext& context) {
  const PartSizes weights = TW_TRY(sizes_of(context.get(kDense), 5));
  return with_sparse_weights(
      module, "nn.dense", weights, [](const Expr& e) { return tensor_of(arg(e, 0)).shape.size() == 2; },
      [](const Expr& e, const Parameters& w) {
        return try_call("nn.sparse_dense", {arg(e, 0), w.data, w.indices, w.indptr}, {}, e->span);
      });
}

Result<Module> conv2d_to_sparse(const Module& module, PassContext& context) {
  const PartSizes weights = TW_TRY(sizes_of(context.get(kConv), 4));
  const std::string layout = context.get(kLayout);
  const int64_t kernel = context.get(kKernel);
  TW_TRY_STATUS(check_form(layout, kernel));
  return with_sparse_weights(
      module, "nn.conv2d", weights, [&](const Expr& e) { return fits_sparse(e, layout, kernel); },
      [&](const Expr& e, const Parameters& w) {
        return try_call("nn.sparse_conv2d", {arg(e, 0), w.data, w.indices, w.indptr}, form(layout, kernel), e->span);
      });
}

Result<Module> conv2d_to_sparse2(const Module& module, PassContext& context) {
  const std::string layout = context.get(kLayout2);
  const int64_t kernel = context.get(kKernel2);
  TW_TRY_STATUS(check_form(layout, kernel));
  std::vector<int64_t> block;
  for (const std::string& part : context.get(kBlock)) {
    std::vector<int64_t> size = TW_TRY(numbers(part));
    block.insert(block.end(), size.begin(), size.end());
  }
  if (block.empty()) block = {1, 1};
  if (block.size() == 1) block.push_back(block[0]);
  if (block.size() != 2 || block[0] < 1 || block[1] < 1)
    return wrong("blocksize is not the rows and columns of a block");
  const double threshold = context.get(kThreshold);
  return rewrite_module(module, [&](const Expr&, const Expr& e) {
    if (!is_call_to(e, "nn.conv2d") || !fits_sparse(e, layout, kernel)) return e;
    const Tensor* weight = constant_data(arg(e, 1));
    if (!weight || !weight->dtype().is_float()) return e;
    auto blocks = blocks_of(*weight, layout, block[0], block[1], threshold);
    if (!blocks) return e;
    auto out = try_call("nn.sparse_conv2d",
                        {arg(e, 0), make_constant((*blocks)[0], arg(e, 1)->span), make_constant((*blocks)[1]),
                         make_constant((*blocks)[2])},
                        form(layout, kernel), e->span);
    return out.ok() && type_equal((*out)->type, e->type) ? *out : e;
  });
}

}  // namespace tilewright::relay
