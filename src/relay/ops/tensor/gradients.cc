// SPDX-License-Identifier: Apache-2.0
// Gradients of elementwise operators, reductions and data movement.
#include <algorithm>

#include "relay/ops/gradient.h"
#include "relay/ops/training/attrs_training.h"

namespace tilewright::relay {
namespace gradients {
namespace {

Gradients chosen(const Expr& e, const Expr& g, const char* comparison) {
  Expr left = call(comparison, {x_of(e), y_of(e)});
  return {collapsed(where(left, g, zeros_like(g)), x_of(e)), collapsed(where(left, zeros_like(g), g), y_of(e))};
}

// An element is in all later sums: what comes back is summed from the other end.
Gradients of_cumsum(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<ScanopAttrs>(e);
  Expr back = call("cumsum", {g}, make_attrs<ScanopAttrs>([&](auto& t) {
                     t = a;
                     t.reverse = !a.reverse;
                   }));
  if (!a.axis) back = call("reshape_like", {back, x_of(e)});
  return {a.dtype.empty() ? back : call("cast_like", {back, x_of(e)})};
}

// The reduced axes, non-negative.
std::vector<int64_t> reduced_axes(const Expr& e) {
  const auto& a = attrs_of<ReduceAttrs>(e);
  const size_t rank = dims(x_of(e)).size();
  std::vector<int64_t> listed, out;
  if (a.axis)
    for (int64_t axis : *a.axis) listed.push_back(positive_axis(axis, rank));
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i) {
    bool in = !a.axis || std::find(listed.begin(), listed.end(), i) != listed.end();
    if (in != (a.axis && a.exclude)) out.push_back(i);
  }
  return out;
}

Expr spread_over(const Expr& g, const Expr& e) {
  std::vector<int64_t> shape = dims(x_of(e)), kept = shape;
  for (int64_t axis : reduced_axes(e)) kept[static_cast<size_t>(axis)] = 1;
  return broadcast(reshape_to(g, kept), shape);
}

Gradients of_mean(const Expr& e, const Expr& g) {
  double count = 1;
  for (int64_t axis : reduced_axes(e)) count *= static_cast<double>(dims(x_of(e))[static_cast<size_t>(axis)]);
  return {divide(spread_over(g, e), scalar(count, g))};
}

// Elements that share the extreme share the gradient.
Gradients of_extreme(const Expr& e, const Expr& g) {
  Expr is = call("cast", {call("equal", {x_of(e), spread_over(e, e)})},
                 make_attrs<CastAttrs>([&](auto& a) { a.dtype = tensor_of(g).dtype; }));
  std::vector<int64_t> axes = reduced_axes(e);
  Expr count = summed(is, axes, true);
  return {divide(multiply(spread_over(g, e), is), broadcast(count, dims(x_of(e))))};
}

Gradients of_transpose(const Expr& e, const Expr& g) {
  const auto& axes = attrs_of<TransposeAttrs>(e).axes;
  const size_t rank = dims(e).size();
  std::vector<int64_t> inverse(rank);
  for (size_t i = 0; i < rank; ++i) {
    size_t from = axes ? static_cast<size_t>(positive_axis((*axes)[i], rank)) : rank - 1 - i;
    inverse[from] = static_cast<int64_t>(i);
  }
  return {transposed(g, inverse)};
}

Gradients of_concatenate(const Expr& e, const Expr& g) {
  const auto* tuple = as<TupleNode>(x_of(e));
  if (!tuple) return {};
  const size_t axis = static_cast<size_t>(positive_axis(attrs_of<ConcatenateAttrs>(e).axis, dims(e).size()));
  Gradients out;
  int64_t at = 0;
  for (const Expr& field : tuple->fields) {
    int64_t size = dims(field)[axis];
    out.push_back(sliced(g, static_cast<int64_t>(axis), at, at + size));
    at += size;
  }
  return out;
}

Gradients of_split(const Expr& e, const Expr& g) {
  return {
      call("concatenate", {g}, make_attrs<ConcatenateAttrs>([&](auto& a) { a.axis = attrs_of<SplitAttrs>(e).axis; }))};
}

Expr added_at(const Expr& x, const Expr& indices, const Expr& g, int64_t axis) {
  return call("scatter_elements", {zeros_like(x), indices, g}, make_attrs<ScatterElementsAttrs>([&](auto& a) {
                a.axis = axis;
                a.reduction = "add";
              }));
}

Gradients of_gather(const Expr& e, const Expr& g) {
  return {added_at(x_of(e), y_of(e), g, attrs_of<GatherAttrs>(e).axis), Expr()};
}

// Moves the taken axis between the axes in front of it and those behind it.
Gradients of_take(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<TakeAttrs>(e);
  const std::vector<int64_t> shape = dims(x_of(e)), index = dims(y_of(e));
  if (a.batch_dims) return {};
  const size_t axis = a.axis ? static_cast<size_t>(positive_axis(*a.axis, shape.size())) : 0;
  int64_t before = 1, rows = 1, behind = 1, picks = 1;
  for (size_t i = 0; i < shape.size(); ++i) (!a.axis || i == axis ? rows : i < axis ? before : behind) *= shape[i];
  for (int64_t d : index) picks *= d;
  Expr at = call("cast", {y_of(e)}, make_attrs<CastAttrs>([](auto& c) { c.dtype = kInt64; }));
  if (a.mode == "wrap")
    at = call("floor_mod", {at, full_constant(static_cast<double>(rows), kInt64)});
  else if (a.mode == "clip")
    at = call("clip", {at}, make_attrs<ClipAttrs>([&](auto& c) {
                c.a_min = 0;
                c.a_max = static_cast<double>(rows - 1);
              }));
  at = broadcast(reshape_to(at, {1, picks, 1}), {before, picks, behind});
  Expr base = full_constant(0, tensor_of(x_of(e)).dtype, {before, rows, behind});
  return {reshape_to(added_at(base, at, reshape_to(g, {before, picks, behind}), 1), shape), Expr()};
}

// Elements outside the slice get zero.
Gradients of_strided_slice(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<StridedSliceAttrs>(e);
  const std::vector<int64_t> in = dims(x_of(e)), out = dims(e);
  std::vector<int64_t> steps(in.size(), 1);
  std::vector<std::vector<int64_t>> widths(in.size(), {0, 0});
  for (size_t i = 0; i < a.begin.size(); ++i) {
    const auto axis = static_cast<size_t>(a.axes ? positive_axis((*a.axes)[i], in.size()) : static_cast<int64_t>(i));
    const int64_t n = in[axis], step = a.slice_mode == "end" && i < a.strides.size() ? a.strides[i] : 1;
    if (step < 1 || out[axis] == 0) return {};
    const int64_t begin = std::clamp<int64_t>(a.begin[i] < 0 ? a.begin[i] + n : a.begin[i], 0, n);
    steps[axis] = out[axis] == 1 ? 1 : step;
    widths[axis] = {begin, n - begin - ((out[axis] - 1) * steps[axis] + 1)};
  }
  Expr spread = g;
  if (std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s != 1; }))
    spread = call("nn.dilate", {g}, make_attrs<DilateAttrs>([&](auto& d) { d.strides = steps; }));
  return {call("nn.pad", {spread, scalar(0, g)}, make_attrs<PadAttrs>([&](auto& p) { p.pad_width = widths; }))};
}

