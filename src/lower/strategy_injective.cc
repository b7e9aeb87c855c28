// SPDX-License-Identifier: Apache-2.0
// Groups without an anchor: loops over compute definitions, or a copy through registers (shuffles).
#include <algorithm>
#include <functional>
#include <numeric>

#include "base/format.h"
#include "lower/compute.h"
#include "lower/permutation.h"
#include "lower/strategy.h"
#include "lower/window_copy.h"
#include "relay/op.h"
#include "relay/ops/image/attrs_image.h"
#include "relay/ops/tensor/attrs_transform.h"
#include "topi/gather_strips.h"
#include "topi/injective.h"
#include "topi/join_rows.h"
#include "topi/transpose.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// space_to_depth of an input over contiguous views: its blocks' columns are the phases of a stride.
tir::Stmt separating_blocks(const GroupScope& scope, const topi::KernelContext& context) {
  const FunctionNode& function = *scope.group().function;
  if (!is_call_to(function.body, "nn.space_to_depth") || function.params.size() != 1) return {};
  if (as<CallNode>(function.body)->args[0] != function.params[0]) return {};
  const auto& attrs = *attrs_as<SubPixelAttrs>(as<CallNode>(function.body)->attrs);
  const topi::View &in = scope.input(0), &out = scope.output();
  if (attrs.layout != "NCHW" || !in.contiguous() || !out.contiguous()) return {};
  const int64_t b = attrs.block_size, high = out.shape[2], wide = out.shape[3];
  topi::View from = topi::make_view(in.buffer, {in.shape[0], b, b, in.shape[1], high, wide});
  from.strides = {in.strides[0], in.strides[2], in.strides[3], in.strides[1], b * in.strides[2], b * in.strides[3]};
  from.offset = in.offset;
  topi::View to = topi::make_view(out.buffer, from.shape);
  to.offset = out.offset;
  if (!topi::is_deinterleaving(from, to)) return {};
  return topi::deinterleave_copy(from, to, topi::convert_epilogue(out.dtype()), context);
}

// A copy whose group is reshape, transpose, reshape of an input over contiguous views, where the transpose separates
// the phases of a stride.
tir::Stmt deinterleaving_copy(const GroupScope& scope, const topi::KernelContext& context) {
  const FunctionNode& function = *scope.group().function;
  auto is = [](const Expr& e, std::string_view name) { return called_op(e) && called_op(e)->name == name; };
  auto data = [](const Expr& e) { return as<CallNode>(e)->args[0]; };
  if (!is(function.body, "reshape") || !is(data(function.body), "transpose")) return {};
  const Expr turn = data(function.body), cut = data(turn);
  if (!is(cut, "reshape") || function.params.size() != 1 || data(cut) != function.params[0]) return {};
  const topi::View &in = scope.input(0), &out = scope.output();
  if (!in.contiguous() || !out.contiguous()) return {};
  const auto shape = static_shape(as_tensor(cut->type)->shape);
  const auto& axes = attrs_as<TransposeAttrs>(as<CallNode>(turn)->attrs)->axes;
  if (!shape || !axes) return {};
  const topi::View whole = topi::make_view(in.buffer, *shape);
  topi::View from = whole, to;
  for (size_t d = 0; d < axes->size(); ++d) {
    const auto axis = static_cast<size_t>((*axes)[d] + ((*axes)[d] < 0 ? from.rank() : 0));
    from.shape[d] = whole.shape[axis], from.strides[d] = whole.strides[axis];
  }
  from.offset = in.offset;
  to = topi::make_view(out.buffer, from.shape);
  to.offset = out.offset;
  if (!topi::is_deinterleaving(from, to)) return {};
  return topi::deinterleave_copy(from, to, topi::convert_epilogue(out.dtype()), context);
}

