// SPDX-License-Identifier: Apache-2.0
// Fallback implementations: loops for dtypes, ranks and operators without a template of their own. They apply to
// (nearly) everything and have the lowest priority.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "lower/compute.h"
#include "lower/implementation.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/ops/tensor/einsum.h"
#include "topi/direct.h"
#include "topi/reduce.h"

namespace tilewright::lower {
namespace {
using namespace relay;
using tir::PrimExpr;
using topi::Index;

size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}
PrimExpr read(const topi::Operand& operand, const Index& index, DataType dtype) {
  PrimExpr value = operand(index, 1, {});
  return value->dtype == dtype ? value : tir::cast(dtype, value);
}
PrimExpr both(PrimExpr a, PrimExpr b) { return a ? tir::logical_and(std::move(a), std::move(b)) : b; }
PrimExpr if_inside(const PrimExpr& inside, PrimExpr value, PrimExpr otherwise) {
  return inside ? tir::intrinsic(tir::Intrinsic::k_if_then_else, {inside, std::move(value), std::move(otherwise)})
                : value;
}
PrimExpr between(const PrimExpr& i, int64_t extent) {
  return tir::logical_and(tir::le(tir::make_int(0), i), tir::lt(i, tir::make_int(extent)));
}

// A reduction as loops: the summand of one result from the anchor's operands, and what becomes of its sum (the group's
// epilogue, if nothing else).
struct Loops {
  topi::DirectProblem problem;
  std::function<topi::DirectTerm(const GroupScope&, const Anchor&)> term;
  std::function<topi::Epilogue(const GroupScope&, const Anchor&)> finish = {};
};

// The implementation of what `make` describes; it applies where there is a description.
template <std::optional<Loops> (*describe)(const Problem&)>
struct Direct {
  using Config = topi::DirectConfig;
  static std::optional<Loops> site(const Problem& p) { return describe(p); }
  static std::vector<Config> configs(const Problem& p, const Loops& loops, size_t most) {
    return topi::configs(loops.problem, p.target, most);
  }
  static bool fits(const Problem& p, const Loops& loops, const Config& config) {
    return topi::fits(loops.problem, config, p.target);
  }
  static topi::Cost cost(const Problem& p, const Loops& loops, const Config& config) {
    return topi::estimate(loops.problem, config, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const Loops& loops, const Config& config) {
    auto choice = std::make_shared<Choice>();
    choice->emit = [loops, config, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
      return topi::direct_reduction(loops.problem, config, loops.term(scope, anchor), scope.output(),
                                    loops.finish ? loops.finish(scope, anchor) : scope.epilogue(anchor), context);
    };
    return choice;
  }
};
template <std::optional<Loops> (*describe)(const Problem&)>
constexpr Implementation loops(const char* op, const char* name) {
  return tuned<Direct<describe>>(op, name, kLastResort);
}

bool numeric(DataType t) { return (t.is_float() || t.is_integral()) && t.bits >= 8; }

template <class A>
std::optional<Loops> convolution(const Problem& p) {
  const A attrs = p.attrs<A>();
  const A standard;
  if (attrs.data_layout != standard.data_layout || attrs.kernel_layout != standard.kernel_layout ||
      !(attrs.out_layout.empty() || attrs.out_layout == standard.data_layout) || !numeric(p.arg_dtype(0)))
    return std::nullopt;
  const auto data = p.arg_shape(0), kernel = p.arg_shape(1), out = p.out_shape();
  const size_t spatial = data.size() - 2;
  const int64_t out_per_group = kernel[0] / attrs.groups, in_per_group = kernel[1];
  topi::DirectProblem problem{out, std::vector<int64_t>(kernel.begin() + 1, kernel.end()),
                              topi::accumulator_dtype(as_tensor(p.anchor.expr->type)->dtype)};
  return Loops{problem, [=](const GroupScope& scope, const Anchor& anchor) -> topi::DirectTerm {
                 auto x = scope.anchor_operand(anchor, 0), w = scope.anchor_operand(anchor, 1);
                 return [=](const Index& at, const Index& r) {
                   Index from{at[0], tir::floordiv(at[1], out_per_group) * in_per_group + r[0]}, weight{at[1]};
                   weight.insert(weight.end(), r.begin(), r.end());
                   PrimExpr inside;
                   for (size_t d = 0; d < spatial; ++d) {
                     const int64_t pad = attrs.padding.size() == 1 ? attrs.padding[0] : attrs.padding[d];
                     PrimExpr i = at[d + 2] * attrs.strides[d] + r[d + 1] * attrs.dilation[d] - pad;
                     inside = both(inside, between(i, data[d + 2]));
                     from.push_back(i);
                   }
                   return if_inside(inside, read(x, from, problem.dtype) * read(w, weight, problem.dtype),
                                    tir::make_const(problem.dtype, 0));
                 };
               }};
}

template <class A>
std::optional<Loops> transposed_convolution(const Problem& p) {
  const A attrs = p.attrs<A>();
  const A standard;
  if (attrs.data_layout != standard.data_layout ||
      !(attrs.out_layout.empty() || attrs.out_layout == standard.data_layout) || !numeric(p.arg_dtype(0)))
    return std::nullopt;
  const auto data = p.arg_shape(0), kernel = p.arg_shape(1), out = p.out_shape();
  const size_t spatial = data.size() - 2;
  const int64_t in_per_group = data[1] / attrs.groups, out_per_group = kernel[1];
  std::vector<int64_t> reduction{in_per_group};
  reduction.insert(reduction.end(), kernel.begin() + 2, kernel.end());
  topi::DirectProblem problem{out, reduction, topi::accumulator_dtype(as_tensor(p.anchor.expr->type)->dtype)};
  return Loops{problem, [=](const GroupScope& scope, const Anchor& anchor) -> topi::DirectTerm {
                 auto x = scope.anchor_operand(anchor, 0), w = scope.anchor_operand(anchor, 1);
                 return [=](const Index& at, const Index& r) {
                   PrimExpr channel = tir::floordiv(at[1], out_per_group) * in_per_group + r[0], inside;
                   Index from{at[0], channel}, weight{channel, tir::floormod(at[1], out_per_group)};
                   weight.insert(weight.end(), r.begin() + 1, r.end());
                   for (size_t d = 0; d < spatial; ++d) {
                     // Input position i contributes to this output through tap r if i * stride + r * dilation - pad =
                     // at.
                     const int64_t pad = attrs.padding.size() == 1 ? attrs.padding[0] : attrs.padding[d];
                     PrimExpr reached = at[d + 2] + pad - r[d + 1] * attrs.dilation[d],
                              i = tir::floordiv(reached, attrs.strides[d]);
                     if (attrs.strides[d] != 1)
                       inside = both(inside, tir::eq(tir::floormod(reached, attrs.strides[d]), tir::make_int(0)));
                     inside = both(inside, between(i, data[d + 2]));
                     from.push_back(i);
                   }
                   return if_inside(inside, read(x, from, problem.dtype) * read(w, weight, problem.dtype),
                                    tir::make_const(problem.dtype, 0));
                 };
               }};
}

template <class A>
std::optional<Loops> max_pool(const Problem& p) {
  const A& attrs = p.attrs<A>();
  if (attrs.layout != A().layout || !numeric(p.arg_dtype(0))) return std::nullopt;
  const auto data = p.arg_shape(0);
  topi::DirectProblem problem{p.out_shape(), attrs.pool_size, p.arg_dtype(0), true};
  return Loops{problem, [=](const GroupScope& scope, const Anchor& anchor) -> topi::DirectTerm {
                 auto x = scope.anchor_operand(anchor, 0);
                 return [=](const Index& at, const Index& r) {
                   Index from{at[0], at[1]};
                   PrimExpr inside;
                   for (size_t d = 0; d < r.size(); ++d) {
                     const int64_t pad = attrs.padding.size() == 1 ? attrs.padding[0] : attrs.padding[d];
                     from.push_back(at[d + 2] * attrs.strides[d] + r[d] * attrs.dilation[d] - pad);
                     inside = both(inside, between(from.back(), data[d + 2]));
                   }
                   const DataType t = problem.dtype;
                   PrimExpr lowest = t.is_float() ? tir::make_const(t, -HUGE_VAL)
                                                  : tir::make_int(t.is_int() ? -int64_t{1} << (t.bits - 1) : 0, t);
                   return if_inside(inside, read(x, from, t), lowest);
                 };
               }};
}

// Accumulates in the accumulator's dtype; integer averages are truncated.
template <class A>
std::optional<Loops> average_pool(const Problem& p) {
  const A& attrs = p.attrs<A>();
  if (attrs.layout != A().layout || !numeric(p.arg_dtype(0))) return std::nullopt;
  const auto data = p.arg_shape(0);
  const size_t spatial = data.size() - 2;
  auto pad = [=](size_t d) { return attrs.padding.size() == 1 ? attrs.padding[0] : attrs.padding[d]; };
  topi::DirectProblem problem{p.out_shape(), attrs.pool_size, topi::accumulator_dtype(p.arg_dtype(0))};
  auto term = [=](const GroupScope& scope, const Anchor& anchor) -> topi::DirectTerm {
    return [=, x = scope.anchor_operand(anchor, 0)](const Index& at, const Index& r) {
      Index from{at[0], at[1]};
      PrimExpr inside;
      for (size_t d = 0; d < r.size(); ++d) {
        from.push_back(at[d + 2] * attrs.strides[d] + r[d] * attrs.dilation[d] - pad(d));
        inside = both(inside, between(from.back(), data[d + 2]));
      }
      return if_inside(inside, read(x, from, problem.dtype), tir::make_const(problem.dtype, 0));
    };
  };
  auto divided = [=](const GroupScope& scope, const Anchor& anchor) -> topi::Epilogue {
    return [=, rest = scope.epilogue(anchor)](PrimExpr total, const Index& at, const PrimExpr& mask) {
      PrimExpr taps = tir::make_int(1);
      for (size_t d = 0; d < spatial; ++d) {
        const int64_t after = attrs.padding.size() == 2 * spatial ? attrs.padding[d + spatial] : pad(d);
        PrimExpr start = at[d + 2] * attrs.strides[d] - pad(d);
        auto below = [&](int64_t bound) {
          return topi::taps_below(start, bound, attrs.pool_size[d], attrs.dilation[d]);
        };
        taps = taps * (attrs.count_include_pad ? below(data[d + 2] + after) : below(data[d + 2]) - below(0));
      }
      return rest(tir::div(std::move(total), tir::cast(problem.dtype, tir::max(taps, tir::make_int(1)))), at, mask);
    };
  };
  return Loops{problem, term, divided};
}

std::optional<Loops> batch_matmul(const Problem& p) {
  const auto attrs = p.attrs<BatchMatmulAttrs>();
  const auto a_shape = p.arg_shape(0), b_shape = p.arg_shape(1), out = p.out_shape();
  if (!numeric(p.arg_dtype(0)) || a_shape.size() < 2 || b_shape.size() < 2) return std::nullopt;
  const int64_t k = attrs.transpose_a ? a_shape[a_shape.size() - 2] : a_shape.back();
  topi::DirectProblem problem{out, {k}, topi::accumulator_dtype(as_tensor(p.anchor.expr->type)->dtype)};
  return Loops{
      problem, [=](const GroupScope& scope, const Anchor& anchor) -> topi::DirectTerm {
        auto a = scope.anchor_operand(anchor, 0), b = scope.anchor_operand(anchor, 1);
        auto index = [](const Index& at, const std::vector<int64_t>& shape, PrimExpr row, PrimExpr column) {
          Index out;
          for (size_t d = 0; d + 2 < shape.size(); ++d)
            out.push_back(shape[d] == 1 ? tir::make_int(0) : at[at.size() - shape.size() + d]);
          out.push_back(std::move(row));
          out.push_back(std::move(column));
          return out;
        };
        return [=](const Index& at, const Index& r) {
          const PrimExpr &m = at[at.size() - 2], &n = at.back();
          return read(a, attrs.transpose_a ? index(at, a_shape, r[0], m) : index(at, a_shape, m, r[0]), problem.dtype) *
                 read(b, attrs.transpose_b ? index(at, b_shape, n, r[0]) : index(at, b_shape, r[0], n), problem.dtype);
        };
      }};
}

std::optional<Loops> einsum(const Problem& p) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < p.anchor.inputs.size(); ++i) {
    shapes.push_back(p.arg_shape(i));
    ranks.push_back(shapes.back().size());
  }
  auto parsed = parse_equation(p.attrs<EinsumAttrs>().equation, ranks);
  if (!parsed.ok() || !numeric(p.arg_dtype(0))) return std::nullopt;
  const EinsumEquation equation = *parsed;
  std::string summed;
  topi::DirectProblem problem{p.out_shape(), {}, topi::accumulator_dtype(p.arg_dtype(0))};
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t d = 0; d < ranks[i]; ++d) {
      const char c = equation.operands[i][d];
      if (equation.result.find(c) != std::string::npos) continue;
      const size_t at = summed.find(c);
      if (at != std::string::npos) {
        problem.reduction[at] = std::max(problem.reduction[at], shapes[i][d]);
        continue;
      }
      summed += c;
      problem.reduction.push_back(shapes[i][d]);
    }
  return Loops{problem, [=](const GroupScope& scope, const Anchor& anchor) -> topi::DirectTerm {
                 return [=, &scope](const Index& at, const Index& r) {
                   PrimExpr value;
                   for (size_t i = 0; i < shapes.size(); ++i) {
                     Index index;
                     for (size_t d = 0; d < ranks[i]; ++d) {
                       const char c = equation.operands[i][d];
                       const size_t kept = equation.result.find(c);
                       index.push_back(shapes[i][d] == 1           ? tir::make_int(0)
                                       : kept != std::string::npos ? at[kept]
                                                                   : r[summed.find(c)]);
                     }
                     PrimExpr factor = read(scope.anchor_operand(anchor, i), index, problem.dtype);
                     value = value ? value * factor : factor;
                   }
                   return value;
                 };
               }};
}

