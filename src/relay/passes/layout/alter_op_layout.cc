// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/layout/alter_op_layout.h"

#include <algorithm>
#include <unordered_map>

#include "base/format.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/ops/layout_inference.h"
#include "relay/ops/nn/weight_types.h"

namespace tilewright::relay {
namespace {

// A value of the new graph; channels > 0: it is blocked and has that many logical channels.
struct PlacedBlocks {
  Expr expr;
  int64_t channels = 0;
  bool blocked() const { return channels > 0; }
};

// Computed weights are packed in every run, which costs about as much as the products of a few pixels.
constexpr int64_t kPixelsThatPayForPacking = 16;

class BlockRewriter {
 public:
  BlockRewriter(DataType dtype, int lanes)
      : dtype_(dtype), lanes_(lanes), layout_(format("NCHW{}c", lanes)), volume_layout_(format("NCDHW{}c", lanes)) {}

  Expr run(const FunctionNode& main) {
    for (const Expr& e : post_order(main.body)) values_[e.get()] = place(e);
    return make_function(main.params, plain(main.body), main.attrs, main.span);
  }

 private:
  const TensorTypeNode* tensor(const Expr& e) const { return as_tensor(e->type); }
  std::vector<int64_t> dims(const Expr& e) const {
    const auto* t = tensor(e);
    auto shape = t ? static_shape(t->shape) : std::nullopt;
    return shape ? *shape : std::vector<int64_t>{};
  }
  bool whole(int64_t channels) const { return channels % lanes_ == 0; }
  bool is_constant(const Expr& e) const { return values_.at(e.get()).expr->kind == ExprKind::kConstant; }
  // Images have rank four, volumes rank five.
  static bool spatial(const std::vector<int64_t>& shape) { return shape.size() == 4 || shape.size() == 5; }
  static bool one_pixel(const std::vector<int64_t>& shape) {
    return std::all_of(shape.begin() + 2, shape.end(), [](int64_t d) { return d == 1; });
  }
  static const char* plain_layout(size_t rank) { return rank == 5 ? "NCDHW" : "NCHW"; }
  const std::string& blocked_layout(size_t rank) const { return rank == 5 ? volume_layout_ : layout_; }

  // The value in its original (plain) layout.
  Expr plain(const Expr& e) {
    PlacedBlocks& p = values_.at(e.get());
    if (!p.blocked()) return p.expr;
    auto [it, fresh] = plains_.try_emplace(e.get());
    if (!fresh) return it->second;
    auto shape = dims(e);
    if (whole(p.channels) && one_pixel(shape))
      return it->second =
                 call("reshape", {p.expr}, make_attrs<ReshapeAttrs>([&](auto& a) { a.newshape = shape; }), e->span);
    return it->second = call("layout_transform", {p.expr}, make_attrs<LayoutTransformAttrs>([&](auto& a) {
                               a.src_layout = blocked_layout(shape.size());
                               a.dst_layout = plain_layout(shape.size());
                               a.channels = p.channels;
                             }),
                             e->span);
  }
  // The value in channel blocks; e is NCHW or NCDHW.
  Expr blocked(const Expr& e) {
    PlacedBlocks& p = values_.at(e.get());
    if (p.blocked()) return p.expr;
    auto [it, fresh] = blockeds_.try_emplace(e.get());
    if (fresh) it->second = to_blocks(p.expr, e->span);
    return it->second;
  }
  Expr to_blocks(const Expr& x, const Span& span) {
    auto shape = dims(x);
    if (whole(shape[1]) && one_pixel(shape)) {
      std::vector<int64_t> to(shape.size() + 1, 1);
      to[0] = shape[0], to[1] = shape[1] / lanes_, to.back() = lanes_;
      if (const auto* constant = as<ConstantNode>(x)) return make_constant(constant->data.reshaped(to), span);
      return call("reshape", {x}, make_attrs<ReshapeAttrs>([&](auto& a) { a.newshape = to; }), span);
    }
    return call("layout_transform", {x}, make_attrs<LayoutTransformAttrs>([&](auto& a) {
                  a.src_layout = plain_layout(shape.size());
                  a.dst_layout = blocked_layout(shape.size());
                }),
                span);
  }