// A layout change of volumes as one of images whose batch is the planes. Null if the planes are not evenly spaced, or
// there are several volumes.
template <class Copy>
tir::Stmt plane_by_plane(const topi::View& in, const topi::View& out, const topi::Epilogue& epilogue,
                         const topi::KernelContext& context, const Copy& copy) {
  if (in.strides.back() != 1 || out.strides.back() != 1 || in.shape[0] > 8) return {};
  std::vector<tir::Stmt> body;
  for (int64_t n = 0; n < in.shape[0]; ++n) {
    auto planes = [n](topi::View view) {
      view.offset += n * view.strides[0];
      view.shape[0] = view.shape[2], view.strides[0] = view.strides[2];
      view.shape.erase(view.shape.begin() + 2), view.strides.erase(view.strides.begin() + 2);
      view.halo_before.clear(), view.halo_after.clear();
      return view;
    };
    auto place = [&epilogue, n](const tir::PrimExpr& value, const topi::Index& index, const tir::PrimExpr& mask) {
      topi::Index real = index;
      real.insert(real.begin() + 2, index[0]);
      real[0] = tir::make_int(n);
      return epilogue(value, real, mask);
    };
    body.push_back(copy(planes(in), planes(out), place, context));
  }
  return tir::seq(std::move(body));
}

// Whether vectors that run across the ends of image rows can be used in the epilogue: other operands must have all
// pixels contiguous, or one value for all pixels, and be accessed element by element.
bool follows_rows(const GroupScope& scope, const Anchor& anchor) {
  const FunctionNode& function = *scope.group().function;
  const Shape& shape = as_tensor(anchor.expr->type)->shape;
  const size_t rank = shape.size();
  const bool columns = shape[rank - 1] == Dim(1);
  auto fits = [&](const Type& type) {
    const auto* t = as_tensor(type);
    if (!t) return false;
    const size_t n = t->shape.size();
    const Dim high = n > 1 ? t->shape[n - 2] : Dim(1), wide = n > 0 ? t->shape[n - 1] : Dim(1);
    if (n == 0) return true;
    return (high == shape[rank - 2] && wide == shape[rank - 1]) || (!columns && high == Dim(1) && wide == Dim(1));
  };
  for (const Expr& e : post_order(function.body)) {
    if (e == anchor.expr || e == anchor.call->args[0]) continue;
    if (const OpDef* op = called_op(e);
        op && (op->pattern > OpPattern::kBroadcast || op->name == std::string_view("repeat") ||
               op->name == std::string_view("tile")))
      return false;
    if (e->kind != ExprKind::kOp && !fits(e->type)) return false;
  }
  // The pixels of operands must be contiguous.
  for (size_t i = 0; i < scope.group().inputs.size(); ++i) {
    const topi::View& in = scope.input(i);
    if (static_cast<int>(i) == anchor.inputs[0] || in.rank() < 2) continue;
    const size_t n = in.shape.size();
    if (in.shape[n - 2] > 1 && in.shape[n - 1] > 0 && in.strides[n - 2] != in.shape[n - 1] * in.strides[n - 1])
      return false;
  }
  return true;
}

