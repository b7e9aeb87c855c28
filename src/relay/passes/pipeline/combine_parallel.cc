// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/combine_parallel.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "relay/calls.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

// How one kind of product is merged.
struct Kind {
  // A signature that siblings must share; nothing when the call cannot take part.
  std::optional<std::string> (*signature)(const Expr& e);
  // The axes of output channels in the weights and in the result.
  int64_t weight_axis, out_axis;  // from the end when negative
  // The wide product over the concatenated weights.
  Expr (*widen)(const Expr& sibling, const Expr& data, const Expr& weights, int64_t channels);
};

int64_t channels_of(const Expr& e, int64_t axis) {
  const auto& shape = tensor_of(e).shape;
  return shape[static_cast<size_t>(positive_axis(axis, shape.size()))].constant().value_or(-1);
}

Expr concatenated(const std::vector<Expr>& parts, int64_t axis) {
  return call("concatenate", {make_tuple(parts)}, make_attrs<ConcatenateAttrs>([&](auto& a) { a.axis = axis; }));
}

std::optional<std::string> conv2d_signature(const Expr& e) {
  if (!is_call_to(e, "nn.conv2d")) return std::nullopt;
  const auto& attrs = attrs_of<Conv2DAttrs>(e);
  if (attrs.groups != 1 || attrs.data_layout != "NCHW" || attrs.kernel_layout != "OIHW") return std::nullopt;
  if (!attrs.out_layout.empty() && attrs.out_layout != "NCHW") return std::nullopt;
  AttrsRef same = make_attrs<Conv2DAttrs>([&](auto& a) {
    a = attrs;
    a.channels.reset();
    a.kernel_size.reset();
  });
  const auto& kernel = tensor_of(arg(e, 1)).shape;
  return attrs_str(same) + " " + kernel[2].str() + "x" + kernel[3].str();
}

Expr widen_conv2d(const Expr& sibling, const Expr& data, const Expr& weights, int64_t channels) {
  return call("nn.conv2d", {data, weights}, make_attrs<Conv2DAttrs>([&](auto& a) {
                a = attrs_of<Conv2DAttrs>(sibling);
                a.channels = channels;
              }),
              sibling->span);
}

std::optional<std::string> dense_signature(const Expr& e) {
  return is_call_to(e, "nn.dense") ? std::optional(attrs_of<DenseAttrs>(e).out_dtype) : std::nullopt;
}

// Requires weights of equal shape.
std::optional<std::string> dense_batch_signature(const Expr& e) {
  auto out = dense_signature(e);
  if (out) *out += " " + shape_str(tensor_of(arg(e, 1)).shape);
  return out;
}

Expr widen_dense(const Expr& sibling, const Expr& data, const Expr& weights, int64_t channels) {
  return call("nn.dense", {data, weights}, make_attrs<DenseAttrs>([&](auto& a) {
                a = attrs_of<DenseAttrs>(sibling);
                a.units = channels;
              }),
              sibling->span);
}

// Only with the right operand transposed (the classic default), so that its channels are the second axis from the end.
std::optional<std::string> batch_matmul_signature(const Expr& e) {
  if (!is_call_to(e, "nn.batch_matmul") || !attrs_of<BatchMatmulAttrs>(e).transpose_b) return std::nullopt;
  const auto& b = tensor_of(arg(e, 1)).shape;
  std::string leading;
  for (size_t i = 0; i + 2 < b.size(); ++i) leading += " " + b[i].str();
  return attrs_str(as<CallNode>(e)->attrs) + leading;
}

Expr widen_batch_matmul(const Expr& sibling, const Expr& data, const Expr& weights, int64_t) {
  return call("nn.batch_matmul", {data, weights}, as<CallNode>(sibling)->attrs, sibling->span);
}

constexpr Kind kConv2D = {conv2d_signature, 0, 1, widen_conv2d};
constexpr Kind kDense = {dense_signature, 0, -1, widen_dense};
constexpr Kind kDenseBatch = {dense_batch_signature, 0, -1, widen_dense};
constexpr Kind kBatchMatmul = {batch_matmul_signature, -2, -1, widen_batch_matmul};

using Users = std::unordered_map<const ExprNode*, std::vector<Expr>>;

Users users_of(const std::vector<Expr>& order) {
  Users users;
  for (const Expr& e : order)
    for (const Expr& kid : children(e)) users[kid.get()].push_back(e);
  return users;
}