Gradients of_variance(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<VarianceAttrs>(e);
  const Expr& x = x_of(e);
  Expr as_sum = call("sum", {x}, make_attrs<ReduceAttrs>([&](auto& r) {
                       r.axis = a.axis;
                       r.exclude = a.exclude;
                     }));
  double count = a.unbiased ? -1 : 0, all = 1;
  for (int64_t axis : reduced_axes(as_sum)) all *= static_cast<double>(dims(x)[static_cast<size_t>(axis)]);
  count += all;
  Expr mean = divide(spread_over(reshape_to(as_sum, dims(as_sum)), as_sum), scalar(all, g));
  return {multiply(spread_over(g, as_sum), multiply(scalar(2 / count, g), subtract(x, mean)))};
}

// The mask selects which of the two values a position has.
Gradients of_one_hot(const Expr& e, const Expr& g) {
  auto hot = [&](double on, double off) {
    return call("one_hot", {arg(e, 0), full_constant(on, tensor_of(g).dtype), full_constant(off, tensor_of(g).dtype)},
                as<CallNode>(e)->attrs);
  };
  auto total = [&](const Expr& mask, const Expr& operand) {
    return reshape_to(call("sum", {multiply(g, mask)}, make_attrs<ReduceAttrs>([](auto&) {})), dims(operand));
  };
  return {Expr(), total(hot(1, 0), arg(e, 1)), total(hot(0, 1), arg(e, 2))};
}