// Transposes of an input and the reshapes between them, or a change between plain and blocked channels, with an
// elementwise epilogue: v x v elements at a time, through registers. Null for other groups.
tir::Stmt transposing_copy(const GroupScope& scope, const topi::KernelContext& context) {
  const Anchor anchor = find_moves(*scope.group().function);
  if (!anchor.call || scope.group().outputs.size() != 1) return {};
  const topi::View &in = scope.input(static_cast<size_t>(anchor.inputs[0])), &out = scope.output();
  auto whole_bytes = [&](DataType t) {
    return ((t.is_float() || t.is_integral()) && t.bits >= 8) || (t.is_bool() && anchor.op == "transpose");
  };
  if (!whole_bytes(in.dtype()) || !whole_bytes(out.dtype())) return {};
  if (in.dtype() != out.dtype() && (in.dtype().bits > 32 || out.dtype().bits > 32)) return {};
  const topi::Epilogue epilogue = scope.epilogue(anchor);
  if (anchor.op == "layout_transform") {
    const bool follows = follows_rows(scope, anchor);
    auto from_blocked = [follows](const topi::View& from, const topi::View& to, const topi::Epilogue& finish,
                                  const topi::KernelContext& c) {
      return topi::from_blocked(from, to, finish, c, follows);
    };
    const auto& attrs = *attrs_as<LayoutTransformAttrs>(anchor.call->attrs);
    if (in.rank() == 5 && out.rank() == 6 && attrs.src_layout == "NCDHW" &&
        attrs.dst_layout == format("NCDHW{}c", out.shape.back()))
      return plane_by_plane(in, out, epilogue, context, topi::to_blocked);
    if (in.rank() == 6 && out.rank() == 5 && attrs.dst_layout == "NCDHW" &&
        attrs.src_layout == format("NCDHW{}c", in.shape.back()))
      return plane_by_plane(in, out, epilogue, context, from_blocked);
    auto blocks = [](const topi::View& view) { return format("NCHW{}c", view.shape.back()); };
    if (attrs.src_layout == "NCHW" && in.rank() == 4 && out.rank() == 5 && attrs.dst_layout == blocks(out) &&
        in.strides[3] == 1 && out.strides[4] == 1)
      return topi::to_blocked(in, out, epilogue, context);
    if (attrs.dst_layout == "NCHW" && in.rank() == 5 && out.rank() == 4 && attrs.src_layout == blocks(in) &&
        in.strides[4] == 1 && out.strides[3] == 1)
      return from_blocked(in, out, epilogue, context);
    return {};
  }
  auto permutation = permutation_of(anchor, in, out);
  if (permutation && scope.group().function->body == anchor.expr) permutation = with_longest_parts(*permutation);
  return permutation && topi::is_transposing(*permutation) ? topi::transpose_copy(*permutation, epilogue, context)
                                                           : tir::Stmt();
}

// Whether one operator's name is among a few.
template <size_t n>
bool is_one_of(const Expr& e, const std::string_view (&names)[n]) {
  const OpDef* op = called_op(e);
  return op && std::find(std::begin(names), std::end(names), op->name) != std::end(names);
}

// The parameter of a group that only reshapes it; null: the group does more.
Expr copied_parameter(const FunctionNode& function) {
  Expr from = function.body;
  while (called_op(from) && relay::keeps_order(called_op(from)->facts.elements)) from = as<CallNode>(from)->args[0];
  return from != function.body && function.params.size() == 1 && from == function.params[0] && as_tensor(from->type)
             ? from
             : Expr();
}

// A group that only reshapes its input: one contiguous copy.
tir::Stmt plain_copy(const GroupScope& scope, const topi::KernelContext& context) {
  if (!copied_parameter(*scope.group().function) || scope.group().outputs.size() != 1) return {};
  const topi::View &in = scope.input(0), &out = scope.output();
  if (!in.contiguous() || !out.contiguous() || in.dtype() != out.dtype() || in.dtype().bits < 8) return {};
  topi::InjectiveConfig config;
  config.lanes = context.target->lanes(out.dtype().bits);
  return topi::injective(topi::flattened(out), topi::view_operand(topi::flattened(in)), config, context);
}

// A concatenation of inputs along a short last dimension.
tir::Stmt joining_copy(const GroupScope& scope, const topi::KernelContext& context) {
  const FunctionNode& function = *scope.group().function;
  const OpDef* op = called_op(function.body);
  if (!op || op->name != std::string_view("concatenate") || scope.group().outputs.size() != 1) return {};
  const auto* call = as<CallNode>(function.body);
  const auto* operands = as<TupleNode>(call->args[0]);
  const int rank = scope.output().rank();
  const int axis = attrs_as<ConcatenateAttrs>(call->attrs)->axis;
  if (!operands || (axis < 0 ? axis + rank : axis) + 1 != rank) return {};
  for (const Expr& p : function.params)
    if (!as_tensor(p->type)) return {};
  std::vector<topi::View> parts;
  for (const Expr& operand : operands->fields) {
    const auto at = std::find(function.params.begin(), function.params.end(), operand);
    if (at == function.params.end()) return {};
    parts.push_back(scope.input(static_cast<size_t>(at - function.params.begin())));
  }
  return topi::can_join_rows(parts, scope.output(), *context.target) ? topi::join_rows(parts, scope.output(), context)
                                                                     : tir::Stmt();
}