  PlacedBlocks place(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kCall:
        if (called_op(e)) return place_call(e);
        break;
      case ExprKind::kTuple: {
        std::vector<Expr> fields;
        for (const Expr& f : as<TupleNode>(e)->fields) fields.push_back(plain(f));
        return {with_children(e, fields), 0};
      }
      case ExprKind::kVar:
      case ExprKind::kGlobalVar:
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kFunction:
        return {e, 0};
      case ExprKind::kTupleGetItem:
        if (auto part = split_parts_.find(as<TupleGetItemNode>(e)->tuple.get()); part != split_parts_.end()) {
          const auto* get = as<TupleGetItemNode>(e);
          return {make_get(part->second, get->index, e->span), dims(e)[1]};
        }
        break;
      case ExprKind::kLet:
      case ExprKind::kIf:
      case ExprKind::kConstructor:
      case ExprKind::kMatch:
      case ExprKind::kRefCreate:
      case ExprKind::kRefRead:
      case ExprKind::kRefWrite:
        break;
    }
    std::vector<Expr> kids;
    for (const Expr& kid : children(e)) kids.push_back(plain(kid));
    return {with_children(e, kids), 0};
  }

  PlacedBlocks place_call(const Expr& e) {
    const auto* c = as<CallNode>(e);
    std::string_view name = called_op(e)->name;
    PlacedBlocks out;
    if (name == "nn.conv2d")
      out = conv2d(e, c);
    else if (name == "nn.conv2d_transpose")
      out = conv2d_transpose(e, c);
    else if (name == "nn.conv3d")
      out = conv3d(e, c);
    else if (name == "nn.conv3d_transpose")
      out = conv3d_transpose(e, c);
    else if (name == "concatenate")
      out = concatenate(e, c);
    else if (name == "split")
      out = split(e, c);
    else if (name == "strided_slice")
      out = strided_slice(e, c);
    else if (name == "nn.pad")
      out = pad(e, c);
    else if (name == "mean" || name == "sum" || name == "max")
      out = reduce(e, c);
    else if (name == "nn.max_pool2d")
      out = pool<MaxPool2DAttrs>(e, c);
    else if (name == "nn.avg_pool2d")
      out = pool<AvgPool2DAttrs>(e, c);
    else if (name == "nn.max_pool3d")
      out = pool<MaxPool3DAttrs>(e, c);
    else if (name == "nn.avg_pool3d")
      out = pool<AvgPool3DAttrs>(e, c);
    else if (name == "nn.global_avg_pool2d" || name == "nn.global_max_pool2d")
      out = pool<GlobalPool2DAttrs>(e, c);
    else if (name == "image.resize2d")
      out = resize(e, c);
    else if (called_op(e)->pattern <= OpPattern::kBroadcast)
      out = elementwise(e, c);
    if (out.expr) return out;
    std::vector<Expr> kids;
    for (const Expr& kid : children(e)) kids.push_back(plain(kid));
    return {with_children(e, kids), 0};
  }

