// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/layout/conv1d_to_conv2d.h"

#include <algorithm>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/layout_inference.h"

namespace tilewright::relay {
namespace {

using Sizes = std::vector<int64_t>;

// Extends a width attribute to height and width.
Sizes with_height(const Sizes& width, int64_t height) {
  Sizes out;
  for (int64_t w : width) out.insert(out.end(), {height, w});
  return out;
}
// Padding of the width: one value for both ends, or one for each.
Sizes padding_2d(const Sizes& p) { return {0, p.empty() ? 0 : p[0], 0, p.empty() ? 0 : p.back()}; }
// (N, C, W) -> (N, C, 1, W); shorter shapes broadcast from the right, so (W) stays.
Sizes raised(Sizes shape) {
  if (shape.size() >= 2) shape.insert(shape.end() - 1, 1);
  return shape;
}
int64_t raised_axis(int64_t axis) {
  axis = positive_axis(axis, 3);
  return axis == 2 ? 3 : axis;
}

bool is_reshape(const Expr& e) { return called_op(e) && called_op(e)->facts.elements == Elements::kReshaped; }
// Reshapes `x`; a reshape back to the shape before an earlier reshape gives the original.
Expr reshaped(const Expr& x, const Sizes& shape) {
  Expr source = x;
  while (is_reshape(source)) source = arg(source, 0);
  return static_shape(tensor_of(source).shape) == shape ? source : reshape_to(x, shape);
}

class Raiser {
 public:
  Expr run(const Expr& body) {
    for (const Expr& e : post_order(body)) plain_[e.get()] = place(e);
    return found_ ? plain(body) : body;
  }

 private:
  // The value in its original shape.
  const Expr& plain(const Expr& e) const { return plain_.at(e.get()); }
  std::vector<Expr> plains(const Expr& e, size_t first) const {
    std::vector<Expr> out;
    for (size_t i = first; i < as<CallNode>(e)->args.size(); ++i) out.push_back(plain(arg(e, i)));
    return out;
  }
  // Whether the value was computed with a height axis.
  bool is_raised(const Expr& e) const { return raised_.count(e.get()) != 0; }
  static std::optional<Sizes> sizes(const Expr& e) {
    const auto* t = as_tensor(e->type);
    return t ? static_shape(t->shape) : std::nullopt;
  }

  // The value (N, C, W) as (N, C, 1, W), or null.
  Expr raise(const Expr& e) {
    if (auto it = raised_.find(e.get()); it != raised_.end()) return it->second;
    auto shape = sizes(e);
    if (!shape || shape->size() != 3) return {};
    if (const Tensor* data = constant_data(plain(e))) return make_constant(data->reshaped(raised(*shape)), e->span);
    // (N, W, C) transposed to (N, C, W): the height of 1 is inserted before the transpose.
    if (is_call_to(e, "transpose") && swaps_last(e)) {
      const Sizes before{(*shape)[0], 1, (*shape)[2], (*shape)[1]};
      return transposed(reshaped(plain(arg(e, 0)), before), {0, 3, 1, 2}, e->span);
    }
    return reshaped(plain(e), raised(*shape));
  }
  static bool swaps_last(const Expr& e) {
    const auto& axes = attrs_of<TransposeAttrs>(e).axes;
    return axes && axes->size() == 3 && positive_axis((*axes)[0], 3) == 0 && positive_axis((*axes)[1], 3) == 2;
  }

  // Records the form of `e` with a height axis; its plain form is derived from that.
  Expr keep(const Expr& e, const Expr& with_height) {
    found_ = true;
    raised_[e.get()] = with_height;
    return reshape_to(with_height, *sizes(e));
  }

