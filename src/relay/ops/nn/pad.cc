// SPDX-License-Identifier: Apache-2.0
// Padding, depth_to_space and space_to_depth.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/tensor/layout.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

using Widths = std::vector<std::vector<int64_t>>;

Result<Shape> padded_shape(const Shape& in, const Widths& widths) {
  if (widths.size() != in.size())
    return type_error(format("pad_width has {} pairs for data {}", widths.size(), shape_str(in)));
  Shape out;
  for (size_t k = 0; k < in.size(); ++k) {
    if (widths[k].size() != 2)
      return type_error(format("pad_width of axis {} has {} values, not 2", k, widths[k].size()));
    for (int64_t w : widths[k])
      if (w < -(int64_t{1} << 40) || w > (int64_t{1} << 40))
        return type_error(format("pad_width {} is out of range", w));
    out.push_back(in[k] + Dim(widths[k][0] + widths[k][1]));
    if (out.back().is_const() && out.back().value() < 0)
      return type_error(format("pad_width leaves {} elements of axis {}", out.back().value(), k));
  }
  return out;
}

// The input index read by an output index of a padded axis, or -1 for the pad value.
int64_t source_of(int64_t i, int64_t n, std::string_view mode) {
  if (i >= 0 && i < n) return i;
  if (mode == "constant" || n == 0) return -1;
  if (mode == "edge") return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == "wrap") return (i % n + n) % n;
  const bool symmetric = mode == "SYMMETRIC";  // the edge element is repeated, too
  if (n == 1) return 0;
  const int64_t period = symmetric ? 2 * n : 2 * n - 2;
  int64_t j = (i % period + period) % period;
  return j < n ? j : (symmetric ? period - 1 - j : period - j);
}

Value pad_value(const Value& in, const Widths& widths, std::string_view mode, const std::vector<int64_t>& shape,
                const Value* fill) {
  const size_t rank = shape.size();
  if (product(shape, 0, rank) == 0) return make_value(in.dtype, shape);  // empty: other axes may be of any size
  std::vector<int64_t> strides = row_major_strides(in.shape), index(static_cast<size_t>(product(shape, 0, rank)), 0);
  std::vector<int64_t> own = row_major_strides(shape);
  for (size_t k = 0; k < rank; ++k) {
    std::vector<int64_t> table(static_cast<size_t>(shape[k]));
    for (int64_t i = 0; i < shape[k]; ++i) table[i] = source_of(i - widths[k][0], in.shape[k], mode);
    for (size_t j = 0; j < index.size(); ++j) {
      const int64_t t = table[static_cast<size_t>(static_cast<int64_t>(j) / own[k] % shape[k])];
      index[j] = index[j] < 0 || t < 0 ? -1 : index[j] + t * strides[k];
    }
  }
  Value out = pick(in, shape, index);
  if (fill)
    for (size_t j = 0; j < index.size(); ++j)
      if (index[j] < 0) {
        if (!out.f.empty()) out.f[j] = fill->f[0];
        if (!out.i.empty()) out.i[j] = fill->i[0];
        if (!out.s.empty()) out.s[j] = fill->s[0];
      }
  return out;
}

Result<Type> pad_type(const TypeArgs& args) {
  const auto& a = attrs_of<PadAttrs>(args);
  const auto &x = args.tensor(0), &v = args.tensor(1);
  if (a.pad_mode != "constant" && a.pad_mode != "edge" && a.pad_mode != "reflect" && a.pad_mode != "wrap")
    return type_error(format("pad_mode is \"{}\", not constant, edge, reflect or wrap", a.pad_mode));
  if (v.dtype != x.dtype || element_count(v.shape) != Dim(1))
    return type_error(format("pad_value is {}, not a scalar {}", type_str(args.types[1]), x.dtype.str()));
  return tensor_type(TW_TRY(padded_shape(x.shape, a.pad_width)), x.dtype);
}
Result<std::vector<Value>> eval_pad(const EvalArgs& args) {
  const auto& a = args.as<PadAttrs>();
  return one(pad_value(args.inputs[0], a.pad_width, a.pad_mode, out_shape(args), &args.inputs[1]));
}
Result<Type> mirror_type(const TypeArgs& args) {
  const auto& a = attrs_of<MirrorPadAttrs>(args);
  if (a.mode != "SYMMETRIC" && a.mode != "REFLECT")
    return type_error(format("mode is \"{}\", not SYMMETRIC or REFLECT", a.mode));
  return tensor_type(TW_TRY(padded_shape(args.tensor(0).shape, a.pad_width)), args.tensor(0).dtype);
}
Result<std::vector<Value>> eval_mirror(const EvalArgs& args) {
  const auto& a = args.as<MirrorPadAttrs>();
  return one(pad_value(args.inputs[0], a.pad_width, a.mode, out_shape(args), nullptr));
}