std::optional<Loops> lrn(const Problem& p) {
  const auto& attrs = p.attrs<LRNAttrs>();
  const auto shape = p.arg_shape(0);
  const size_t axis = axis_of(attrs.axis, shape.size());
  topi::DirectProblem problem{shape, {attrs.size}, topi::accumulator_dtype(p.arg_dtype(0))};
  auto term = [=](const GroupScope& scope, const Anchor& anchor) -> topi::DirectTerm {
    return [=, x = scope.anchor_operand(anchor, 0)](const Index& at, const Index& r) {
      Index from = at;
      from[axis] = at[axis] + r[0] - (attrs.size - 1) / 2;
      PrimExpr value = read(x, from, problem.dtype);
      return if_inside(between(from[axis], shape[axis]), value * value, tir::make_const(problem.dtype, 0));
    };
  };
  auto scaled = [=, type = p.arg_dtype(0)](const GroupScope& scope, const Anchor& anchor) -> topi::Epilogue {
    return [=, x = scope.anchor_operand(anchor, 0), rest = scope.epilogue(anchor)](const PrimExpr& sum, const Index& at,
                                                                                   const PrimExpr& mask) {
      const DataType t = problem.dtype;
      PrimExpr base =
          sum * tir::make_const(t, attrs.alpha / static_cast<double>(attrs.size)) + tir::make_const(t, attrs.bias);
      PrimExpr value = read(x, at, t) * tir::intrinsic(tir::Intrinsic::k_pow, {base, tir::make_const(t, -attrs.beta)});
      return rest(t == type ? value : tir::cast(type, value), at, mask);
    };
  };
  return Loops{problem, term, scaled};
}

