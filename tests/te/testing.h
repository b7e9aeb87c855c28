// SPDX-License-Identifier: Apache-2.0
// The values of tensor expressions, one element after another, straight from their definition; and those of a lowered
// schedule, by the loop IR's interpreter. All elements are int64 here: sums of any order are equal.
#pragma once
#include <gtest/gtest.h>

#include <map>

#include "te/lower.h"
#include "tir/interpret.h"
#include "tir/passes/lower_kernel.h"
#include "tir/scalar.h"
#include "tir/text.h"

namespace tilewright::te {

using Elements = std::vector<int64_t>;
using Bindings = std::map<const tir::ExprNode*, int64_t>;

inline PrimExpr i32(int64_t v) { return tir::make_int(v, kInt32); }

class Naive {
 public:
  std::map<const OperationNode*, Elements> known;  // inputs, and what was computed
  Bindings sizes;

  int64_t value(const PrimExpr& e, Bindings& at) {
    using tir::ExprKind;
    if (auto c = tir::as_const_int(e)) return *c;
    if (e->kind == ExprKind::kVar) return at.count(e.get()) ? at.at(e.get()) : sizes.at(e.get());
    if (tir::is_binary(e->kind)) {
      const auto& n = static_cast<const tir::BinaryNode&>(*e);
      int64_t out = 0;
      EXPECT_TRUE(tir::integer_binary(e->kind, n.a->dtype, value(n.a, at), value(n.b, at), &out));
      return out;
    }
    if (auto* n = tir::as<tir::CastNode>(e)) return tir::wrap_integer(e->dtype, value(n->value, at));
    if (auto* n = tir::as<tir::SelectNode>(e)) return value(value(n->condition, at) ? n->on_true : n->on_false, at);
    if (auto* n = tir::as<tir::CallNode>(e)) return value(n->args[value(n->args[0], at) ? 1 : 2], at);
    if (auto* n = tir::as<tir::ReadNode>(e)) {
      const auto& t = static_cast<const TensorNode&>(*n->source);
      int64_t place = 0;
      for (size_t d = 0; d < n->indices.size(); ++d) {
        const int64_t index = value(n->indices[d], at), extent = value(t.shape()[d], at);
        EXPECT_TRUE(index >= 0 && index < extent) << t.op->name;
        place = place * extent + index;
      }
      return elements(t.op)[static_cast<size_t>(place)];
    }
    ADD_FAILURE() << "no value of " << tir::to_text(e);
    return 0;
  }

  const Elements& elements(const Operation& op) {
    if (auto found = known.find(op.get()); found != known.end()) return found->second;
    Elements out;
    Bindings at;
    fill(op, 0, at, &out);
    return known[op.get()] = out;
  }

 private:
  void fill(const Operation& op, size_t d, Bindings& at, Elements* out) {
    if (d < op->axis.size()) {
      const int64_t n = value(op->shape[d], at);
      for (int64_t i = 0; i < n; ++i) {
        at[op->axis[d]->var.get()] = i;
        fill(op, d + 1, at, out);
      }
      return;
    }
    int64_t total = op->combiner ? value(op->combiner->identity[0], at) : value(op->values[0], at);
    if (op->combiner) reduce(op, 0, at, &total);
    out->push_back(total);
  }
  void reduce(const Operation& op, size_t r, Bindings& at, int64_t* total) {
    if (r < op->reduce_axis.size()) {
      const int64_t first = value(op->reduce_axis[r]->min, at), n = value(op->reduce_axis[r]->extent, at);
      for (int64_t i = 0; i < n; ++i) {
        at[op->reduce_axis[r]->var.get()] = first + i;
        reduce(op, r + 1, at, total);
      }
      return;
    }
    if (op->condition && !value(op->condition, at)) return;
    at[op->combiner->lhs[0].get()] = *total;
    at[op->combiner->rhs[0].get()] = value(op->values[0], at);
    *total = value(op->combiner->result[0], at);
  }
};

inline int64_t elements_of(const Tensor& t, Naive& naive) {
  Bindings none;
  int64_t n = 1;
  for (const PrimExpr& d : t->shape()) n *= naive.value(d, none);
  return n;
}

// Runs the kernels on `threads` threads, one after another, as they were lowered or after the passes of kernels.
inline std::vector<Elements> run(const Lowered& lowered, const std::vector<Tensor>& arguments, Naive& naive,
                                 int64_t threads, bool passes) {
  std::vector<Elements> memory;
  Elements sizes;
  for (const PrimExpr& v : lowered.sizes) sizes.push_back(naive.sizes.at(v.get()));
  if (!sizes.empty()) memory.push_back(sizes);
  const size_t first = memory.size();
  for (const Tensor& t : arguments) {
    auto known = naive.known.find(t->op.get());
    const bool input = t->op->is_placeholder();
    memory.push_back(input ? known->second : Elements(static_cast<size_t>(elements_of(t, naive)), -77));
  }
  for (const Lowered::Workspace& w : lowered.workspaces) {
    Bindings at;
    for (size_t i = 0; i < lowered.sizes.size(); ++i) at[lowered.size_values[i].get()] = sizes[i];
    memory.emplace_back(static_cast<size_t>(naive.value(w.elements, at)), -99);
  }
  std::vector<void*> pointers;
  for (Elements& m : memory) pointers.push_back(m.data());
  for (const tir::PrimFunc& k : lowered.kernels) {
    tir::PrimFunc kernel = k;
    if (passes) {
      auto finished = tir::lower_kernel(k);
      EXPECT_TRUE(finished.ok()) << finished.error().str() << tir::to_text(k);
      if (!finished.ok()) return {};
      kernel = std::move(*finished);
    }
    for (int64_t t = 0; t < (kernel.tid ? threads : 1); ++t) {
      auto status = tir::interpret(kernel, pointers, t, threads);
      EXPECT_TRUE(status.ok()) << status.error().str() << tir::to_text(kernel);
      if (!status.ok()) return {};
    }
  }
  return {memory.begin() + static_cast<std::ptrdiff_t>(first),
          memory.begin() + static_cast<std::ptrdiff_t>(first + arguments.size())};
}

}  // namespace tilewright::te