  Expr place(const Expr& e) {
    if (as<FunctionNode>(e)) return e;
    if (const auto* get = as<TupleGetItemNode>(e))
      if (auto parts = splits_.find(get->tuple.get()); parts != splits_.end())
        return keep(e, make_get(parts->second, get->index, e->span));
    if (called_op(e) && sizes(e)) {
      std::string_view name = called_op(e)->name;
      Expr out;
      if (name == "nn.conv1d")
        out = convolution<Conv1DAttrs, Conv2DAttrs>(e, "nn.conv2d", "OIHW");
      else if (name == "nn.conv1d_transpose")
        out = convolution<Conv1DTransposeAttrs, Conv2DTransposeAttrs>(e, "nn.conv2d_transpose", "IOHW");
      else if (name == "nn.max_pool1d")
        out = pool<MaxPool1DAttrs, MaxPool2DAttrs>(e, "nn.max_pool2d");
      else if (name == "nn.avg_pool1d")
        out = pool<AvgPool1DAttrs, AvgPool2DAttrs>(e, "nn.avg_pool2d");
      else if (name == "image.resize1d")
        out = resize(e);
      else if (name == "concatenate")
        out = concatenate(e);
      else if (sizes(e)->size() == 3 && !as<CallNode>(e)->args.empty() && is_raised(arg(e, 0)) && name == "transpose")
        return lowered_transpose(e);
      else if (name == "nn.pad" && is_raised(arg(e, 0)))
        out = pad(e);
      else if (name == "strided_slice" && is_raised(arg(e, 0)))
        out = strided_slice(e);
      else if ((name == "mean" || name == "sum" || name == "max" || name == "min") && is_raised(arg(e, 0)))
        return reduce(e);
      else if (called_op(e)->pattern <= OpPattern::kBroadcast)
        out = elementwise(e);
      if (out) return keep(e, out);
      if (is_reshape(e)) return reshaped(plain(arg(e, 0)), *sizes(e));
    }
    if (is_call_to(e, "split") && is_raised(arg(e, 0)))
      splits_[e.get()] = call("split", {raised_.at(arg(e, 0).get())}, make_attrs<SplitAttrs>([&](auto& a) {
                                a = attrs_of<SplitAttrs>(e);
                                a.axis = raised_axis(a.axis);
                              }),
                              e->span);
    return unmoved(e);
  }

  Expr unmoved(const Expr& e) const {
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids) kid = plain(kid);
    return with_children(e, kids);
  }

  template <class From, class To>
  Expr convolution(const Expr& e, const char* op, const char* kernel_layout) {
    const auto& a = attrs_of<From>(e);
    const Tensor* weights = constant_data(plain(arg(e, 1)));
    const From standard;
    const bool usual = a.kernel_layout == standard.kernel_layout || a.kernel_layout == "IOW";
    if (!weights || !usual || a.data_layout != "NCW" || !(a.out_layout.empty() || a.out_layout == "NCW")) return {};
    Expr x = raise(arg(e, 0));
    if (!x) return {};
    auto made = try_call(op, {x, make_constant(weights->reshaped(raised(weights->shape())), arg(e, 1)->span)},
                         make_attrs<To>([&](auto& out) {
                           out.strides = with_height(a.strides, 1);
                           out.padding = padding_2d(a.padding);
                           out.dilation = with_height(a.dilation, 1);
                           out.groups = a.groups;
                           out.channels = a.channels;
                           if (a.kernel_size) out.kernel_size = with_height(*a.kernel_size, 1);
                           out.kernel_layout = kernel_layout;
                           out.out_dtype = a.out_dtype;
                           if constexpr (requires { a.output_padding; })
                             out.output_padding = with_height(a.output_padding, 0);
                         }),
                         e->span);
    return made.ok() ? *made : Expr();
  }

  template <class From, class To>
  Expr pool(const Expr& e, const char* op) {
    const auto& a = attrs_of<From>(e);
    if (a.layout != "NCW" || !(a.out_layout.empty() || a.out_layout == "NCW")) return {};
    Expr x = raise(arg(e, 0));
    if (!x) return {};
    auto made = try_call(op, {x}, make_attrs<To>([&](auto& out) {
                           out.pool_size = with_height(a.pool_size, 1);
                           out.strides = with_height(a.strides, 1);
                           out.dilation = with_height(a.dilation, 1);
                           out.padding = padding_2d(a.padding);
                           out.ceil_mode = a.ceil_mode;
                           if constexpr (requires { a.count_include_pad; }) out.count_include_pad = a.count_include_pad;
                         }),
                         e->span);
    return made.ok() ? *made : Expr();
  }

  Expr resize(const Expr& e) {
    const auto& a = attrs_of<Resize1DAttrs>(e);
    if (a.layout != "NCW" || a.size.size() != 1 || a.coordinate_transformation_mode == "tf_crop_and_resize") return {};
    Expr x = raise(arg(e, 0));
    if (!x) return {};
    auto made = try_call("image.resize2d", {x}, make_attrs<Resize2DAttrs>([&](auto& out) {
                           out.size = {1, a.size[0]};
                           if (!a.scales.empty()) out.scales = {1, a.scales[0]};
                           out.sample_as(a);
                           out.out_dtype = a.out_dtype;
                         }),
                         e->span);
    return made.ok() ? *made : Expr();
  }