template <bool product>
std::shared_ptr<Choice> cumulative(const Problem& p) {
  const auto& attrs = p.attrs<ScanopAttrs>();
  topi::ScanProblem problem{p.arg_shape(0), 0, product, attrs.exclusive, attrs.reverse};
  if (!whole_group(p) || (!attrs.axis && problem.shape.size() != 1) || p.out_shape().empty()) return nullptr;
  problem.axis = axis_of(attrs.axis.value_or(0), problem.shape.size());
  auto choice = std::make_shared<Choice>();
  for (double n = 1; int64_t d : problem.shape) choice->cost.flops = n *= static_cast<double>(d);
  choice->cost.microseconds = choice->cost.flops / 1e3;  // each waits for the one before: about a nanosecond
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    return topi::scan(problem, scope.anchor_operand(anchor, 0), scope.output(), context);
  };
  return choice;
}

topi::Combination combination(const std::string& name) {
  return name == "add"   ? topi::Combination::kAdd
         : name == "mul" ? topi::Combination::kMul
         : name == "min" ? topi::Combination::kMin
         : name == "max" ? topi::Combination::kMax
                         : topi::Combination::kUpdate;
}
// The destination of an update, given the indices operand.
using MakePlace = std::function<topi::Place(const topi::Operand& indices)>;
// `rows`: the last dimension of an update is that of the result.
std::shared_ptr<Choice> scattered(const Problem& p, const std::string& reduction, const MakePlace& make,
                                  bool rows = false) {
  if (!whole_group(p) || p.arg_dtype(0).is_string()) return nullptr;
  auto choice = std::make_shared<Choice>();
  // Updates may target one element twice, so order matters: threads divide rows, if they are long enough.
  choice->parallel = rows && p.out_shape().back() >= 256;
  choice->cost.bytes =
      static_cast<double>(topi::product(p.out_shape()) + topi::product(p.arg_shape(2))) * p.arg_dtype(0).bits / 8.0;
  choice->cost.microseconds = choice->cost.bytes / (p.target.machine.l2_gbps * 1e3);
  choice->emit = [=, anchor = p.anchor, how = combination(reduction), shape = p.arg_shape(2)](
                     const GroupScope& scope, const topi::KernelContext& context) {
    return topi::scatter(how, shape, scope.anchor_operand(anchor, 0), scope.anchor_operand(anchor, 2),
                         make(scope.anchor_operand(anchor, 1)), scope.output(), context, rows);
  };
  return choice;
}
std::shared_ptr<Choice> scatter_elements(const Problem& p) {
  const auto& attrs = p.attrs<ScatterElementsAttrs>();
  const auto data = p.arg_shape(0), updates = p.arg_shape(2);
  const size_t axis = axis_of(attrs.axis, data.size());
  for (size_t d = 0; d < data.size(); ++d)
    if (d != axis && updates[d] > data[d]) return nullptr;
  if (topi::product(updates) > 0 && data[axis] == 0) return nullptr;
  return scattered(p, attrs.reduction, [=](const topi::Operand& indices) -> topi::Place {
    return [=](const Index& u) {
      Index at = u;
      at[axis] = bounded_index(indices(u, 1, {}), data[axis]);
      return at;
    };
  });
}
std::shared_ptr<Choice> scatter_nd(const Problem& p) {
  const auto data = p.arg_shape(0), index_shape = p.arg_shape(1), updates = p.arg_shape(2);
  const size_t tuple = static_cast<size_t>(index_shape[0]), batch = index_shape.size() - 1;
  if (topi::product(updates) > 0 && topi::product(data) == 0) return nullptr;
  return scattered(
      p, p.attrs<ScatterNDAttrs>().mode,
      [=](const topi::Operand& indices) -> topi::Place {
        return [=](const Index& u) {
          Index at;
          for (size_t d = 0; d < tuple; ++d) {
            Index which{tir::make_int(static_cast<int64_t>(d))};
            which.insert(which.end(), u.begin(), u.begin() + static_cast<std::ptrdiff_t>(batch));
            at.push_back(bounded_index(indices(which, 1, {}), data[d]));
          }
          at.insert(at.end(), u.begin() + static_cast<std::ptrdiff_t>(batch), u.end());
          return at;
        };
      },
      tuple < data.size() && !p.arg_dtype(0).is_bool() && p.arg_dtype(0).bits >= 8);
}

