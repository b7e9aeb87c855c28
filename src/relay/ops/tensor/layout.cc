// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/tensor/layout.h"

#include <algorithm>
#include <cctype>

#include "relay/ops/tensor/attrs_transform.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {

int Layout::find(char letter) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].letter == letter && axes[i].factor == 0) return static_cast<int>(i);
  return -1;
}
int Layout::find_block(char letter) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].letter == letter && axes[i].factor > 0) return static_cast<int>(i);
  return -1;
}
int64_t Layout::block(char letter) const {
  int b = find_block(letter);
  return b < 0 ? 1 : axes[static_cast<size_t>(b)].factor;
}
Dim Layout::extent(char letter, const Shape& shape) const {
  return shape[static_cast<size_t>(find(letter))] * Dim(block(letter));
}
int64_t Layout::extent(char letter, const std::vector<int64_t>& shape) const {
  return shape[static_cast<size_t>(find(letter))] * block(letter);
}

Result<Layout> parse_layout(const std::string& text) {
  Layout out;
  out.text = text;
  auto bad = [&](const char* why) {
    return type_error(format("layout \"{}\" {}", text, why), "for instance \"NCHW\", \"NHWC\", \"NCHW16c\"");
  };
  int64_t factor = 0;
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      factor = factor * 10 + (c - '0');
      if (factor > 4096) return bad("has a block above 4096");
    } else if (c >= 'A' && c <= 'Z') {
      if (factor) return bad("has a size before a capital letter");
      if (out.find(c) >= 0) return bad("names an axis twice");
      out.axes.push_back({c, 0});
    } else if (c >= 'a' && c <= 'z') {
      char letter = static_cast<char>(c - 'a' + 'A');
      if (!factor) return bad("has a block without a size");
      if (out.find_block(letter) >= 0) return bad("blocks an axis twice");
      out.axes.push_back({letter, factor});
      factor = 0;
    } else {
      return bad("has a character that is not a letter or digit");
    }
  }
  if (factor || out.axes.empty()) return bad("is incomplete");
  for (const auto& axis : out.axes)
    if (out.find(axis.letter) < 0) return bad("blocks an axis that it does not have");
  return out;
}

int64_t LogicalSizes::get(char letter, int64_t otherwise) const {
  for (auto& [l, size] : sizes)
    if (l == letter) return size;
  return otherwise;
}

Result<Shape> relayout_shape(const Layout& from, const Layout& to, const Shape& shape, const LogicalSizes& logical) {
  if (shape.size() != from.rank())
    return type_error(format("data {} is not in layout {}", shape_str(shape), from.text));
  for (const auto& axis : from.axes) {
    if (to.find(axis.letter) < 0) return type_error(format("layouts {} and {} have other axes", from.text, to.text));
    int at = from.find_block(axis.letter);
    if (at >= 0 && dims_differ(shape[static_cast<size_t>(at)], Dim(from.block(axis.letter))))
      return type_error(format("data {} is not in layout {}", shape_str(shape), from.text));
  }
  Shape out;
  for (const auto& axis : to.axes) {
    if (from.find(axis.letter) < 0) return type_error(format("layouts {} and {} have other axes", from.text, to.text));
    Dim extent = from.extent(axis.letter, shape);
    if (int64_t real = logical.get(axis.letter, -1); real >= 0) {
      if (extent.is_const() && (real > extent.value() || extent.value() - real >= from.block(axis.letter)))
        return type_error(format("{} logical channels do not fit {} of data {} in layout {}", real, axis.letter,
                                 shape_str(shape), from.text));
      extent = Dim(real);
    }
    out.push_back(axis.factor ? Dim(axis.factor) : ceildiv(extent, to.block(axis.letter)));
  }
  return out;
}