// One set of siblings, and the combined expression so far.
class Combiner {
 public:
  Combiner(const Kind& kind, std::vector<Expr> branches, const Users& users, const Expr& root)
      : kind_(kind), tips_(std::move(branches)), users_(users), root_(root) {}

  // Maps each branch's last combined expression to its replacement; empty when nothing can be combined.
  std::vector<std::pair<Expr, Expr>> run() {
    std::vector<Expr> weights;
    int64_t total = 0;
    for (const Expr& e : tips_) {
      weights.push_back(arg(e, 1));
      sizes_.push_back(channels_of(e, kind_.out_axis));
      if (sizes_.back() <= 0) return {};
      total += sizes_.back();
    }
    size_t weight_rank = tensor_of(weights[0]).shape.size();
    wide_ = kind_.widen(tips_[0], arg(tips_[0], 0),
                        concatenated(weights, positive_axis(kind_.weight_axis, weight_rank)), total);
    while (step()) {
    }
    return slices();
  }

 private:
  // The only user of a branch's current end, or null.
  Expr follower(const Expr& tip) const {
    auto it = users_.find(tip.get());
    if (it == users_.end() || it->second.size() != 1 || tip == root_) return {};
    return it->second[0];
  }

  bool step() {
    std::vector<Expr> next;
    for (const Expr& tip : tips_) {
      next.push_back(follower(tip));
      if (!next.back() || !called_op(next.back()) || called_op(next.back()) != called_op(next[0])) return false;
      if (!same_tensor_type(next.back(), tip)) return false;
      if (!attrs_equal(as<CallNode>(next.back())->attrs, as<CallNode>(next[0])->attrs)) return false;
    }
    const OpDef* op = called_op(next[0]);
    if (op->stateful || op->pattern > OpPattern::kBroadcast) return false;
    size_t operands = as<CallNode>(next[0])->args.size();
    Expr wide;
    if (operands == 1 && op->pattern == OpPattern::kElemWise)
      wide = call(op->name, {wide_}, as<CallNode>(next[0])->attrs, next[0]->span);
    else if (operands == 2)
      wide = combined_binary(op, next);
    if (!wide) return false;
    wide_ = wide;
    tips_ = next;
    return true;
  }

  // Concatenates the branches' other operands along their channels, if each covers all channels of its branch.
  Expr joined_operands(const std::vector<Expr>& others, size_t rank, int64_t axis) const {
    const size_t own = tensor_of(others[0]).shape.size();
    const int64_t at = axis - static_cast<int64_t>(rank - own);
    if (own > rank || at < 0) return {};
    for (size_t i = 0; i < others.size(); ++i) {
      const Shape &shape = tensor_of(others[i]).shape, &first = tensor_of(others[0]).shape;
      if (shape.size() != own || tensor_of(others[i]).dtype != tensor_of(others[0]).dtype) return {};
      for (size_t d = 0; d < own; ++d)
        if (!(shape[d] == (static_cast<int64_t>(d) == at ? Dim(sizes_[i]) : first[d]))) return {};
    }
    return concatenated(others, at);
  }

  // Combines a binary operator with a per-channel operand, if every branch has it with the tip on the same side.
  Expr combined_binary(const OpDef* op, const std::vector<Expr>& next) {
    bool left = arg(next[0], 0) == tips_[0];
    std::vector<Expr> vectors, others;
    size_t rank = tensor_of(wide_).shape.size();
    int64_t axis = positive_axis(kind_.out_axis, rank);
    for (size_t i = 0; i < next.size(); ++i) {
      if (!(arg(next[i], left ? 0 : 1) == tips_[i])) return {};
      others.push_back(arg(next[i], left ? 1 : 0));
    }
    const bool bias = std::string_view(op->name) == "nn.bias_add";
    if (bias && positive_axis(attrs_of<BiasAddAttrs>(next[0]).axis, rank) != axis) return {};
    if (Expr other = bias ? concatenated(others, 0) : joined_operands(others, rank, axis)) {
      auto out = left ? try_call(op->name, {wide_, other}, as<CallNode>(next[0])->attrs, next[0]->span)
                      : try_call(op->name, {other, wide_}, as<CallNode>(next[0])->attrs, next[0]->span);
      if (out.ok() && same_tensor_type(*out, wide_)) return *out;
    }
    for (size_t i = 0; i < next.size(); ++i) {
      auto values = per_channel(arg(next[i], left ? 1 : 0), rank, axis, sizes_[i]);
      if (!values) return {};
      vectors.push_back(make_constant(*values));
    }
    std::vector<int64_t> shape(rank - static_cast<size_t>(axis), 1);
    Expr vector = concatenated(vectors, 0);
    shape[0] = channels_of(vector, 0);
    // bias_add takes a vector; broadcasting operators need trailing unit axes.
    if (std::string_view(op->name) != "nn.bias_add") vector = reshape_to(vector, shape);
    auto out = left ? try_call(op->name, {wide_, vector}, as<CallNode>(next[0])->attrs, next[0]->span)
                    : try_call(op->name, {vector, wide_}, as<CallNode>(next[0])->attrs, next[0]->span);
    return out.ok() && same_tensor_type(*out, wide_) ? *out : Expr();
  }