// block_dense whose weight is not constant.
std::optional<Loops> block_dense_loops(const Problem& p) {
  const auto& attrs = p.attrs<BlockDenseAttrs>();
  topi::DirectProblem problem{p.out_shape(), {p.arg_shape(0).back()}, kFloat32};
  return Loops{
      problem,
      [=, block = attrs.block, bits = attrs.bits](const GroupScope& scope, const Anchor& anchor) -> topi::DirectTerm {
        auto operand = [&](size_t i) { return scope.anchor_operand(anchor, i); };
        return [=, data = operand(0), weight = operand(1), scales = operand(2), zeros = operand(3)](const Index& at,
                                                                                                    const Index& r) {
          Index from(at.begin(), at.end() - 1);
          from.push_back(r[0]);
          const Index of_block{at.back(), floordiv(r[0], block)};
          const PrimExpr inside = floormod(r[0], block), per_byte = tir::make_int(8 / bits);
          PrimExpr number = read(weight, {of_block[0], of_block[1], floordiv(inside, per_byte)}, kInt32);
          if (bits == 4) {
            const PrimExpr shift = tir::cast(kInt32, floormod(inside, int64_t{2}) * int64_t{4});
            number = tir::binary(tir::ExprKind::kBitAnd, tir::binary(tir::ExprKind::kShiftRight, number, shift),
                                 tir::make_int(15, kInt32));
          }
          const PrimExpr exact = tir::cast(kFloat32, number) - read(zeros, of_block, kFloat32);
          return read(data, from, kFloat32) * (exact * read(scales, of_block, kFloat32));
        };
      }};
}