// (N, C, H, W) dims of a tensor in NCHW or NHWC.
Result<Layout> image_layout(const TypeArgs& args, const std::string& layout) {
  if (layout != "NCHW" && layout != "NHWC") return type_error(format("layout is \"{}\", not NCHW or NHWC", layout));
  if (args.tensor(0).shape.size() != 4)
    return type_error(format("data {} is not in layout {}", shape_str(args.tensor(0).shape), layout));
  return parse_layout(layout);
}
template <bool kToSpace>
Result<Type> block_type(const TypeArgs& args) {
  const auto& a = attrs_of<SubPixelAttrs>(args);
  Layout l = TW_TRY(image_layout(args, a.layout));
  if (a.block_size < 1 || a.block_size > 65536) return type_error(format("block_size is {}", a.block_size));
  if (a.mode != "DCR" && a.mode != "CDR" && a.mode != "CRD")
    return type_error(format("mode is \"{}\", not DCR or CDR", a.mode));
  Shape out = args.tensor(0).shape;
  const int64_t b = a.block_size;
  auto divide = [&](char letter, int64_t by) -> Status {
    Dim& d = out[static_cast<size_t>(l.find(letter))];
    if (d.is_const() && d.value() % by)
      return type_error(format("axis {} of {} does not divide by {}", letter, shape_str(args.tensor(0).shape), by));
    d = floordiv(d, Dim(by));
    return Ok{};
  };
  auto grow = [&](char letter, int64_t by) {
    Dim& d = out[static_cast<size_t>(l.find(letter))];
    d = d * Dim(by);
  };
  if (kToSpace) {
    TW_TRY_STATUS(divide('C', b * b));
    grow('H', b);
    grow('W', b);
  } else {
    TW_TRY_STATUS(divide('H', b));
    TW_TRY_STATUS(divide('W', b));
    grow('C', b * b);
  }
  return tensor_type(std::move(out), args.tensor(0).dtype);
}
template <bool kToSpace>
Result<std::vector<Value>> eval_block(const EvalArgs& args) {
  const auto& a = args.as<SubPixelAttrs>();
  Layout l = TW_TRY(parse_layout(a.layout)), plain = TW_TRY(parse_layout("NCHW"));
  Value x = relayout(args.inputs[0], l, plain);
  const int64_t b = a.block_size, n = x.shape[0];
  const bool dcr = a.mode == "DCR";
  std::vector<int64_t> shape, strides;
  std::vector<int64_t> out;
  if (kToSpace) {
    const int64_t c = x.shape[1] / (b * b), h = x.shape[2], w = x.shape[3], plane = h * w;
    // DCR: the block's row and column are outermost in the channel axis; CDR: innermost.
    shape = {n, c, h, b, w, b};
    strides = {x.shape[1] * plane, dcr ? plane : b * b * plane, w, (dcr ? b * c : b) * plane, 1, (dcr ? c : 1) * plane};
    out = {n, c, h * b, w * b};
  } else {
    const int64_t c = x.shape[1], h = x.shape[2] / b, w = x.shape[3] / b;
    shape = {n, b, b, c, h, w};
    strides = {c * h * b * w * b, w * b, 1, h * b * w * b, b * w * b, b};
    out = {n, c * b * b, h, w};
  }
  return one(relayout(reshaped(strided_copy(x, shape, strides), out), plain, l));
}

OpDef pad_op(const char* name, const char* doc, std::vector<ArgDoc> operands, Result<Type> (*type)(const TypeArgs&),
             Result<std::vector<Value>> (*eval)(const EvalArgs&), AttrsRef (*make)()) {
  return define_op(name, doc, std::move(operands), OpPattern::kInjective, type, eval, make);
}

}  // namespace

std::vector<OpDef> pad_ops() {
  return {
      pad_op("nn.pad", "Every axis extended (or cropped) by pad_width.",
             {{"data", "any dtype"}, {"pad_value", "a scalar of the data's dtype"}}, pad_type, eval_pad,
             make_default_attrs<PadAttrs>)
          .with({.elements = Elements::kMoved, .narrowing = Narrowing::kFollows}),
      pad_op("nn.mirror_pad", "Every axis extended by its mirror image.", {{"data", "any dtype"}}, mirror_type,
             eval_mirror, make_default_attrs<MirrorPadAttrs>)
          .with({.elements = Elements::kRepeated}),
      pad_op("nn.depth_to_space", "(N, C, H, W) -> (N, C/b^2, H*b, W*b).", {{"data", "any dtype"}}, block_type<true>,
             eval_block<true>, make_default_attrs<SubPixelAttrs>)
          .with({.elements = Elements::kRepeated, .narrowing = Narrowing::kFollows}),
      pad_op("nn.space_to_depth", "(N, C, H, W) -> (N, C*b^2, H/b, W/b).", {{"data", "any dtype"}}, block_type<false>,
             eval_block<false>, make_default_attrs<SubPixelAttrs>)
          .with({.elements = Elements::kRepeated, .narrowing = Narrowing::kFollows}),
  };
}

}  // namespace tilewright::relay