  PlacedBlocks conv2d(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<Conv2DAttrs>(c->attrs);
    auto data = dims(c->args[0]), kernel = dims(c->args[1]), result = dims(e);
    // Unsigned bytes by signed ones, pairs of halves and of bfloat16, in blocks as wide as their sums of 32 bits.
    const DataType from = tensor(c->args[0])->dtype, w = tensor(c->args[1])->dtype, sum = tensor(e)->dtype;
    const bool integers = ((from == kUInt8 && w == kInt8) || (from == kInt16 && w == kInt16)) && sum == kInt32;
    const bool words = dtype_ == kFloat32 && (integers || (from == kBFloat16 && w == kBFloat16 && sum == kFloat32));
    if (attrs.data_layout != "NCHW" || attrs.kernel_layout != "OIHW" || data.size() != 4 || kernel.size() != 4 ||
        !(words ||
          (tensor(c->args[0])->dtype == dtype_ && tensor(c->args[1])->dtype == dtype_ && tensor(e)->dtype == dtype_)) ||
        !(is_constant(c->args[1]) ||
          (!words && result.size() == 4 && result[2] * result[3] >= kPixelsThatPayForPacking)))
      return {};
    int64_t in = data[1], out = kernel[0], groups = attrs.groups;
    bool depthwise = groups > 1 && groups == in && out == in && !words;
    bool grouped = groups > 1 && whole(in / groups) && whole(out / groups);
    // A block spans several groups: each lane reads the channels of its own group.
    const bool several = groups > 1 && !depthwise && !words && in == out && in >= lanes_ && in / groups < lanes_ &&
                         (lanes_ % (in / groups) == 0 || (in / groups == 12 && lanes_ == 16));
    // Groups of 24 channels end in the middle of a block of 16. Blocks of 8 are as fast on machines with 256-bit units,
    // and the activations keep their layout.
    const int64_t half = lanes_ / 2;
    bool narrow = lanes_ == 16 && !several && groups > 1 && !depthwise && !grouped && (in / groups) % half == 0 &&
                  (out / groups) % half == 0;
    if (groups != 1 && !depthwise && !grouped && !several && !narrow) return {};
    bool stem = groups == 1 && in <= 4 && !values_.at(c->args[0].get()).blocked();
    if (words && stem && attrs.dilation != std::vector<int64_t>{1, 1}) return {};
    std::string kernel_layout = depthwise ? format("OIHW1i{}o", lanes_)
                                : stem    ? format("OIHW{}i{}o", in, lanes_)
                                : several ? format("OIHW{}i{}o", in / groups, lanes_)
                                : narrow  ? format("OIHW{0}i{0}o", half)
                                          : format("OIHW{0}i{0}o", lanes_);
    Expr packed = call("layout_transform", {plain(c->args[1])}, make_attrs<LayoutTransformAttrs>([&](auto& a) {
                         a.src_layout = "OIHW";
                         a.dst_layout = kernel_layout;
                       }),
                       c->args[1]->span);
    AttrsRef made = make_attrs<Conv2DNCHWcAttrs>([&](auto& a) {
      a.strides = attrs.strides;
      a.padding = attrs.padding;
      a.dilation = attrs.dilation;
      a.groups = groups;
      a.channels = out;
      a.in_channels = in;
      a.kernel_size = std::vector<int64_t>{kernel[2], kernel[3]};
      a.data_layout = stem ? "NCHW" : layout_;
      a.out_layout = layout_;
      a.kernel_layout = kernel_layout;
      a.out_dtype = attrs.out_dtype;
    });
    Expr x = stem ? plain(c->args[0]) : blocked(c->args[0]);
    return {
        call(depthwise ? "nn.contrib_depthwise_conv2d_NCHWc" : "nn.contrib_conv2d_NCHWc", {x, packed}, made, e->span),
        result[1]};
  }

  // Whether blocks respect groups: one group, groups of whole blocks, or depthwise. `kernel`: of a transposed
  // convolution.
  bool whole_groups(int64_t groups, const std::vector<int64_t>& kernel) const {
    return groups == 1 || (whole(kernel[0] / groups) && whole(kernel[1])) || (groups == kernel[0] && kernel[1] == 1);
  }
  // Blocks data and result; the weights keep their layout, since their packing depends on the kernel's phases.
  PlacedBlocks conv2d_transpose(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<Conv2DTransposeAttrs>(c->attrs);
    auto data = dims(c->args[0]), kernel = dims(c->args[1]);
    bool plain_layout = attrs.data_layout == "NCHW" && (attrs.out_layout.empty() || attrs.out_layout == "NCHW");
    bool groups = whole_groups(attrs.groups, kernel);
    if (!plain_layout || transposed_kernel_layout(attrs.kernel_layout) != "IOHW" || data.size() != 4 ||
        kernel.size() != 4 || !groups || attrs.dilation != std::vector<int64_t>{1, 1} ||
        tensor(c->args[0])->dtype != dtype_ || !is_constant(c->args[1]))
      return {};
    // An output head with few channels writes plain rows directly: blocks would be mostly padding.
    const bool rows = attrs.groups == 1 && kernel[1] * attrs.strides[0] * attrs.strides[1] <= lanes_;
    AttrsRef made = make_attrs<Conv2DTransposeAttrs>([&](auto& a) {
      a = attrs;
      a.data_layout = layout_;
      a.out_layout = rows ? "NCHW" : layout_;
    });
    return {call("nn.conv2d_transpose", {blocked(c->args[0]), plain(c->args[1])}, made, e->span),
            rows ? 0 : dims(e)[1]};
  }

