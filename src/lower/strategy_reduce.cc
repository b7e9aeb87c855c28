// SPDX-License-Identifier: Apache-2.0
// Reductions, softmax and layer normalisation: templates over operands computed on the fly.
#include <algorithm>
#include <set>

#include "lower/implementation.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "topi/reduce.h"

namespace tilewright::lower {
namespace {
using namespace relay;

std::vector<int> reduced_axes(const std::optional<std::vector<int64_t>>& axis, bool exclude, size_t rank) {
  std::vector<bool> listed(rank, !axis);
  if (axis)
    for (int64_t a : *axis) listed[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank) : a)] = true;
  std::vector<int> out;
  for (size_t d = 0; d < rank; ++d)
    if (listed[d] != (exclude && axis)) out.push_back(static_cast<int>(d));
  return out;
}

// Merges adjacent dimensions that are all reduced or all kept, if operand and result have no gaps: long runs instead of
// short rows. False if that is impossible or changes nothing.
bool fold_dimensions(std::vector<int64_t>* shape, std::vector<int>* axes, topi::View* in, topi::View* out) {
  if (!in->contiguous() || !out->contiguous()) return false;
  std::vector<int64_t> folded, kept;
  std::vector<int> reduced;
  bool was_reduced = false;
  for (size_t d = 0; d < shape->size(); ++d) {
    if ((*shape)[d] == 1) continue;
    const bool is = std::find(axes->begin(), axes->end(), static_cast<int>(d)) != axes->end();
    if (!folded.empty() && is == was_reduced) {
      folded.back() *= (*shape)[d];
      if (!is) kept.back() *= (*shape)[d];
      continue;
    }
    was_reduced = is;
    if (is)
      reduced.push_back(static_cast<int>(folded.size()));
    else
      kept.push_back((*shape)[d]);
    folded.push_back((*shape)[d]);
  }
  if (reduced.empty() || folded.size() == shape->size()) return false;
  auto shaped = [](const topi::View& view, const std::vector<int64_t>& extents) {
    topi::View made = topi::make_view(view.buffer, extents);
    made.offset = view.offset;
    return made;
  };
  *shape = folded, *axes = reduced;
  *in = shaped(*in, folded), *out = shaped(*out, kept);
  return true;
}

// Whether the dimensions from `first` on can be walked as one: all that is computed element by element around the
// anchor, and lies without gaps, or has one element for all of them.
bool is_dense_behind(const GroupScope& scope, const Anchor& anchor, size_t first) {
  const Shape& shape = as_tensor(anchor.expr->type)->shape;
  auto fits = [&](const Shape& other) {
    if (other == shape) return true;
    for (size_t d = first; d < shape.size(); ++d)
      if (const size_t behind = shape.size() - d; behind <= other.size() && !(other[other.size() - behind] == Dim(1)))
        return false;
    return true;
  };
  std::set<const ExprNode*> parameters;
  for (size_t i = 1; i < anchor.call->args.size(); ++i) parameters.insert(anchor.call->args[i].get());
  for (const Expr& e : post_order(scope.group().function->body)) {
    if (const OpDef* op = called_op(e); op && e != anchor.expr && op->pattern > OpPattern::kBroadcast) return false;
    const auto* type = as_tensor(e->type);
    if (type && parameters.count(e.get()) == 0 && !fits(type->shape)) return false;
  }
  const size_t inputs = scope.group().inputs.size();
  for (size_t i = 0; i < inputs; ++i)
    if (scope.input(i).rank() == static_cast<int>(shape.size()) && !scope.input(i).contiguous()) return false;
  return scope.group().outputs.size() == 1 && scope.output().contiguous();
}

