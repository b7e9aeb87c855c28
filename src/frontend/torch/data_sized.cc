// SPDX-License-Identifier: Apache-2.0
// Operators with data-dependent result sizes. The indices are found at run time, and their users are deferred.
#include <algorithm>

#include "base/format.h"
#include "frontend/torch/importer.h"
#include "frontend/torch/wait.h"

namespace tilewright::torch {

using onnx::refuse;

namespace {

bool is_open_mask(const Value& v) {
  if (v.kind != Value::kTensor || !v.expr || NodeContext::known(v.expr)) return false;
  const auto like = likeness_of(v);
  return like && (like->dtype.is_bool() || like->dtype == kUInt8);
}
const Value* argument_named(const NamedValues& arguments, std::string_view name) {
  for (const auto& [given, v] : arguments)
    if (given == name) return &v;
  return nullptr;
}
bool flag_of(const NamedValues& arguments, std::string_view name) {
  const Value* v = argument_named(arguments, name);
  const Tensor* t = v && v->expr ? NodeContext::known(v->expr) : nullptr;
  return t && t->size() == 1 && t->at_int(0) != 0;
}
Value whole_number(int64_t i) { return Value::number(relay::make_constant(Tensor::scalar<int64_t>(kInt64, i))); }
bool has_type(const Value& v) { return is_complete(v.expr->type); }

// Writing a single value under a mask is a select, which needs no indices.
bool is_choice(const std::string_view op, const NamedValues& arguments) {
  if (op != "aten.index_put" && op != "aten._unsafe_index_put") return false;
  const Value *x = argument_named(arguments, "self"), *indices = argument_named(arguments, "indices"),
              *values = argument_named(arguments, "values");
  if (!x || !indices || !values || !indices->list || indices->list->size() != 1) return false;
  if (!x->expr || !values->expr || !has_type(*x) || !has_type(*values) || !has_type(indices->list->front()))
    return false;
  const auto shape = static_shape(as_tensor(values->expr->type)->shape);
  return shape && std::all_of(shape->begin(), shape->end(), [](int64_t d) { return d == 1; });
}

}  // namespace

// (count, rank): the indices of non-zero elements.
Value Importer::places_of(const Node& near, const Value& v) {
  if (has_type(v)) return made_by("aten.nonzero.default", near, {{"self", v}});
  onnx::Node found;
  found.op_type = "NonZero";
  found.name = near.name;
  found.inputs = {"tensor"};
  found.outputs = {"places"};
  Value rows(onnx_.defer(found, {}, 13, {onnx::Value(v.expr)}).at(0).expr);
  const auto like = likeness_of(v);
  rows.like = Likeness{kInt64, 2, {like ? like->rank : -1, -1}};
  return made_by("aten.transpose.int", near, {{"self", rows}, {"dim0", whole_number(0)}, {"dim1", whole_number(1)}});
}

// The same as one tensor per axis.
Values Importer::axes_of_places(const Node& near, const Value& v) {
  const auto like = likeness_of(v);
  if (!like) refuse(ErrorCode::kUnsupportedOp, "the places where a tensor holds whose number of axes is not known");
  const Value places = places_of(near, v);
  Values out;
  for (int64_t i = 0; i < like->rank; ++i)
    out.push_back(
        made_by("aten.select.int", near, {{"self", places}, {"dim", whole_number(1)}, {"index", whole_number(i)}}));
  return out;
}

// Replaces boolean masks among the indices by the indices of their true elements.
NamedValues Importer::without_masks(const Node& node, const NamedValues& arguments) {
  NamedValues out = arguments;
  for (auto& [name, v] : out) {
    if (name != "indices" || !v.list) continue;
    Values items;
    for (const Value& item : *v.list) {
      if (!is_open_mask(item)) {
        items.push_back(item);
        continue;
      }
      const Values places = axes_of_places(node, item);
      items.insert(items.end(), places.begin(), places.end());
    }
    v = Value::of_list(std::move(items));
  }
  return out;
}

// Counts how often each integer occurs.
Values Importer::histogram(const Node& node, const NamedValues& arguments) {
  const Value &x = arguments.at(0).second, *weights = argument_named(arguments, "weights"),
              *least = argument_named(arguments, "minlength");
  if (!x.expr) refuse(ErrorCode::kUnsupportedOp, "without a tensor");
  const Value largest =
      made_by("aten.item.default", node, {{"self", made_by("aten.max.default", node, {{"self", x}})}});
  const Value count = made_by("operator.add", node, {{"0", largest}, {"1", whole_number(1)}});
  const Value size = made_by("torch.sym_max", node, {{"0", count}, {"1", least ? *least : whole_number(0)}});
  const bool weighted = weights && weights->expr;
  Value dtype = Value::of_dtype(weighted ? likeness_of(*weights).value_or(Likeness{}).dtype : kInt64);
  const Value none = made_by("aten.zeros.default", node, {{"size", Value::of_list({size})}, {"dtype", dtype}});
  const Value each = weighted ? *weights : made_by("aten.ones_like.default", node, {{"self", x}, {"dtype", dtype}});
  return {made_by("aten.scatter_add.default", node,
                  {{"self", none}, {"dim", whole_number(0)}, {"index", x}, {"src", each}})};
}

// The boxes that are kept, the best first.
Value Importer::kept_boxes(const Node& near, const NamedValues& arguments) {
  const Value *boxes = argument_named(arguments, "dets"), *scores = argument_named(arguments, "scores"),
              *threshold = argument_named(arguments, "iou_threshold");
  if (!boxes || !scores || !threshold || !threshold->expr)
    refuse(ErrorCode::kMalformedModel, "it has boxes, scores and a threshold");
  const auto with_axes = [&](const Value& v, int count) {
    Value out = made_by("aten.to.dtype", near, {{"self", v}, {"dtype", Value::of_dtype(kFloat32)}});
    for (int i = 0; i < count; ++i)
      out = made_by("aten.unsqueeze.default", near, {{"self", out}, {"dim", whole_number(0)}});
    return out;
  };
  const Value limit =
      made_by("aten.to.dtype", near, {{"self", Value(threshold->expr)}, {"dtype", Value::of_dtype(kFloat32)}});
  onnx::Node kept;
  kept.op_type = "NonMaxSuppression";
  kept.name = near.name;
  kept.inputs = {"boxes", "scores", "most", "threshold"};
  kept.outputs = {"kept"};
  Value rows(onnx_
                 .defer(kept, {}, 11,
                        {onnx::Value(with_axes(*boxes, 1).expr), onnx::Value(with_axes(*scores, 2).expr),
                         onnx::Value(whole_number(INT64_MAX).expr), onnx::Value(limit.expr)})
                 .at(0)
                 .expr);
  rows.like = Likeness{kInt64, 2, {-1, 3}};  // (batch, class, box)
  return made_by("aten.select.int", near, {{"self", rows}, {"dim", whole_number(1)}, {"index", whole_number(2)}});
}

std::optional<Values> Importer::sized_by_data(const Node& node, const NamedValues& arguments) {
  if (!programs() || arguments.empty()) return std::nullopt;
  const std::string_view op = without_overload(node.target);
  const Value& self = arguments[0].second;
  const bool open = self.expr && !NodeContext::known(self.expr);
  if (op == "aten.index" || op == "aten._unsafe_index" || op == "aten.index_put" || op == "aten._unsafe_index_put") {
    const Value* indices = argument_named(arguments, "indices");
    const bool masks =
        indices && indices->list && std::any_of(indices->list->begin(), indices->list->end(), is_open_mask);
    if (!masks || is_choice(op, arguments)) return std::nullopt;
    return convert(node, without_masks(node, arguments));
  }
  if ((op == "aten.nonzero" || op == "aten.argwhere") && open && !has_type(self)) return Values{places_of(node, self)};
  if (((op == "aten.where" && arguments.size() == 1) || op == "aten.nonzero_numpy") && self.expr)
    return Values{Value::of_list(axes_of_places(node, self))};
  if (op == "aten.masked_select" && arguments.size() > 1) {
    Values both = {self, arguments[1].second};
    if (both[0].expr && both[1].expr && has_type(both[0]) && has_type(both[1]) &&
        !type_equal(tensor_type(as_tensor(both[0].expr->type)->shape, kBool), both[1].expr->type)) {
      const Value all = made_by("aten.broadcast_tensors.default", node, {{"tensors", Value::of_list(both)}});
      if (all.list) both = *all.list;
    }
    return Values{made_by("aten.index.Tensor", node, {{"self", both[0]}, {"indices", Value::of_list({both[1]})}})};
  }
  if (op == "torchvision.nms") return Values{kept_boxes(node, arguments)};
  if (op == "aten.bincount" && open) return histogram(node, arguments);
  if ((op == "aten._unique2" || op == "aten.unique_dim") && self.expr) {
    onnx::Node unique;
    unique.op_type = "Unique";
    unique.name = node.name;
    unique.inputs = {"tensor"};
    unique.outputs = {"values", "first", "inverse", "counts"};
    if (op == "aten.unique_dim") {
      const Value* dim = argument_named(arguments, "dim");
      const Tensor* axis = dim && dim->expr ? NodeContext::known(dim->expr) : nullptr;
      if (!axis) refuse(ErrorCode::kUnsupportedOp, "an axis that only a run knows");
      unique.attributes.push_back(onnx::int_attribute("axis", axis->at_int(0)));
    }
    const onnx::Values made = onnx_.defer(unique, {}, 11, {onnx::Value(self.expr)});
    Value values(made.at(0).expr), inverse(made.at(2).expr), counts(made.at(3).expr);
    inverse.like = counts.like = Likeness{kInt64, 1};
    if (const auto like = likeness_of(self))
      values.like = Likeness{like->dtype, op == "aten._unique2" ? 1 : like->rank};
    if (op == "aten._unique2" && flag_of(arguments, "return_inverse"))
      inverse = made_by("aten.reshape_as.default", node, {{"self", inverse}, {"other", self}});
    return Values{values, inverse, counts};
  }
  return std::nullopt;
}

}  // namespace tilewright::torch
