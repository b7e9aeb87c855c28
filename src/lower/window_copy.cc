// SPDX-License-Identifier: Apache-2.0
#include "lower/window_copy.h"

#include <algorithm>

#include "relay/op.h"
#include "relay/ops/tensor/attrs_transform.h"
#include "topi/injective.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// Two views of equal shape: the elements of one go to the places of the other.
struct Move {
  topi::View from, to;
};

// The part of a view that begins at `first` along an axis.
topi::View window_of_view(topi::View view, size_t axis, int64_t first, int64_t extent) {
  view.offset += first * view.strides[axis];
  view.shape[axis] = extent;
  view.halo_before.clear(), view.halo_after.clear();
  return view;
}

size_t place_of(int64_t axis, int rank) { return static_cast<size_t>(axis < 0 ? axis + rank : axis); }

std::vector<Move> moves_of_concatenation(const GroupScope& scope, const CallNode& call) {
  const FunctionNode& function = *scope.group().function;
  const auto* operands = as<TupleNode>(call.args[0]);
  const topi::View& out = scope.output();
  const size_t axis = place_of(attrs_as<ConcatenateAttrs>(call.attrs)->axis, out.rank());
  std::vector<Move> moves;
  int64_t first = 0;
  for (const Expr& operand : operands ? operands->fields : std::vector<Expr>()) {
    const auto at = std::find(function.params.begin(), function.params.end(), operand);
    if (at == function.params.end()) return {};
    const topi::View& in = scope.input(static_cast<size_t>(at - function.params.begin()));
    const int64_t extent = in.shape[axis];
    if (extent > 0) moves.push_back({window_of_view(in, axis, 0, extent), window_of_view(out, axis, first, extent)});
    first += extent;
  }
  return moves;
}

std::vector<Move> moves_of_split(const GroupScope& scope, const CallNode& call) {
  const topi::View& in = scope.input(0);
  const size_t axis = place_of(attrs_as<SplitAttrs>(call.attrs)->axis, in.rank());
  std::vector<Move> moves;
  int64_t first = 0;
  for (size_t i = 0; i < scope.group().outputs.size(); ++i) {
    const topi::View& out = scope.output(i);
    const int64_t extent = out.shape[axis];
    if (extent > 0) moves.push_back({window_of_view(in, axis, first, extent), window_of_view(out, axis, 0, extent)});
    first += extent;
  }
  return moves;
}

// Merges two dimensions into one wherever both views keep them together.
Move merged(Move move) {
  auto together = [](const topi::View& v, size_t d) { return v.strides[d - 1] == v.strides[d] * v.shape[d]; };
  for (size_t d = move.from.shape.size(); d-- > 1;) {
    if (!together(move.from, d) || !together(move.to, d)) continue;
    for (topi::View* view : {&move.from, &move.to}) {
      const auto at = static_cast<std::ptrdiff_t>(d);
      view->shape[d - 1] *= view->shape[d];
      view->strides[d - 1] = view->strides[d];
      view->shape.erase(view->shape.begin() + at), view->strides.erase(view->strides.begin() + at);
    }
  }
  return move;
}

}  // namespace

tir::Stmt window_copy(const GroupScope& scope, const topi::KernelContext& context) {
  constexpr size_t kMostWindows = 16;  // each has code of its own
  const FunctionNode& function = *scope.group().function;
  const OpDef* op = called_op(function.body);
  for (const Expr& p : function.params)
    if (!as_tensor(p->type)) return {};
  if (!op || scope.output().rank() == 0 || scope.output().dtype().bits < 8) return {};
  const auto* call = as<CallNode>(function.body);
  std::vector<Move> moves;
  if (op->name == std::string_view("concatenate"))
    moves = moves_of_concatenation(scope, *call);
  else if (op->name == std::string_view("split") && function.params.size() == 1 && call->args[0] == function.params[0])
    moves = moves_of_split(scope, *call);
  if (moves.empty() || moves.size() > kMostWindows) return {};
  topi::InjectiveConfig config;
  config.lanes = context.target->lanes(scope.output().dtype().bits);
  config.overlaps = true;
  std::vector<tir::Stmt> copies;
  for (const Move& move : moves) {
    const Move whole = merged(move);
    if (whole.to.shape.back() == move.to.shape.back()) return {};
    copies.push_back(topi::injective(whole.to, topi::view_operand(whole.from), config, context));
  }
  return tir::seq(std::move(copies));
}

}  // namespace tilewright::lower