  // 3-D: blocks data (except for stems) and result; the weights keep their layout.
  PlacedBlocks conv3d(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<Conv3DAttrs>(c->attrs);
    auto data = dims(c->args[0]), kernel = dims(c->args[1]);
    const bool usual = attrs.data_layout == "NCDHW" && attrs.kernel_layout == "OIDHW" &&
                       (attrs.out_layout.empty() || attrs.out_layout == "NCDHW");
    if (!usual || data.size() != 5 || kernel.size() != 5 || tensor(c->args[0])->dtype != dtype_ ||
        !is_constant(c->args[1]))
      return {};
    const int64_t in = data[1], out = kernel[0], groups = attrs.groups;
    if (groups != 1 && !(whole(in / groups) && whole(out / groups)) && !(groups == in && out == in)) return {};
    const bool stem = groups == 1 && in <= 4 && !values_.at(c->args[0].get()).blocked();
    AttrsRef made = make_attrs<Conv3DAttrs>([&](auto& a) {
      a = attrs;
      a.channels = out;
      a.data_layout = stem ? "NCDHW" : volume_layout_;
      a.out_layout = volume_layout_;
    });
    return {call("nn.conv3d", {stem ? plain(c->args[0]) : blocked(c->args[0]), plain(c->args[1])}, made, e->span), out};
  }
  PlacedBlocks conv3d_transpose(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<Conv3DTransposeAttrs>(c->attrs);
    auto data = dims(c->args[0]), kernel = dims(c->args[1]);
    const bool usual = attrs.data_layout == "NCDHW" && (attrs.out_layout.empty() || attrs.out_layout == "NCDHW") &&
                       transposed_kernel_layout(attrs.kernel_layout) == "IODHW";
    const bool groups = whole_groups(attrs.groups, kernel);
    if (!usual || data.size() != 5 || kernel.size() != 5 || !groups || tensor(c->args[0])->dtype != dtype_ ||
        attrs.dilation != std::vector<int64_t>{1, 1, 1} || !is_constant(c->args[1]))
      return {};
    AttrsRef made = make_attrs<Conv3DTransposeAttrs>([&](auto& a) {
      a = attrs;
      a.data_layout = volume_layout_;
      a.out_layout = volume_layout_;
    });
    return {call("nn.conv3d_transpose", {blocked(c->args[0]), plain(c->args[1])}, made, e->span), dims(e)[1]};
  }

  template <class A>
  PlacedBlocks pool(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<A>(c->attrs);
    const size_t rank = dims(e).size();
    const DataType own = tensor(c->args[0])->dtype;
    const bool bytes = dtype_ == kFloat32 && own.is_integral() && own.bits == 8;
    if (!values_.at(c->args[0].get()).blocked() || attrs.layout != plain_layout(rank) || !(own == dtype_ || bytes) ||
        !(attrs.out_layout.empty() || attrs.out_layout == plain_layout(rank)) ||
        (own.is_integral() && called_op(e)->facts.elements != Elements::kExtreme))
      return {};
    AttrsRef made = make_attrs<A>([&](auto& a) {
      a = attrs;
      a.layout = blocked_layout(rank);
      a.out_layout = "";
    });
    return {call(called_op(e)->name, {blocked(c->args[0])}, made, e->span), dims(e)[1]};
  }

  PlacedBlocks resize(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<Resize2DAttrs>(c->attrs);
    if (!values_.at(c->args[0].get()).blocked() || attrs.layout != "NCHW" || c->args.size() != 1 ||
        tensor(c->args[0])->dtype != dtype_)
      return {};
    AttrsRef made = make_attrs<Resize2DAttrs>([&](auto& a) {
      a = attrs;
      a.layout = layout_;
    });
    auto result = try_call("image.resize2d", {blocked(c->args[0])}, made, e->span);
    if (!result.ok()) return {};
    return {*result, dims(e)[1]};
  }

  PlacedBlocks reduce(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<ReduceAttrs>(c->attrs);
    if (!values_.at(c->args[0].get()).blocked() || !attrs.keepdims || attrs.exclude || !attrs.axis) return {};
    const auto rank = static_cast<int64_t>(dims(e).size());
    for (int64_t axis : *attrs.axis)
      if ((axis < 0 ? axis + rank : axis) < 2) return {};
    AttrsRef made = make_attrs<ReduceAttrs>([&](auto& a) {
      a = attrs;
      for (int64_t& axis : *a.axis) axis = axis < 0 ? axis + rank : axis;
    });
    return {call(called_op(e)->name, {blocked(c->args[0])}, made, e->span), dims(e)[1]};
  }