Gradients of_gather_nd(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<GatherNDAttrs>(e);
  if (a.batch_dims != 0) return {};
  auto made = try_call("scatter_nd", {zeros_like(x_of(e)), y_of(e), g},
                       make_attrs<ScatterNDAttrs>([](auto& s) { s.mode = "add"; }));
  return made.ok() ? Gradients{*made, Expr()} : Gradients{};
}

Gradients of_stack(const Expr& e, const Expr& g) {
  const auto* tuple = as<TupleNode>(x_of(e));
  if (!tuple) return {};
  const int64_t axis = positive_axis(attrs_of<StackAttrs>(e).axis, dims(e).size());
  Gradients out;
  for (size_t i = 0; i < tuple->fields.size(); ++i)
    out.push_back(
        reshape_to(sliced(g, axis, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1), dims(tuple->fields[i])));
  return out;
}

// tile repeats the whole tensor along each axis, so the gradient sums over the copies.
Gradients of_tile(const Expr& e, const Expr& g) {
  std::vector<int64_t> shape = dims(x_of(e)), out = dims(e), split, copies;
  shape.insert(shape.begin(), out.size() - shape.size(), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    if (shape[i] == 0) return {};
    copies.push_back(static_cast<int64_t>(split.size()));
    split.push_back(out[i] / shape[i]);
    split.push_back(shape[i]);
  }
  return {reshape_to(summed(reshape_to(g, split), copies, false), dims(x_of(e)))};
}

Gradients of_repeat(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<RepeatAttrs>(e);
  if (!a.axis) return {};
  std::vector<int64_t> split = dims(x_of(e));
  const int64_t axis = positive_axis(*a.axis, split.size());
  split.insert(split.begin() + axis + 1, a.repeats);
  return {summed(reshape_to(g, split), {axis + 1}, false)};
}