constexpr Implementation kDirectImplementations[] = {
    fixed<cumulative<true>>("cumprod", "cumprod", kLastResort),
    fixed<cumulative<false>>("cumsum", "cumsum", kLastResort),
    loops<einsum>("einsum", "einsum.direct"),
    loops<average_pool<AvgPool1DAttrs>>("nn.avg_pool1d", "avg_pool1d.direct"),
    loops<average_pool<AvgPool2DAttrs>>("nn.avg_pool2d", "avg_pool2d.direct"),
    loops<average_pool<AvgPool3DAttrs>>("nn.avg_pool3d", "avg_pool3d.direct"),
    loops<batch_matmul>("nn.batch_matmul", "batch_matmul.direct"),
    loops<block_dense_loops>("nn.block_dense", "block_dense.direct"),
    loops<convolution<Conv1DAttrs>>("nn.conv1d", "conv1d.loops"),
    loops<transposed_convolution<Conv1DTransposeAttrs>>("nn.conv1d_transpose", "conv1d_transpose.direct"),
    loops<convolution<Conv2DAttrs>>("nn.conv2d", "conv2d.loops"),
    loops<transposed_convolution<Conv2DTransposeAttrs>>("nn.conv2d_transpose", "conv2d_transpose.direct"),
    loops<convolution<Conv3DAttrs>>("nn.conv3d", "conv3d.loops"),
    loops<transposed_convolution<Conv3DTransposeAttrs>>("nn.conv3d_transpose", "conv3d_transpose.direct"),
    loops<lrn>("nn.lrn", "lrn.direct"),
    loops<max_pool<MaxPool1DAttrs>>("nn.max_pool1d", "max_pool1d.direct"),
    loops<max_pool<MaxPool2DAttrs>>("nn.max_pool2d", "max_pool2d.direct"),
    loops<max_pool<MaxPool3DAttrs>>("nn.max_pool3d", "max_pool3d.direct"),
    fixed<scatter_elements>("scatter_elements", "scatter_elements", kLastResort),
    fixed<scatter_nd>("scatter_nd", "scatter_nd", kLastResort),
};

}  // namespace

std::span<const Implementation> direct_implementations() { return kDirectImplementations; }

}  // namespace tilewright::lower