  PlacedBlocks pad(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<PadAttrs>(c->attrs);
    auto none = [&](size_t d) { return attrs.pad_width[d] == std::vector<int64_t>{0, 0}; };
    if (!values_.at(c->args[0].get()).blocked() || !spatial(dims(e)) || !none(0) || !none(1)) return {};
    AttrsRef made = make_attrs<PadAttrs>([&](auto& a) {
      a = attrs;
      a.pad_width.push_back({0, 0});
    });
    std::vector<Expr> args{blocked(c->args[0])};
    for (size_t i = 1; i < c->args.size(); ++i) args.push_back(plain(c->args[i]));
    return {call("nn.pad", args, made, e->span), dims(e)[1]};
  }

  PlacedBlocks concatenate(const Expr& e, const CallNode* c) {
    auto result = dims(e);
    int64_t axis = attrs_as<ConcatenateAttrs>(c->attrs)->axis;
    const auto* tuple = as<TupleNode>(c->args[0]);
    if (!tuple || !spatial(result) || (axis != 1 && axis != 1 - static_cast<int64_t>(result.size()))) return {};
    bool any = false;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      any = any || values_.at(tuple->fields[i].get()).blocked();
      // Only the last operand may end in a partly filled block.
      if (!whole(dims(tuple->fields[i])[1]) && i + 1 < tuple->fields.size()) return {};
    }
    if (!any) return {};
    std::vector<Expr> fields;
    for (const Expr& f : tuple->fields) fields.push_back(blocked(f));
    return {call("concatenate", {make_tuple(fields, tuple->span)},
                 make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = 1; }), e->span),
            result[1]};
  }

  // Channel slices must begin at a whole block; rows and columns may be cut anywhere.
  PlacedBlocks strided_slice(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<StridedSliceAttrs>(c->attrs);
    auto in = dims(c->args[0]), result = dims(e);
    if (c->args.size() != 1 || !spatial(in) || result.size() != in.size() || !values_.at(c->args[0].get()).blocked())
      return {};
    AttrsRef made = make_attrs<StridedSliceAttrs>([&](auto& a) {
      a.axes.emplace();
      for (size_t i = 0; i < attrs.begin.size(); ++i) {
        int64_t axis = attrs.axes ? (*attrs.axes)[i] : static_cast<int64_t>(i);
        if (axis < 0) axis += static_cast<int64_t>(in.size());
        const int64_t extent = in[static_cast<size_t>(axis)], out = result[static_cast<size_t>(axis)];
        const int64_t stride = attrs.strides.empty() ? 1 : attrs.strides[std::min(i, attrs.strides.size() - 1)];
        const int64_t begin =
            std::clamp<int64_t>(attrs.begin[i] < 0 ? attrs.begin[i] + extent : attrs.begin[i], 0, extent);
        if (out == extent && stride == 1) continue;
        const bool channels = axis == 1;
        a.axes->push_back(stride < 1 || (channels && (stride != 1 || !whole(begin))) ? -1 : axis);
        a.strides.push_back(stride);
        a.begin.push_back(channels ? begin / lanes_ : begin);
        a.end.push_back(channels ? (begin + out + lanes_ - 1) / lanes_
                                 : std::min(begin + (out - 1) * stride + 1, extent));
      }
    });
    const auto& axes = *attrs_as<StridedSliceAttrs>(made)->axes;
    if (axes.empty() || std::find(axes.begin(), axes.end(), -1) != axes.end() || result[1] == 0) return {};
    return {call("strided_slice", {blocked(c->args[0])}, made, e->span), result[1]};
  }

  // A channel split at block boundaries; its parts are accessed by TupleGetItem.
  PlacedBlocks split(const Expr& e, const CallNode* c) {
    const auto& attrs = *attrs_as<SplitAttrs>(c->attrs);
    auto shape = dims(c->args[0]);
    if (!values_.at(c->args[0].get()).blocked() ||
        (attrs.axis != 1 && attrs.axis != 1 - static_cast<int64_t>(shape.size())))
      return {};
    std::vector<int64_t> starts = attrs.indices_or_sections;
    if (attrs.sections > 0) {
      starts.clear();
      for (int64_t i = 1; i < attrs.sections; ++i) starts.push_back(shape[1] / attrs.sections * i);
    }
    if (!std::all_of(starts.begin(), starts.end(), [&](int64_t s) { return whole(s); })) return {};
    Expr parts = call("split", {blocked(c->args[0])}, make_attrs<SplitAttrs>([&](auto& a) {
                        a.axis = 1;
                        for (int64_t s : starts) a.indices_or_sections.push_back(s / lanes_);
                      }),
                      e->span);
    split_parts_[e.get()] = parts;
    // The tuple used as a value, not by TupleGetItem: all parts return to the plain layout.
    std::vector<Expr> kids;
    for (const Expr& kid : children(e)) kids.push_back(plain(kid));
    return {with_children(e, kids), 0};
  }

  // An operand of an elementwise op, reshaped to broadcast against (N, C/v, H, W, v) or (N, C/v, D, H, W, v); null if
  // it cannot. `rank`: that of the plain result.
  Expr operand(const Expr& arg, int64_t channels, size_t rank) {
    auto shape = dims(arg);
    const auto* type = tensor(arg);
    if (!type || (shape.empty() && !type->shape.empty())) return nullptr;
    if (shape.size() > rank) return nullptr;
    auto reshaped = [&](const Expr& x, const std::vector<int64_t>& to) {
      if (const auto* constant = as<ConstantNode>(x)) return make_constant(constant->data.reshaped(to), x->span);
      return call("reshape", {x}, make_attrs<ReshapeAttrs>([&](auto& a) { a.newshape = to; }), x->span);
    };
    bool one = std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d == 1; });
    if (one && !values_.at(arg.get()).blocked()) return reshaped(plain(arg), {});
    std::vector<int64_t> whole(rank - shape.size(), 1);
    whole.insert(whole.end(), shape.begin(), shape.end());
    if (whole[1] == channels) {
      if (shape.size() == rank) return blocked(arg);
      return to_blocks(reshaped(plain(arg), whole), arg->span);
    }
    if (whole[1] != 1) return nullptr;
    whole.push_back(1);
    return reshaped(plain(arg), whole);
  }

  PlacedBlocks elementwise(const Expr& e, const CallNode* c) {
    auto result = dims(e);
    std::string_view name = called_op(e)->name;
    if (!spatial(result)) return {};
    int64_t channels = result[1];
    bool any = false;
    for (const Expr& arg : c->args) {
      const PlacedBlocks& p = values_.at(arg.get());
      any = any || (p.blocked() && p.channels == channels);
    }
    const bool known = !c->attrs || is_layout_free(*called_op(e), c->args.size());
    if (!any || !known || (!whole(channels) && !called_op(e)->facts.keeps_finite && !divides_by_scalar(name, c)))
      return {};
    std::vector<Expr> args;
    for (const Expr& arg : c->args) {
      Expr x = operand(arg, channels, result.size());
      if (!x) return {};
      args.push_back(x);
    }
    auto made = try_call(name, args, c->attrs, e->span);
    if (!made.ok()) return {};
    return {*made, channels};
  }
  bool divides_by_scalar(std::string_view name, const CallNode* c) const {
    if (name != "divide") return false;
    const auto* constant = as<ConstantNode>(values_.at(c->args[1].get()).expr);
    return constant && constant->data.size() == 1 && constant->data.at_double(0) != 0;
  }

  const DataType dtype_;  // of the convolutions and pools to be blocked
  const int lanes_;
  const std::string layout_, volume_layout_;
  std::unordered_map<const ExprNode*, PlacedBlocks> values_;
  std::unordered_map<const ExprNode*, Expr> plains_, blockeds_, split_parts_;
};

bool has_convolution(const FunctionNode& main, DataType dtype) {
  for (const Expr& e : post_order(main.body))
    for (const char* op : {"nn.conv2d", "nn.conv2d_transpose", "nn.conv3d", "nn.conv3d_transpose"})
      if (is_call_to(e, op) && as_tensor(e->type) && as_tensor(e->type)->dtype == dtype) return true;
  return false;
}

}  // namespace

Result<Module> alter_op_layout(const Module& module, PassContext& context) {
  const FunctionNode* main = module.main_function();
  if (!main || !context.target || context.target->vector_bits < 128) return module;
  Module out = module;
  for (DataType dtype : {kFloat32, kFloat64, kInt32, kUInt32, kInt64, kUInt64})
    if (dtype == kFloat32 || has_convolution(*out.main_function(), dtype))
      out = out.with_main(BlockRewriter(dtype, context.target->lanes(dtype.bits)).run(*out.main_function()));
  return out;
}

}  // namespace tilewright::relay