Expr square(const Expr& x) { return multiply(x, x); }
constexpr Entry kTensorRules[] = {
    {"acos",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {negative(multiply(g, call("rsqrt", {subtract(scalar(1, g), square(x_of(e)))})))};
     },
     true},
    {"acosh",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {multiply(g, call("rsqrt", {subtract(square(x_of(e)), scalar(1, g))}))};
     },
     true},
    {"asin",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {multiply(g, call("rsqrt", {subtract(scalar(1, g), square(x_of(e)))}))};
     },
     true},
    {"asinh",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {multiply(g, call("rsqrt", {call("add", {square(x_of(e)), scalar(1, g)})}))};
     },
     true},
    {"atan",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {divide(g, call("add", {scalar(1, g), square(x_of(e))}))};
     },
     true},
    {"atanh",
     [](const Expr& e, const Expr& g) -> Gradients { return {divide(g, subtract(scalar(1, g), square(x_of(e))))}; },
     true},
    {"cosh", [](const Expr& e, const Expr& g) -> Gradients { return {multiply(g, call("sinh", {x_of(e)}))}; }, true},
    {"sinh", [](const Expr& e, const Expr& g) -> Gradients { return {multiply(g, call("cosh", {x_of(e)}))}; }, true},
    {"tan", [](const Expr& e, const Expr& g) -> Gradients { return {divide(g, square(call("cos", {x_of(e)})))}; },
     true},
    {"erf",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {multiply(g, multiply(scalar(1.1283791670955126, g), call("exp", {negative(square(x_of(e)))})))};
     },
     true},
    {"log10",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {divide(g, multiply(x_of(e), scalar(2.302585092994046, g)))};
     },
     true},
    {"log1p",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {divide(g, call("add", {x_of(e), scalar(1, g)}))};
     },
     true},
    {"log2",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {divide(g, multiply(x_of(e), scalar(0.6931471805599453, g)))};
     },
     true},
    {"gather_nd", of_gather_nd},
    {"one_hot", of_one_hot},
    {"stack", of_stack},
    {"variance", of_variance},
    {"logsumexp",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {multiply(spread_over(g, e), call("exp", {subtract(x_of(e), spread_over(e, e))}))};
     }},
    {"full_like",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {Expr(), reshape_to(call("sum", {g}, make_attrs<ReduceAttrs>([](auto&) {})), dims(y_of(e)))};
     }},
    {"reshape_like",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {of_reshape(e, g)[0], Expr()};
     },
     true},
    {"collapse_sum_like",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {call("broadcast_to_like", {g, x_of(e)}), Expr()};
     },
     true},
    {"collapse_sum_to",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {call("broadcast_to_like", {g, x_of(e)}), Expr()};
     },
     true},
    {"broadcast_to_like",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {call("collapse_sum_like", {g, x_of(e)}), Expr()};
     },
     true},
    // The results do not depend on operands' values: gradient zero.
    {"zeros_like", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"ones_like", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"zeros", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"ones", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"shape_of", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"full",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {reshape_to(call("sum", {g}, make_attrs<ReduceAttrs>([](auto&) {})), dims(x_of(e)))};
     }},
    {"annotation.stop_fusion", [](const Expr&, const Expr& g) -> Gradients { return {g}; }, true},
    {"device_copy", [](const Expr&, const Expr& g) -> Gradients { return {g}; }, true},
    {"abs", [](const Expr& e, const Expr& g) -> Gradients { return {multiply(g, call("sign", {x_of(e)}))}; }, true},
    {"add",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {collapsed(g, x_of(e)), collapsed(g, y_of(e))};
     },
     true},
    {"broadcast_to", [](const Expr& e, const Expr& g) -> Gradients { return {collapsed(g, x_of(e))}; }},
    {"cast",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {call("cast", {g}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = tensor_of(x_of(e)).dtype; }))};
     },
     true},
    {"clip",
     [](const Expr& e, const Expr& g) -> Gradients {
       const auto& a = attrs_of<ClipAttrs>(e);
       Expr inside = call("logical_and", {call("greater_equal", {x_of(e), scalar(a.a_min, g)}),
                                          call("less_equal", {x_of(e), scalar(a.a_max, g)})});
       return {where(inside, g, zeros_like(g))};
     },
     true},
    {"concatenate", of_concatenate},
    {"copy", [](const Expr&, const Expr& g) -> Gradients { return {g}; }, true},
    {"cos", [](const Expr& e, const Expr& g) -> Gradients { return {negative(multiply(g, call("sin", {x_of(e)})))}; },
     true},
    {"divide",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {collapsed(divide(g, y_of(e)), x_of(e)), collapsed(negative(divide(multiply(g, e), y_of(e))), y_of(e))};
     },
     true},
    {"exp", [](const Expr& e, const Expr& g) -> Gradients { return {multiply(g, e)}; }, true},
    {"expand_dims", of_reshape, true},
    {"gather", of_gather},
    {"log", [](const Expr& e, const Expr& g) -> Gradients { return {divide(g, x_of(e))}; }, true},
    {"max", of_extreme},
    {"maximum", [](const Expr& e, const Expr& g) { return chosen(e, g, "greater_equal"); }, true},
    {"mean", of_mean},
    {"min", of_extreme},
    {"minimum", [](const Expr& e, const Expr& g) { return chosen(e, g, "less_equal"); }, true},
    {"multiply",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {collapsed(multiply(g, y_of(e)), x_of(e)), collapsed(multiply(g, x_of(e)), y_of(e))};
     },
     true},
    {"negative", [](const Expr&, const Expr& g) -> Gradients { return {negative(g)}; }, true},
    {"power",
     [](const Expr& e, const Expr& g) -> Gradients {
       Expr down = call("power", {x_of(e), subtract(y_of(e), scalar(1, g))});
       return {collapsed(multiply(g, multiply(y_of(e), down)), x_of(e)),
               collapsed(multiply(g, multiply(e, call("log", {x_of(e)}))), y_of(e))};
     },
     true},
    {"reshape", of_reshape, true},
    {"rsqrt",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {multiply(scalar(-0.5, g), divide(multiply(g, e), x_of(e)))};
     },
     true},
    {"sigmoid",
     [](const Expr& e, const Expr& g) -> Gradients { return {multiply(g, multiply(e, subtract(scalar(1, g), e)))}; },
     true},
    {"sin", [](const Expr& e, const Expr& g) -> Gradients { return {multiply(g, call("cos", {x_of(e)}))}; }, true},
    {"split", of_split},
    {"sqrt", [](const Expr& e, const Expr& g) -> Gradients { return {divide(multiply(g, scalar(0.5, g)), e)}; }, true},
    {"squeeze", of_reshape, true},
    {"strided_slice", of_strided_slice},
    {"subtract",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {collapsed(g, x_of(e)), collapsed(negative(g), y_of(e))};
     },
     true},
    {"sum", [](const Expr& e, const Expr& g) -> Gradients { return {spread_over(g, e)}; }},
    {"cumsum", of_cumsum},
    {"take", of_take},
    {"tile", of_tile},
    {"repeat", of_repeat},
    {"reverse",
     [](const Expr& e, const Expr& g) -> Gradients { return {call("reverse", {g}, as<CallNode>(e)->attrs)}; }, true},
    {"arange",
     [](const Expr&, const Expr&) -> Gradients {
       return {Expr(), Expr(), Expr()};
     },
     true},
    {"argmax", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"argmin", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"trunc", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"layout_transform",
     [](const Expr& e, const Expr& g) -> Gradients {
       const auto& a = attrs_of<LayoutTransformAttrs>(e);
       return {call("layout_transform", {g}, make_attrs<LayoutTransformAttrs>([&](auto& t) {
                      t.src_layout = a.dst_layout;
                      t.dst_layout = a.src_layout;
                    }))};
     }},
    {"tanh",
     [](const Expr& e, const Expr& g) -> Gradients { return {multiply(g, subtract(scalar(1, g), multiply(e, e)))}; },
     true},
    {"transpose", of_transpose},
    {"where",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {Expr(), collapsed(where(arg(e, 0), g, zeros_like(g)), arg(e, 1)),
               collapsed(where(arg(e, 0), zeros_like(g), g), arg(e, 2))};
     },
     true},
    // Step functions and integer operators: gradient zero.
    {"ceil", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"floor", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"nearbyint", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"round", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
    {"sign", [](const Expr&, const Expr&) -> Gradients { return {Expr()}; }, true},
};

}  // namespace
}  // namespace gradients

void tensor_gradients(const FactsOf& facts) { gradients::add(facts, gradients::kTensorRules); }

}  // namespace tilewright::relay