  std::vector<std::pair<Expr, Expr>> slices() const {
    std::vector<std::pair<Expr, Expr>> out;
    int64_t begin = 0, axis = positive_axis(kind_.out_axis, tensor_of(wide_).shape.size());
    for (size_t i = 0; i < tips_.size(); ++i) {
      Expr slice = call("strided_slice", {wide_}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                          a.begin.assign(static_cast<size_t>(axis) + 1, 0);
                          a.end.assign(static_cast<size_t>(axis) + 1, -1);
                          a.strides.assign(static_cast<size_t>(axis) + 1, 1);
                          a.begin.back() = begin;
                          a.end.back() = sizes_[i];
                          a.slice_mode = "size";
                        }),
                        tips_[i]->span);
      begin += sizes_[i];
      if (!type_equal(slice->type, tips_[i]->type)) return {};
      out.emplace_back(tips_[i], slice);
    }
    return out;
  }

  const Kind& kind_;
  std::vector<Expr> tips_;
  const Users& users_;
  Expr root_, wide_;
  std::vector<int64_t> sizes_;
};

// Merges sibling dense layers with equal weight shapes into one batched product over stacked operands.
class Batcher {
 public:
  Batcher(std::vector<Expr> branches, const Users& users, const Expr& root)
      : tips_(std::move(branches)), users_(users), root_(root) {}
  std::vector<std::pair<Expr, Expr>> run() {
    for (size_t i = 0; i < 2; ++i)
      for (const Expr& tip : tips_)
        if (tensor_of(arg(tip, i)).shape.size() != 2 || !same_tensor_type(arg(tip, i), arg(tips_[0], i))) return {};
    auto product = try_call("nn.batch_matmul", {stacked(0, tips_, false), stacked(1, tips_, false)},
                            make_attrs<BatchMatmulAttrs>([&](auto& a) {
                              a.out_dtype = attrs_of<DenseAttrs>(tips_[0]).out_dtype;
                              a.transpose_b = true;
                            }),
                            tips_[0]->span);
    if (!product.ok()) return {};
    batch_ = *product;
    while (step()) {
    }
    const auto n = static_cast<int64_t>(tips_.size());
    Expr parts = call("split", {batch_}, make_attrs<SplitAttrs>([&](auto& a) {
                        a.sections = n;
                        a.axis = 0;
                      }),
                      batch_->span);
    std::vector<std::pair<Expr, Expr>> out;
    for (int64_t i = 0; i < n; ++i) {
      Expr part = call("squeeze", {make_get(parts, i)},
                       make_attrs<SqueezeAttrs>([](auto& a) { a.axis = std::vector<int64_t>{0}; }),
                       tips_[static_cast<size_t>(i)]->span);
      out.emplace_back(tips_[static_cast<size_t>(i)], part);
    }
    return out;
  }