// A group that is a gather of its inputs along another axis than the last one.
std::optional<topi::GatherProblem> gather_of_rows(const FunctionNode& function) {
  if (!is_call_to(function.body, "gather") || function.params.size() != 2) return std::nullopt;
  const auto* call = as<CallNode>(function.body);
  if (call->args[0] != function.params[0] || call->args[1] != function.params[1]) return std::nullopt;
  const auto table = static_shape(as_tensor(call->args[0]->type)->shape);
  const auto out = static_shape(as_tensor(function.body->type)->shape);
  if (!table || !out) return std::nullopt;
  const auto& attrs = *attrs_as<GatherAttrs>(call->attrs);
  const auto axis = static_cast<size_t>(attrs.axis + (attrs.axis < 0 ? static_cast<int64_t>(out->size()) : 0));
  if (axis + 1 >= out->size()) return std::nullopt;
  for (size_t d = 0; d < out->size(); ++d)
    if (d != axis && (*table)[d] != (*out)[d]) return std::nullopt;
  auto extent = [&](size_t first, size_t last) {
    return std::accumulate(out->begin() + static_cast<std::ptrdiff_t>(first),
                           out->begin() + static_cast<std::ptrdiff_t>(last), int64_t{1}, std::multiplies<>());
  };
  return topi::GatherProblem{extent(0, axis), (*table)[axis], (*out)[axis], extent(axis + 1, out->size()),
                             as_tensor(function.body->type)->dtype};
}

tir::Stmt gathering_copy(const GroupScope& scope, const topi::KernelContext& context) {
  const auto problem = gather_of_rows(*scope.group().function);
  if (!problem || scope.group().outputs.size() != 1 || topi::gather_strip(*problem, *context.target) == 0) return {};
  const topi::View &table = scope.input(0), &places = scope.input(1), &out = scope.output();
  if (!table.contiguous() || !places.contiguous() || !out.contiguous()) return {};
  auto bounded = [&](tir::PrimExpr place) { return bounded_index(std::move(place), problem->rows); };
  return topi::gather_strips(*problem, table, places, bounded, out, context);
}

// Whether a call only moves elements, contiguous along the last dimension where its operand's are.
bool moves_rows(const Expr& e) {
  static constexpr std::string_view kMoves[] = {"broadcast_to",  "concatenate", "expand_dims", "nn.batch_flatten",
                                                "nn.pad",        "reshape",     "split",       "squeeze",
                                                "strided_slice", "tile"};
  static constexpr std::string_view kOfRows[] = {"reverse", "reverse_sequence", "take"};
  if (!is_one_of(e, kOfRows)) return is_one_of(e, kMoves);
  const auto* call = as<CallNode>(e);
  const auto rank = static_cast<int64_t>(as_tensor(call->args[0]->type)->shape.size());
  auto inner = [&](int64_t axis) { return axis == -1 || axis + 1 == rank; };
  const std::string_view name = called_op(e)->name;
  if (name == "take") {
    const auto& axis = attrs_as<TakeAttrs>(call->attrs)->axis;
    return axis && !inner(*axis);
  }
  if (name == "reverse") return !inner(attrs_as<ReverseAttrs>(call->attrs)->axis);
  const auto& attrs = *attrs_as<ReverseSequenceAttrs>(call->attrs);
  return !inner(attrs.seq_axis) && !inner(attrs.batch_axis);
}