template <topi::ReduceKind kind>
std::shared_ptr<Choice> reduce(const Problem& p) {
  DataType type = p.arg_dtype(0);
  if (type.is_bool() || type.is_string()) return nullptr;
  const auto& attrs = p.attrs<ReduceAttrs>();
  topi::ReduceProblem problem;
  problem.kind = kind;
  problem.shape = p.arg_shape(0);
  problem.axes = reduced_axes(attrs.axis, attrs.exclude, problem.shape.size());
  problem.dtype = type;
  if (problem.axes.empty()) return nullptr;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, p.target);
  Anchor anchor = p.anchor;
  choice->emit = [=, plain = whole_group(p) && anchor.direct()](const GroupScope& scope,
                                                                const topi::KernelContext& context) {
    if (plain) {
      topi::ReduceProblem folded = problem;
      topi::View in = scope.input(static_cast<size_t>(anchor.inputs[0])), out = scope.output();
      if (fold_dimensions(&folded.shape, &folded.axes, &in, &out))
        return topi::reduce(folded, topi::view_operand(in), out, topi::convert_epilogue(out.dtype()), context);
    }
    return topi::reduce(problem, scope.anchor_operand(anchor, 0), scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

template <bool largest>
std::shared_ptr<Choice> arg_reduce(const Problem& p) {
  const auto& attrs = p.attrs<ArgReduceAttrs>();
  topi::ArgReduceProblem problem;
  problem.shape = p.arg_shape(0);
  auto axes = reduced_axes(attrs.axis, attrs.exclude, problem.shape.size());
  // The anchor must be the whole group: the template has no epilogue.
  if (axes.size() != 1 || !whole_group(p) || p.arg_dtype(0).is_bool()) return nullptr;
  problem.axis = axes[0];
  problem.largest = largest;
  problem.last_index = attrs.select_last_index;
  problem.dtype = p.arg_dtype(0);
  auto choice = std::make_shared<Choice>();
  for (double n = 1; int64_t d : problem.shape) choice->cost.bytes = 4 * (n *= static_cast<double>(d));
  choice->cost.microseconds = choice->cost.bytes / (p.target.machine.l2_gbps * 1e3);
  Anchor anchor = p.anchor;
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    if (anchor.direct()) {
      topi::ArgReduceProblem folded = problem;
      topi::View in = scope.input(static_cast<size_t>(anchor.inputs[0])), out = scope.output();
      std::vector<int> one{problem.axis};
      if (fold_dimensions(&folded.shape, &one, &in, &out)) {
        folded.axis = one[0];
        return topi::arg_reduce(folded, topi::view_operand(in), out, context);
      }
    }
    return topi::arg_reduce(problem, scope.anchor_operand(anchor, 0), scope.output(), context);
  };
  return choice;
}

std::shared_ptr<Choice> min_max(const Problem& p) {
  std::vector<int64_t> shape = p.arg_shape(0);
  const DataType dtype = p.arg_dtype(0);
  if (!whole_group(p)) return nullptr;
  if (shape.empty()) shape = {1};
  auto choice = std::make_shared<Choice>();
  choice->parallel = false;
  choice->cost.bytes = static_cast<double>(topi::product(shape)) * static_cast<double>(dtype.bytes());
  choice->cost.microseconds = choice->cost.bytes / (p.target.machine.l3_gbps * 1e3);
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    const topi::View& in = scope.input(static_cast<size_t>(anchor.inputs[0]));
    const bool dense = anchor.direct() && in.contiguous();
    const topi::View flat = dense ? topi::flattened(in) : in;
    return topi::min_max(dense ? flat.shape : shape, dtype,
                         dense ? topi::view_operand(flat) : scope.anchor_operand(anchor, 0), scope.output(0),
                         scope.output(1), context);
  };
  return choice;
}