  Expr concatenate(const Expr& e) {
    const auto* tuple = as<TupleNode>(arg(e, 0));
    if (!tuple || sizes(e)->size() != 3 ||
        std::none_of(tuple->fields.begin(), tuple->fields.end(), [&](const Expr& f) { return is_raised(f); }))
      return {};
    std::vector<Expr> fields;
    for (const Expr& field : tuple->fields) {
      fields.push_back(raise(field));
      if (!fields.back()) return {};
    }
    return call("concatenate", {make_tuple(fields, tuple->span)}, make_attrs<ConcatenateAttrs>([&](auto& a) {
                  a.axis = raised_axis(attrs_of<ConcatenateAttrs>(e).axis);
                }),
                e->span);
  }

  Expr pad(const Expr& e) {
    const auto& a = attrs_of<PadAttrs>(e);
    if (a.pad_width.size() != 3) return {};
    std::vector<Expr> args{raise(arg(e, 0))};
    for (Expr& value : plains(e, 1)) args.push_back(value);
    return call("nn.pad", args, make_attrs<PadAttrs>([&](auto& out) {
                  out = a;
                  out.pad_width.insert(out.pad_width.begin() + 2, {0, 0});
                }),
                e->span);
  }

  Expr strided_slice(const Expr& e) {
    const auto& a = attrs_of<StridedSliceAttrs>(e);
    if (as<CallNode>(e)->args.size() != 1) return {};
    auto made = try_call("strided_slice", {raise(arg(e, 0))}, make_attrs<StridedSliceAttrs>([&](auto& out) {
                           out = a;
                           out.axes.emplace();
                           for (size_t i = 0; i < a.begin.size(); ++i)
                             out.axes->push_back(raised_axis(a.axes ? (*a.axes)[i] : static_cast<int64_t>(i)));
                         }),
                         e->span);
    return made.ok() ? *made : Expr();
  }

  // Reduces over the width; the result has the original shape, with or without keepdims.
  Expr reduce(const Expr& e) {
    const auto& a = attrs_of<ReduceAttrs>(e);
    if (a.exclude || !a.axis || a.axis->size() != 1 || positive_axis((*a.axis)[0], 3) != 2) return unmoved(e);
    Expr made = call(called_op(e)->name, {raise(arg(e, 0))}, make_attrs<ReduceAttrs>([](auto& out) {
                       out.axis = Sizes{2, 3};
                       out.keepdims = true;
                     }),
                     e->span);
    return a.keepdims ? keep(e, made) : reshape_to(made, *sizes(e));
  }

  // To channels last: the height axis is removed behind the transpose.
  Expr lowered_transpose(const Expr& e) {
    if (!swaps_last(e)) return unmoved(e);
    return reshape_to(transposed(raise(arg(e, 0)), {0, 2, 3, 1}, e->span), *sizes(e));
  }

  Expr elementwise(const Expr& e) {
    const auto& c = *as<CallNode>(e);
    std::string_view name = called_op(e)->name;
    auto shape = sizes(e);
    const bool known = !c.attrs || is_layout_free(*called_op(e), c.args.size());
    if (shape->size() != 3 || !known ||
        std::none_of(c.args.begin(), c.args.end(), [&](const Expr& a) { return is_raised(a); }))
      return {};
    std::vector<Expr> args;
    for (const Expr& a : c.args) {
      auto own = sizes(a);
      if (!own || own->size() > 3) return {};
      if (own->size() == 3)
        args.push_back(raise(a));
      else if (const Tensor* data = constant_data(plain(a)))
        args.push_back(make_constant(data->reshaped(raised(*own)), a->span));
      else
        args.push_back(reshaped(plain(a), raised(*own)));
    }
    auto made = try_call(name, args, c.attrs, e->span);
    return made.ok() && sizes(*made) == raised(*shape) ? *made : Expr();
  }

  bool found_ = false;
  std::unordered_map<const ExprNode*, Expr> plain_, raised_, splits_;
};

}  // namespace

Result<Module> conv1d_to_conv2d(const Module& module, PassContext&) {
  return rewrite_functions(module, [](const Expr& function) -> Expr {
    const auto& node = *as<FunctionNode>(function);
    // Islands do not cross bindings or branches.
    for (const Expr& e : post_order(function))
      if (as<LetNode>(e) || as<IfNode>(e) || as<MatchNode>(e)) return function;
    Expr body = Raiser().run(node.body);
    return body == node.body ? function : with_body(node, body);
  });
}

}  // namespace tilewright::relay
