// SPDX-License-Identifier: Apache-2.0
// Quantised products for processors without vector units: qnn.conv2d and qnn.dense with their zero points, which
// CanonicalizeQnn keeps there (relay/passes/quantize/byte_products.h).
#include <algorithm>

#include "lower/conv_problem.h"
#include "lower/implementation.h"
#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "topi/conv_bytes.h"
#include "topi/conv_pairs.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// The value of an anchor operand that is a known scalar.
std::optional<int64_t> known_number(const Problem& p, size_t i) {
  const Tensor* t = constant_data(p.anchor.call->args[i]);
  if (t == nullptr && p.anchor.inputs[i] >= 0 && p.input(i).kind == GraphTensor::Kind::kParam) t = &p.input(i).data;
  return t != nullptr && t->size() == 1 && t->dtype().is_integral() ? std::optional<int64_t>(t->at_int(0))
                                                                    : std::nullopt;
}

bool are_byte_operands(const Problem& p) {
  const DataType x = p.arg_dtype(0);
  return p.anchor.inputs[0] >= 0 && p.anchor.inputs[1] >= 0 && (x == kInt8 || x == kUInt8) && p.arg_dtype(1) == kInt8 &&
         known_number(p, 2) && known_number(p, 3) == 0;
}

// Extends a 2-D view to four dimensions.
topi::View as_map(const topi::View& view) {
  if (view.rank() == 4) return view;
  topi::View out = view;
  out.shape.resize(4, 1), out.strides.resize(4, 1);
  out.halo_before.clear(), out.halo_after.clear();
  return out;
}
// Merges the rows of a map.
topi::View as_one_row(const topi::View& map) {
  topi::View out = map;
  out.shape[3] = map.shape[2] * map.shape[3], out.shape[2] = 1;
  out.strides[2] = out.shape[3] * map.strides[3];
  out.halo_before.clear(), out.halo_after.clear();
  return out;
}
bool has_gaps(const topi::View& map) { return map.shape[2] > 1 && map.strides[2] != map.shape[3] * map.strides[3]; }

// Whether the processor multiplies pairs of halfwords in one instruction (Arm's DSP extension).
bool multiplies_pairs(const Target& target) {
  constexpr const char* kProcessors[] = {"cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85"};
  return target.kind == "c" &&
         std::any_of(std::begin(kProcessors), std::end(kProcessors), [&](const char* p) { return target.mcpu == p; });
}

// The 8-bit kernels: one product per instruction, or two.
template <bool kPairs>
struct ByteSums {
  using Config = topi::ConvBytesConfig;
  struct Site {
    topi::ConvBytesProblem problem;
    bool one_row = false;  // the rows of a map can be merged
  };

  static std::optional<Site> site(const Problem& p) {
    if (!are_byte_operands(p) || (kPairs && (!multiplies_pairs(p.target) || !p.constant(1)))) return std::nullopt;
    const auto x = p.arg_shape(0), w = p.arg_shape(1), out = p.out_shape();
    Site s;
    topi::ConvBytesProblem& c = s.problem;
    c.zero = *known_number(p, 2);
    if (p.anchor.op == "qnn.dense") {
      if (x.size() != 2) return std::nullopt;
      c.batch = x[0], c.channels = x[1], c.outputs = w[0];
      return s;
    }
    const auto& a = p.attrs<Conv2DAttrs>();
    if (a.data_layout != "NCHW" || a.kernel_layout != "OIHW" || !(a.out_layout.empty() || a.out_layout == "NCHW"))
      return std::nullopt;
    const Pads pads = pads_of(a.padding);
    c.batch = x[0], c.groups = a.groups, c.channels = w[1], c.outputs = w[0] / a.groups;
    c.in_height = x[2], c.in_width = x[3], c.out_height = out[2], c.out_width = out[3];
    c.kernel_height = w[2], c.kernel_width = w[3], c.stride_height = a.strides[0], c.stride_width = a.strides[1];
    c.dilation_height = a.dilation[0], c.dilation_width = a.dilation[1], c.pad_top = pads.top, c.pad_left = pads.left;
    s.one_row = w[2] == 1 && w[3] == 1 && c.stride_height == 1 && c.stride_width == 1 && pads.top == 0 &&
                pads.left == 0 && pads.bottom == 0 && pads.right == 0;
    return s;
  }
  static topi::ConvBytesProblem in_one_row(const Site& s) {
    topi::ConvBytesProblem c = s.problem;
    if (s.one_row) c.in_width = c.out_width = c.in_height * c.in_width, c.in_height = c.out_height = 1;
    return c;
  }
  static std::vector<Config> configs(const Problem&, const Site& s, size_t most) {
    return kPairs ? topi::pairs_configs(in_one_row(s), most) : topi::configs(in_one_row(s), most);
  }
  static bool fits(const Problem&, const Site& s, const Config& c) {
    return kPairs ? topi::pairs_fit(s.problem, c) : topi::fits(s.problem, c);
  }
  static topi::Cost cost(const Problem& p, const Site& s, const Config& c) {
    return kPairs ? topi::estimate_pairs(in_one_row(s), c, p.target) : topi::estimate(in_one_row(s), c, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const Site& s, const Config& config) {
    auto choice = std::make_shared<Choice>();
    const bool is_map = p.anchor.op != "qnn.dense";
    if (kPairs)
      choice->repacks.emplace_back(p.input_index(1),
                                   [config](const Tensor& t) { return topi::pack_conv_pairs(t, config); });
    choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
      const auto input = [&](size_t i) { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      topi::View data = as_map(input(0)), out = as_map(scope.output());
      const topi::View weights = input(1);
      const bool together = s.one_row && !has_gaps(data) && !has_gaps(out);
      const int64_t width = out.shape[3];
      if (together) data = as_one_row(data), out = as_one_row(out);
      const topi::Epilogue epilogue = [=, inner = scope.epilogue(anchor)](const tir::PrimExpr& value,
                                                                          const topi::Index& at,
                                                                          const tir::PrimExpr& mask) {
        if (!is_map) return inner(value, {at[0], at[1]}, mask);
        if (!together) return inner(value, at, mask);
        const tir::PrimExpr y = tir::floordiv(at[3], width);
        return inner(value, {at[0], at[1], y, at[3] - y * width}, mask);
      };
      const auto kernel = kPairs ? topi::conv_pairs : topi::conv_bytes;
      return kernel(together ? in_one_row(s) : s.problem, config, data, weights, out, epilogue, context);
    };
    return choice;
  }
};

constexpr Implementation kByteImplementations[] = {
    tuned<ByteSums<false>>("qnn.conv2d", "qnn_conv2d.bytes", 10),
    tuned<ByteSums<true>>("qnn.conv2d", "qnn_conv2d.pairs", 10),
    tuned<ByteSums<false>>("qnn.dense", "qnn_dense.bytes", 10),
};

}  // namespace

std::span<const Implementation> byte_implementations() { return kByteImplementations; }

}  // namespace tilewright::lower