template <bool logarithm>
std::shared_ptr<Choice> softmax(const Problem& p) {
  if (!p.arg_dtype(0).is_float()) return nullptr;
  topi::SoftmaxProblem problem;
  problem.shape = p.arg_shape(0);
  int64_t axis = p.attrs<SoftmaxAttrs>().axis;
  problem.axis = static_cast<int>(axis < 0 ? axis + static_cast<int64_t>(problem.shape.size()) : axis);
  problem.logarithm = logarithm;
  if (p.arg_dtype(0) == kFloat64) problem.dtype = kFloat64;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, p.target);
  choice->streams = stores_whole_vectors(p.graph, p.group, p.target);
  choice->scratch_bytes = topi::softmax_scratch_bytes(problem);
  choice->scratch_dtype = problem.dtype;
  Anchor anchor = p.anchor;
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    return topi::softmax(problem, scope.anchor_operand(anchor, 0), scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

// Normalises rows: the last dimension, gamma and beta along it, or all dimensions behind the channels, dimension 1.
template <class Attrs>
std::shared_ptr<Choice> row_norm(const Problem& p, bool of_channels) {
  const auto& attrs = p.attrs<Attrs>();
  if (p.arg_dtype(0) != kFloat32) return nullptr;
  topi::LayerNormProblem problem;
  problem.shape = p.arg_shape(0);
  problem.row_rank = of_channels ? static_cast<int>(problem.shape.size()) - 2 : 1;
  problem.epsilon = attrs.epsilon;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, p.target);
  choice->streams = stores_whole_vectors(p.graph, p.group, p.target);
  Anchor anchor = p.anchor;
  bool scale = attrs.scale, center = attrs.center;
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    // gamma and beta apply before the rest of the group's epilogue.
    topi::Epilogue epilogue = [=, inner = scope.epilogue(anchor)](tir::PrimExpr value, const topi::Index& index,
                                                                  const tir::PrimExpr& mask) {
      int lanes = value->dtype.lanes;
      auto parameter = [&](size_t number) {
        return of_channels ? tir::broadcast(scope.anchor_operand(anchor, number)({index[1]}, 1, {}), lanes)
                           : scope.anchor_operand(anchor, number)({index.back()}, lanes, mask);
      };
      tir::PrimExpr gamma = scale ? parameter(1) : nullptr;
      tir::PrimExpr beta = center ? parameter(2) : nullptr;
      if (gamma && beta)
        value = tir::fma(value, gamma, beta);
      else if (gamma)
        value = value * gamma;
      else if (beta)
        value = value + beta;
      return inner(value, index, mask);
    };
    topi::LayerNormProblem walked = problem;
    if (of_channels && is_dense_behind(scope, anchor, 2)) {
      // One line: an index 0, ..., 0, i is that of element i.
      std::fill(walked.shape.begin() + 2, walked.shape.end() - 1, 1);
      walked.shape.back() = topi::product({problem.shape.begin() + 2, problem.shape.end()});
    }
    return topi::layer_norm(walked, scope.anchor_operand(anchor, 0), scope.output(), epilogue, context);
  };
  return choice;
}

int64_t axis_of(int64_t axis, const Problem& p) {
  return axis < 0 ? axis + static_cast<int64_t>(p.arg_shape(0).size()) : axis;
}

std::shared_ptr<Choice> layer_norm(const Problem& p) {
  const auto last = static_cast<int64_t>(p.arg_shape(0).size()) - 1;
  return axis_of(p.attrs<LayerNormAttrs>().axis, p) == last ? row_norm<LayerNormAttrs>(p, false) : nullptr;
}

std::shared_ptr<Choice> instance_norm(const Problem& p) {
  const bool rows = p.arg_shape(0).size() >= 3 && axis_of(p.attrs<InstanceNormAttrs>().axis, p) == 1;
  return rows ? row_norm<InstanceNormAttrs>(p, true) : nullptr;
}

constexpr Implementation kReduceImplementations[] = {
    fixed<arg_reduce<true>>("argmax", "argmax", 10),
    fixed<arg_reduce<false>>("argmin", "argmin", 10),
    fixed<reduce<topi::ReduceKind::kMax>>("max", "max", 10),
    fixed<reduce<topi::ReduceKind::kMean>>("mean", "mean", 10),
    fixed<reduce<topi::ReduceKind::kMin>>("min", "min", 10),
    fixed<min_max>("min_max", "min_max", 10),
    fixed<softmax<false>>("nn.fast_softmax", "softmax", 10),
    fixed<instance_norm>("nn.instance_norm", "instance_norm", 10),
    fixed<layer_norm>("nn.layer_norm", "layer_norm", 10),
    fixed<softmax<true>>("nn.log_softmax", "log_softmax", 10),
    fixed<softmax<false>>("nn.softmax", "softmax", 10),
    fixed<reduce<topi::ReduceKind::kProd>>("prod", "prod", 10),
    fixed<reduce<topi::ReduceKind::kSum>>("sum", "sum", 10),
};

}  // namespace

std::span<const Implementation> reduce_implementations() { return kReduceImplementations; }

}  // namespace tilewright::lower