// Everything that a group computes but indices of rows, which are computed once for a row.
std::vector<Expr> along_rows(const Expr& body) {
  static constexpr std::string_view kByIndex[] = {"reverse_sequence", "take"};
  std::vector<Expr> out;
  std::function<void(const Expr&)> visit = [&](const Expr& e) {
    if (std::find(out.begin(), out.end(), e) != out.end()) return;
    out.push_back(e);
    if (const auto* tuple = as<TupleNode>(e))
      for (const Expr& field : tuple->fields) visit(field);
    else if (const auto* part = as<TupleGetItemNode>(e))
      visit(part->tuple);
    else if (const auto* call = as<CallNode>(e))
      for (size_t i = 0; i < (is_one_of(e, kByIndex) && moves_rows(e) ? 1 : call->args.size()); ++i)
        visit(call->args[i]);
  };
  visit(body);
  return out;
}

bool only_moves(const Expr& body) {
  const std::vector<Expr> all = along_rows(body);
  return std::all_of(all.begin(), all.end(), [](const Expr& e) { return !as<CallNode>(e) || moves_rows(e); });
}

// Vectors as long as narrow elements allow, for moves, for what integers compute in their own width, and for bytes made
// from wider elements by a few instructions, where stores of a quarter of a register would cost as much as the rest.
// 0: the usual length, which counts elements of 32 bits.
int lanes_for_narrow(const GroupScope& scope, const Target& target) {
  static constexpr std::string_view kSimple[] = {
      "abs",     "add",           "cast",        "ceil",       "clip",       "divide", "equal",      "floor",
      "greater", "greater_equal", "isfinite",    "isinf",      "isnan",      "less",   "less_equal", "maximum",
      "minimum", "multiply",      "nearbyint",   "negative",   "not_equal",  "round",  "sign",       "subtract",
      "trunc",   "where",         "logical_and", "logical_or", "logical_not"};
  constexpr int kFew = 10;
  int bits = 0, simple = 0, others = 0;
  bool moves = true, floats = false;
  for (const Expr& e : along_rows(scope.group().function->body)) {
    if (const OpDef* op = called_op(e); op && !moves_rows(e)) {
      if (op->pattern > OpPattern::kBroadcast) return 0;
      moves = false;
      ++(is_one_of(e, kSimple) ? simple : others);
    }
    if (const auto* type = as_tensor(e->type)) {
      bits = std::max<int>(bits, type->dtype.is_bool() ? 8 : type->dtype.bits);
      floats = floats || type->dtype.is_float();
    }
  }
  if ((bits == 8 || bits == 16) && (moves || !floats)) return target.lanes(bits);
  const DataType out = scope.output().dtype();
  const bool bytes = out.is_bool() || out.bits == 8;
  return bytes && bits <= 32 && others == 0 && simple <= kFew && target.vector_bits == 256 ? target.lanes(8) : 0;
}

bool has_polynomials(const Expr& body) {
  static constexpr std::string_view kPolynomials[] = {
      "exp",      "fast_exp", "log",  "log2", "log10", "log1p", "tanh",  "fast_tanh", "sigmoid", "erf",
      "fast_erf", "atan",     "asin", "acos", "sinh",  "cosh",  "asinh", "acosh",     "atanh",   "nn.gelu"};
  const std::vector<Expr> all = relay::post_order(body);
  return std::any_of(all.begin(), all.end(), [](const Expr& e) { return is_one_of(e, kPolynomials); });
}

// How many vectors of a function made of long polynomials are computed side by side: with 16 registers its constants do
// not stay in them, and loading each again for every vector takes as long as the products.
int vectors_together(const GroupScope& scope, const topi::View& out, const Target& target) {
  const Expr& body = scope.group().function->body;
  if (target.vector_bits != 256 || !has_polynomials(body)) return 1;
  for (const Expr& e : relay::post_order(body)) {
    if (const OpDef* op = called_op(e); op && op->pattern > OpPattern::kBroadcast) return 1;
    if (const auto* type = as_tensor(e->type); type && type->dtype.bits > std::max<int>(32, out.dtype().bits)) return 1;
  }
  return 4;
}