 private:
  // Stacks operand i of all branches; vectors get a leading axis so that they broadcast within their branch.
  static Expr stacked(size_t i, const std::vector<Expr>& calls, bool widen) {
    std::vector<Expr> parts;
    for (const Expr& e : calls) {
      Expr part = arg(e, i);
      if (widen && tensor_of(part).shape.size() == 1)
        part = call("expand_dims", {part}, make_attrs<ExpandDimsAttrs>([](auto&) {}), part->span);
      parts.push_back(std::move(part));
    }
    return call("stack", {make_tuple(std::move(parts))}, make_attrs<StackAttrs>([](auto& a) { a.axis = 0; }));
  }
  bool step() {
    std::vector<Expr> next;
    for (const Expr& tip : tips_) {
      auto it = users_.find(tip.get());
      if (it == users_.end() || it->second.size() != 1 || tip == root_) return false;
      next.push_back(it->second[0]);
      const OpDef* op = called_op(next.back());
      if (!op || op != called_op(next[0]) || op->stateful || op->pattern > OpPattern::kBroadcast ||
          std::string_view(op->name) == "nn.bias_add" || !same_tensor_type(next.back(), tip) ||
          !attrs_equal(as<CallNode>(next.back())->attrs, as<CallNode>(next[0])->attrs))
        return false;
    }
    const auto& first = *as<CallNode>(next[0]);
    std::vector<Expr> args;
    for (size_t i = 0; i < first.args.size(); ++i) {
      if (first.args[i] == tips_[0]) {
        for (size_t k = 0; k < next.size(); ++k)
          if (!(arg(next[k], i) == tips_[k])) return false;
        args.push_back(batch_);
        continue;
      }
      for (const Expr& e : next)
        if (!same_tensor_type(arg(e, i), first.args[i]) || tensor_of(first.args[i]).shape.empty()) return false;
      args.push_back(stacked(i, next, true));
    }
    auto made = try_call(called_op(next[0])->name, std::move(args), first.attrs, next[0]->span);
    if (!made.ok() || !same_tensor_type(*made, batch_)) return false;
    batch_ = *made;
    tips_ = next;
    return true;
  }

  std::vector<Expr> tips_;
  const Users& users_;
  Expr root_, batch_;
};

// Combines one set of siblings; null when there is none.
// One at a time, because the next set may use its result.
Expr combine_once(const Expr& function, const Kind& kind, size_t branches, bool to_batch, size_t* skip) {
  std::vector<Expr> order = post_order(function);
  std::map<std::pair<const ExprNode*, std::string>, std::vector<Expr>> sets;
  std::vector<const std::vector<Expr>*> found;
  for (const Expr& e : order)
    if (auto signature = as_tensor(e->type) ? kind.signature(e) : std::nullopt)
      if (tensor_of(arg(e, 0)).dtype == tensor_of(arg(e, 1)).dtype) {
        auto& set = sets[{arg(e, 0).get(), *signature}];
        set.push_back(e);
        if (set.size() == branches) found.push_back(&set);
      }
  if (*skip >= found.size()) return {};
  Users users = users_of(order);
  const Expr& root = as<FunctionNode>(function)->body;
  auto replaced =
      to_batch ? Batcher(*found[*skip], users, root).run() : Combiner(kind, *found[*skip], users, root).run();
  if (replaced.empty()) {
    ++*skip;
    return function;
  }
  std::unordered_map<const ExprNode*, Expr> by_original;
  for (auto& [from, to] : replaced) by_original[from.get()] = to;
  return rewrite_graph(function, [&](const Expr& original, const Expr& e) {
    auto it = by_original.find(original.get());
    return it == by_original.end() ? e : it->second;
  });
}

Result<Module> combine(const Module& module, const Kind& kind, int64_t branches, bool to_batch = false) {
  if (branches < 2)
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("min_num_branches is {}, and nothing is parallel to itself", branches));
  return rewrite_functions(module, [&](const Expr& function) {
    Expr current = function;
    size_t skip = 0;
    while (Expr next = combine_once(current, kind, static_cast<size_t>(branches), to_batch, &skip)) current = next;
    return current;
  });
}

}  // namespace

Result<Module> combine_conv2d(const Module& module, int64_t branches) { return combine(module, kConv2D, branches); }
Result<Module> combine_dense(const Module& module, int64_t branches) { return combine(module, kDense, branches); }
Result<Module> combine_dense_to_batch(const Module& module, int64_t branches) {
  return combine(module, kDenseBatch, branches, true);
}
Result<Module> combine_batch_matmul(const Module& module, int64_t branches) {
  return combine(module, kBatchMatmul, branches);
}
Result<Module> combine_parallel_conv2d(const Module& module, PassContext&) {
  return combine(module, kConv2D, kMinBranches);
}
Result<Module> combine_parallel_dense(const Module& module, PassContext&) {
  return combine(module, kDense, kMinBranches);
}
Result<Module> combine_parallel_batch_matmul(const Module& module, PassContext&) {
  return combine(module, kBatchMatmul, kMinBranches);
}

}  // namespace tilewright::relay