LogicalSizes logical_sizes(const Layout& from, std::optional<int64_t> channels, std::optional<int64_t> in_channels) {
  LogicalSizes out;
  if (channels)
    for (char letter : {'C', 'O', 'N'})
      if (from.find_block(letter) >= 0) {
        out.sizes.emplace_back(letter, *channels);
        break;
      }
  if (in_channels && from.find_block('I') >= 0) out.sizes.emplace_back('I', *in_channels);
  return out;
}

LayoutMap::LayoutMap(const Layout& from, const Layout& to, const std::vector<int64_t>& shape,
                     const LogicalSizes& logical) {
  std::vector<int64_t> strides = row_major_strides(shape);
  std::string letters;
  for (const auto& axis : from.axes)
    if (axis.factor == 0) letters += axis.letter;
  for (char letter : letters) {
    const int64_t src_block = from.block(letter), dst_block = to.block(letter);
    const int64_t extent = logical.get(letter, from.extent(letter, shape));
    const int at = from.find(letter), at_block = from.find_block(letter);
    std::vector<int64_t> offsets(static_cast<size_t>((extent + dst_block - 1) / dst_block * dst_block), kPadding);
    for (int64_t i = 0; i < extent; ++i)
      offsets[static_cast<size_t>(i)] = (i / src_block) * strides[static_cast<size_t>(at)] +
                                        (at_block < 0 ? 0 : (i % src_block) * strides[static_cast<size_t>(at_block)]);
    offsets_.push_back(std::move(offsets));
  }
  for (const auto& axis : to.axes) {
    size_t letter = letters.find(axis.letter);
    const int64_t block = to.block(axis.letter);
    shape_.push_back(axis.factor ? axis.factor : static_cast<int64_t>(offsets_[letter].size()) / block);
    steps_.push_back({&offsets_[letter], axis.factor ? 1 : block, letter});
  }
}

Value relayout(const Value& in, const Layout& from, const Layout& to, const LogicalSizes& logical) {
  if (from.text == to.text && logical.sizes.empty()) return in;
  LayoutMap map(from, to, in.shape, logical);
  Value out = make_value(in.dtype, map.shape());
  if (!in.bound.empty()) out.bound.resize(out.f.size());
  auto copy = [&](auto& dst, const auto& src) {
    if (!dst.empty())
      map.each([&](int64_t o, int64_t at) {
        if (at >= 0) dst[o] = src[at];
      });
  };
  copy(out.f, in.f);
  copy(out.bound, in.bound);
  copy(out.i, in.i);
  copy(out.s, in.s);
  return out;
}

namespace {

Result<Type> layout_transform_type(const TypeArgs& args) {
  const auto& a = attrs_of<LayoutTransformAttrs>(args);
  Layout from = TW_TRY(parse_layout(a.src_layout)), to = TW_TRY(parse_layout(a.dst_layout));
  const auto& t = args.tensor(0);
  return tensor_type(TW_TRY(relayout_shape(from, to, t.shape, logical_sizes(from, a.channels, a.in_channels))),
                     t.dtype);
}

Result<std::vector<Value>> eval_layout_transform(const EvalArgs& args) {
  const auto& a = args.as<LayoutTransformAttrs>();
  Layout from = TW_TRY(parse_layout(a.src_layout)), to = TW_TRY(parse_layout(a.dst_layout));
  return one(relayout(args.inputs[0], from, to, logical_sizes(from, a.channels, a.in_channels)));
}

}  // namespace

std::vector<OpDef> layout_ops() {
  OpDef op;
  op.name = "layout_transform";
  op.pattern = OpPattern::kInjective;
  op.doc = "The same tensor in another layout; blocks that do not divide are padded with zeros.";
  op.args = {{"data", "a tensor in src_layout"}};
  op.infer_type = layout_transform_type;
  op.evaluate = eval_layout_transform;
  op.make_attrs = make_default_attrs<LayoutTransformAttrs>;
  op.facts = {.elements = Elements::kMoved, .narrowing = Narrowing::kFollows};
  return {op};
}

}  // namespace tilewright::relay