// Whether each run of a row (run_cuts) begins where a vector does. A line that ends one run and begins the next would
// be stored past the caches in part and through them in part: 17 times the time of either on Zen 4.
bool runs_are_whole_vectors(const Graph& graph, const Group& group, const Target& target) {
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    const int64_t bits = graph.tensors[group.outputs[i]].dtype.bytes() * 8;
    for (int64_t cut : run_cuts(group.function->body, static_cast<int>(i)))
      if (cut * bits % target.vector_bits != 0) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<Choice> injective_choice(const Graph& graph, const Group& group, const Target& target) {
  auto choice = std::make_shared<Choice>();
  choice->implementation = "injective";
  double elements = 0;
  for (int id : group.outputs) {
    double n = 1;
    for (int64_t d : graph.tensors[id].shape) n *= static_cast<double>(d);
    elements += n;
    choice->cost.bytes += n * static_cast<double>(graph.tensors[id].dtype.bytes());
  }
  for (int id : group.inputs) {
    double n = 1;
    for (int64_t d : graph.tensors[id].shape) n *= static_cast<double>(d);
    choice->cost.bytes += n * static_cast<double>(graph.tensors[id].dtype.bytes());
  }
  choice->cost.flops = elements;
  choice->cost.microseconds = choice->cost.bytes / (target.machine.l2_gbps * 1e3);
  choice->parallel = elements > 4096;
  // Transposes store pieces of many lines in turn: only whole lines may go past the caches.
  choice->streams = (target.vector_bits >= 512 || !find_moves(*group.function).call) &&
                    (copied_parameter(*group.function) ||
                     (stores_whole_vectors(graph, group, target) && runs_are_whole_vectors(graph, group, target)));
  if (const auto gather = gather_of_rows(*group.function)) {
    choice->scratch_bytes = topi::gather_scratch_bytes(*gather, target);
    choice->scratch_dtype = gather->dtype;
  }
  choice->emit = [](const GroupScope& scope, const topi::KernelContext& context) {
    if (tir::Stmt copy = transposing_copy(scope, context)) return copy;
    if (tir::Stmt copy = separating_blocks(scope, context)) return copy;
    if (tir::Stmt copy = deinterleaving_copy(scope, context)) return copy;
    if (tir::Stmt copy = joining_copy(scope, context)) return copy;
    if (tir::Stmt copy = gathering_copy(scope, context)) return copy;
    if (tir::Stmt copy = window_copy(scope, context)) return copy;
    if (tir::Stmt copy = plain_copy(scope, context)) return copy;
    std::vector<tir::Stmt> stmts;
    const Expr& body = scope.group().function->body;
    topi::InjectiveConfig config;
    config.lanes = lanes_for_narrow(scope, *context.target);
    config.overlaps = only_moves(body);
    const bool polynomials = has_polynomials(body);
    for (int i = 0; i < static_cast<int>(scope.group().outputs.size()); ++i) {
      const topi::View& out = scope.output(static_cast<size_t>(i));
      config.together = vectors_together(scope, out, *context.target);
      // With 16 registers a held result is stored twice: a fifth of a tanh, but less than stores past the caches cost.
      config.stores_late = polynomials && (context.target->vector_bits >= 512 || out.buffer->streamed);
      const std::vector<int64_t> cuts = run_cuts(body, i);
      auto value = [&](int64_t first, int64_t last) {
        return cuts.empty() ? scope.operand(body, i) : scope.operand_within(body, i, first, last);
      };
      stmts.push_back(topi::injective(out, value, cuts, config, context));
    }
    return tir::seq(std::move(stmts));
  };
  return choice;
}

}  // namespace tilewright::lower
