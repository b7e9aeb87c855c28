// SPDX-License-Identifier: Apache-2.0
// Injective operators, as maps from result indices to operand indices. A vector along the last dimension stays one load
// where the map keeps it contiguous; otherwise it is gathered lane by lane.
#include <algorithm>
#include <numeric>

#include "lower/compute.h"
#include "relay/ops/attrs.h"
#include "relay/ops/tensor/layout.h"

namespace tilewright::lower {
namespace {
using namespace tir;
using A = const ComputeArgs&;
using Index = std::vector<PrimExpr>;

std::vector<int64_t> dims(const TensorTypeNode& type) { return *static_shape(type.shape); }
size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}
PrimExpr if_else(PrimExpr condition, PrimExpr yes, PrimExpr no) {
  if (const auto* c = as<IntImmNode>(condition)) return c->value ? yes : no;
  return intrinsic(Intrinsic::k_if_then_else, {std::move(condition), std::move(yes), std::move(no)});
}

// The same row-major position in another shape: reshape, expand_dims, squeeze, batch_flatten.
PrimExpr reshape(A a) {
  auto in = dims(*a.types[0]), out = dims(a.out);
  auto at = [&](const Index& index, int lanes) {
    // Equal trailing dimensions need no index arithmetic.
    size_t same = 0;
    while (same < in.size() && same < out.size() && in[in.size() - 1 - same] == out[out.size() - 1 - same]) ++same;
    if (same == in.size() || same == out.size()) {
      Index mapped(in.size(), make_int(0));
      for (size_t d = 0; d < same; ++d) mapped[in.size() - 1 - d] = index[out.size() - 1 - d];
      return a.at(0, mapped, lanes);
    }
    std::vector<int64_t> in_head(in.begin(), in.end() - same), out_head(out.begin(), out.end() - same);
    Index head(index.begin(), index.end() - same);
    Index mapped = unflatten_index(flatten_index(head, out_head), in_head);
    mapped.insert(mapped.end(), index.end() - same, index.end());
    return a.at(0, mapped, lanes);
  };
  if (a.lanes == 1) return at(a.index, 1);
  bool contiguous = !in.empty() && !out.empty() &&
                    (in.back() == out.back() || (in.back() % a.lanes == 0 && out.back() % a.lanes == 0));
  if (contiguous) return at(a.index, a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}

PrimExpr transpose(A a) {
  std::vector<int64_t> axes;
  if (auto given = a.attrs<relay::TransposeAttrs>().axes; given && !given->empty()) axes = *given;
  size_t rank = a.index.size();
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.rbegin(), axes.rend(), 0);
  }
  auto at = [&](const Index& index, int lanes) {
    Index mapped(rank);
    for (size_t d = 0; d < rank; ++d) mapped[axis_of(axes[d], rank)] = index[d];
    return a.at(0, mapped, lanes);
  };
  if (a.lanes == 1 || axis_of(axes.back(), rank) == rank - 1) return at(a.index, a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}

PrimExpr broadcast_to(A a) { return a.broadcast_operand(0); }

// begin and stride of every dimension, with negative indices resolved and clamped.
void slice_start(A a, std::vector<int64_t>* begin, std::vector<int64_t>* stride) {
  const auto& attrs = a.attrs<relay::StridedSliceAttrs>();
  size_t rank = a.index.size();
  begin->assign(rank, 0);
  stride->assign(rank, 1);
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    size_t d = attrs.axes && !attrs.axes->empty() ? axis_of((*attrs.axes)[i], rank) : i;
    int64_t extent = a.in_dim(0, d);
    int64_t s =
        attrs.slice_mode == "size" || attrs.strides.empty() ? 1 : attrs.strides[std::min(i, attrs.strides.size() - 1)];
    int64_t b = attrs.begin[i] < 0 ? attrs.begin[i] + extent : attrs.begin[i];
    (*begin)[d] = s > 0 ? std::clamp<int64_t>(b, 0, extent) : std::clamp<int64_t>(b, -1, extent - 1);
    (*stride)[d] = s;
  }
}
PrimExpr strided_slice(A a) {
  std::vector<int64_t> begin, stride;
  slice_start(a, &begin, &stride);
  auto at = [&](const Index& index, int lanes) {
    Index mapped;
    for (size_t d = 0; d < index.size(); ++d) mapped.push_back(index[d] * stride[d] + begin[d]);
    return a.at(0, mapped, lanes);
  };
  if (a.lanes == 1 || stride.back() == 1) return at(a.index, a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}

PrimExpr split(A a) {
  const auto& attrs = a.attrs<relay::SplitAttrs>();
  size_t axis = axis_of(attrs.axis, a.index.size());
  int64_t start = attrs.sections > 0
                      ? a.in_dim(0, axis) / attrs.sections * a.output
                      : (a.output == 0 ? 0 : attrs.indices_or_sections[static_cast<size_t>(a.output) - 1]);
  Index mapped = a.index;
  mapped[axis] = mapped[axis] + start;
  return a.at(0, mapped, a.lanes);
}

// Selects the operand whose slot along `axis` contains the index; `slot(i)` is operand i's extent.
PrimExpr joined(A a, size_t axis, const std::vector<int64_t>& slots,
                const std::function<PrimExpr(size_t, const Index&, int, int64_t)>& read) {
  auto at = [&](const Index& index, int lanes) {
    PrimExpr out;
    int64_t start = 0;
    std::vector<int64_t> starts;
    for (int64_t s : slots) {
      starts.push_back(start);
      start += s;
    }
    for (size_t i = slots.size(); i-- > 0;) {
      if (slots[i] == 0) continue;
      PrimExpr here = read(i, index, lanes, starts[i]);
      out = out ? if_else(lt(index[axis], make_int(starts[i] + slots[i])), here, out) : here;
    }
    return out;
  };
  if (a.run && axis + 1 == a.index.size()) {
    // The vector lies inside one slot.
    int64_t start = 0;
    for (size_t i = 0; i < slots.size(); start += slots[i++])
      if (slots[i] > 0 && a.run->within(start, start + slots[i])) return read(i, a.index, a.lanes, start);
  }
  bool whole = axis + 1 != a.index.size() ||
               std::all_of(slots.begin(), slots.end(), [&](int64_t s) { return s % a.lanes == 0; });
  if (a.lanes == 1 || whole) return at(a.index, a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}
PrimExpr concatenate(A a) {
  size_t axis = axis_of(a.attrs<relay::ConcatenateAttrs>().axis, a.index.size());
  std::vector<int64_t> slots;
  for (size_t i = 0; i < a.operands.size(); ++i) slots.push_back(a.in_dim(i, axis));
  return joined(a, axis, slots, [&](size_t i, const Index& index, int lanes, int64_t start) {
    Index mapped = index;
    mapped[axis] = mapped[axis] - start;
    return a.at(i, mapped, lanes);
  });
}
PrimExpr stack(A a) {
  size_t axis = axis_of(a.attrs<relay::StackAttrs>().axis, a.index.size());
  return joined(a, axis, std::vector<int64_t>(a.operands.size(), 1),
                [&](size_t i, const Index& index, int lanes, int64_t) {
                  Index mapped = index;
                  mapped.erase(mapped.begin() + static_cast<std::ptrdiff_t>(axis));
                  if (axis + 1 == index.size()) return broadcast(a.at(i, mapped, 1), lanes);
                  return a.at(i, mapped, lanes);
                });
}

PrimExpr take(A a) {
  const auto& attrs = a.attrs<relay::TakeAttrs>();
  size_t index_rank = a.in_rank(1), data_rank = a.in_rank(0);
  auto at = [&](const Index& index, int lanes) -> PrimExpr {
    if (!attrs.axis) {
      auto shape = dims(*a.types[0]);
      int64_t total = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
      return a.at(0, unflatten_index(bounded_index(a.at(1, index, 1), total, attrs.mode), shape), 1);
    }
    size_t axis = axis_of(*attrs.axis, data_rank), batch = static_cast<size_t>(attrs.batch_dims);
    Index where(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(batch));
    where.insert(where.end(), index.begin() + static_cast<std::ptrdiff_t>(axis),
                 index.begin() + static_cast<std::ptrdiff_t>(axis + index_rank - batch));
    Index mapped(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(axis));
    mapped.push_back(bounded_index(a.at(1, where, 1), a.in_dim(0, axis), attrs.mode));
    mapped.insert(mapped.end(), index.begin() + static_cast<std::ptrdiff_t>(axis + index_rank - batch), index.end());
    return a.at(0, mapped, lanes);
  };
  bool keeps_last = attrs.axis && axis_of(*attrs.axis, data_rank) + 1 < data_rank;
  if (a.lanes == 1 || keeps_last) return at(a.index, a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}
PrimExpr gather(A a) {
  size_t axis = axis_of(a.attrs<relay::GatherAttrs>().axis, a.index.size());
  // Computes all lanes' indices as one vector; each lane then loads its own element.
  const PrimExpr places = make_var("places", kInt64.with_lanes(a.lanes));
  const PrimExpr values = a.by_numbered_lane([&](const Index& index, int lane) {
    Index mapped = index;
    mapped[axis] = a.lanes == 1 ? places : shuffle({places}, {lane});
    return a.at(0, mapped, 1);
  });
  return let(places, bounded_index(a.at(1, a.index, a.lanes), a.in_dim(0, axis)), values);
}

// Elements outside the data read as the pad value (constant mode) or repeat it (edge, reflect, wrap).
PrimExpr pad(A a) {
  const auto& attrs = a.attrs<relay::PadAttrs>();
  size_t rank = a.index.size();
  const auto fill = [&](int lanes) {
    return broadcast(a.operands.size() > 1 ? a.at(1, Index(a.in_rank(1), make_int(0)), 1) : make_const(a.out.dtype, 0),
                     lanes);
  };
  const int64_t last_before = attrs.pad_width[rank - 1][0], last_extent = a.in_dim(0, rank - 1);
  const bool within = a.run && a.run->within(last_before, last_before + last_extent);
  const bool low = a.run && a.run->last <= last_before, high = a.run && a.run->first >= last_before + last_extent;
  if (attrs.pad_mode == "constant" && (low || high)) return fill(a.lanes);
  auto at = [&](const Index& index, int lanes) {
    Index mapped;
    PrimExpr inside;
    for (size_t d = 0; d < rank; ++d) {
      int64_t before = attrs.pad_width[d][0], after = attrs.pad_width[d][1], extent = a.in_dim(0, d);
      PrimExpr i = index[d] - before;
      if (d + 1 == rank && within) {
        mapped.push_back(i);
        continue;
      }
      if (attrs.pad_mode == "edge") i = max(min(i, make_int(extent - 1)), make_int(0));
      if (attrs.pad_mode == "wrap") i = floormod(i, extent);
      if (attrs.pad_mode == "reflect") {
        i = select(lt(i, make_int(0)), make_int(0) - i, i);
        i = select(lt(make_int(extent - 1), i), make_int(2 * (extent - 1)) - i, i);
      }
      if (attrs.pad_mode == "constant" && (before != 0 || after != 0)) {
        PrimExpr ok = logical_and(le(make_int(0), i), lt(i, make_int(extent)));
        inside = inside ? logical_and(inside, ok) : ok;
      }
      mapped.push_back(i);
    }
    PrimExpr value = a.at(0, mapped, lanes);
    return inside ? if_else(inside, value, fill(lanes)) : value;
  };
  bool last_padded = attrs.pad_width[rank - 1][0] != 0 || attrs.pad_width[rank - 1][1] != 0;
  if (a.lanes == 1 || !last_padded || within) return at(a.index, a.lanes);
  if (attrs.pad_mode == "edge" && (low || high)) return broadcast(at(a.index, 1), a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}

PrimExpr tile(A a) {
  size_t extra = a.index.size() - a.in_rank(0);
  const int64_t last = a.in_rank(0) > 0 ? a.in_dim(0, a.in_rank(0) - 1) : 1;
  auto at = [&](const Index& index, int lanes) {
    Index mapped;
    for (size_t d = 0; d < a.in_rank(0); ++d)
      mapped.push_back(a.in_dim(0, d) == a.out_dim(d + extra) ? index[d + extra]
                                                              : floormod(index[d + extra], a.in_dim(0, d)));
    // The vector lies inside one copy.
    if (!mapped.empty() && a.run && a.run->within(a.run->first / last * last, a.run->first / last * last + last))
      mapped.back() = index.back() - a.run->first / last * last;
    return a.at(0, mapped, lanes);
  };
  if (last == 1 && a.lanes > 1) return broadcast(at(a.index, 1), a.lanes);
  if (a.run && a.run->within(a.run->first / last * last, a.run->first / last * last + last))
    return at(a.index, a.lanes);
  bool whole = a.in_rank(0) > 0 &&
               (a.in_dim(0, a.in_rank(0) - 1) == a.out_dim(a.index.size() - 1) ||
                (a.in_dim(0, a.in_rank(0) - 1) % a.lanes == 0 && a.out_dim(a.index.size() - 1) % a.lanes == 0));
  if (a.lanes == 1 || whole) return at(a.index, a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}
PrimExpr repeat(A a) {
  const auto& attrs = a.attrs<relay::RepeatAttrs>();
  size_t axis = axis_of(attrs.axis.value_or(0), a.index.size());
  return a.by_lane([&](const Index& index) {
    Index mapped = index;
    mapped[axis] = floordiv(mapped[axis], attrs.repeats);
    return a.at(0, mapped, 1);
  });
}
PrimExpr reverse(A a) {
  size_t axis = axis_of(a.attrs<relay::ReverseAttrs>().axis, a.index.size());
  auto at = [&](const Index& index, int lanes) {
    Index mapped = index;
    mapped[axis] = make_int(a.in_dim(0, axis) - 1) - mapped[axis];
    return a.at(0, mapped, lanes);
  };
  if (a.lanes == 1 || axis + 1 != a.index.size()) return at(a.index, a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}

PrimExpr reverse_sequence(A a) {
  const auto& attrs = a.attrs<relay::ReverseSequenceAttrs>();
  size_t seq = axis_of(attrs.seq_axis, a.index.size()), batch = axis_of(attrs.batch_axis, a.index.size());
  auto at = [&](const Index& index, int lanes) {
    PrimExpr n = max(min(cast(kInt64, a.at(1, {index[batch]}, 1)), make_int(a.in_dim(0, seq))), make_int(0));
    Index mapped = index;
    PrimExpr turned = select(lt(index[seq], n), n - 1 - index[seq], index[seq]);
    mapped[seq] = max(min(turned, make_int(a.in_dim(0, seq) - 1)), make_int(0));
    return a.at(0, mapped, lanes);
  };
  if (a.lanes == 1 || std::max(seq, batch) + 1 != a.index.size()) return at(a.index, a.lanes);
  return a.by_lane([&](const Index& index) { return at(index, 1); });
}

// NCHW <-> NCHW{v}c. Padding channels are zero in the blocked form and dropped on the way back. The logical index along
// each axis follows from the destination's axis and block; the source index follows from that.
PrimExpr layout_transform(A a) {
  const auto& attrs = a.attrs<relay::LayoutTransformAttrs>();
  const relay::Layout from = *relay::parse_layout(attrs.src_layout),
                      to = *relay::parse_layout(attrs.dst_layout);  // already parsed by type inference
  const relay::LogicalSizes logical = relay::logical_sizes(from, attrs.channels, attrs.in_channels);
  if (from.text == to.text && logical.sizes.empty()) return a.at(0, a.index, a.lanes);
  auto place = [](int axis) { return static_cast<size_t>(axis); };
  return a.by_lane([&](const Index& index) {
    Index source(from.rank());
    std::vector<PrimExpr> real;  // conditions: element is not padding
    for (const relay::Layout::Axis& axis : from.axes) {
      if (axis.factor > 0) continue;
      const char letter = axis.letter;
      const int at = from.find(letter), block_at = from.find_block(letter), out_at = to.find(letter),
                out_block_at = to.find_block(letter);
      const int64_t block = from.block(letter), out_block = to.block(letter);
      const PrimExpr& outer = index[place(out_at)];
      PrimExpr whole = out_block_at < 0 ? outer : outer * out_block + index[place(out_block_at)];
      if (block == out_block && block_at >= 0 && out_block_at >= 0)
        source[place(at)] = outer, source[place(block_at)] = index[place(out_block_at)];
      else if (block_at < 0)
        source[place(at)] = whole;
      else
        source[place(at)] = floordiv(whole, block), source[place(block_at)] = floormod(whole, block);
      const int64_t extent = logical.get(letter, a.in_dim(0, place(at)) * block);
      if (a.out_dim(place(out_at)) * out_block > extent) real.push_back(lt(whole, make_int(extent)));
    }
    PrimExpr value = a.at(0, source, 1);
    for (const PrimExpr& condition : real) value = if_else(condition, value, make_const(a.out.dtype, 0));
    return value;
  });
}

PrimExpr depth_to_space(A a) {
  const auto& attrs = a.attrs<relay::SubPixelAttrs>();
  int64_t block = attrs.block_size, channels = a.out_dim(1);
  return a.by_lane([&](const Index& index) {
    PrimExpr y = floormod(index[2], block), x = floormod(index[3], block);
    PrimExpr c =
        attrs.mode != "DCR" ? index[1] * (block * block) + y * block + x : (y * block + x) * channels + index[1];
    return a.at(0, {index[0], c, floordiv(index[2], block), floordiv(index[3], block)}, 1);
  });
}
PrimExpr space_to_depth(A a) {
  int64_t block = a.attrs<relay::SubPixelAttrs>().block_size, channels = a.in_dim(0, 1);
  return a.by_lane([&](const Index& index) {
    PrimExpr offset = floordiv(index[1], channels), c = floormod(index[1], channels);
    return a.at(
        0, {index[0], c, index[2] * block + floordiv(offset, block), index[3] * block + floormod(offset, block)}, 1);
  });
}

// Adds the cuts of one operator's result, and descends into operands that share its last dimension.
void add_cuts(const relay::Expr& e, const TensorTypeNode& out, std::vector<int64_t>* cuts) {
  const auto& call = *relay::as<relay::CallNode>(e);
  const std::string_view name = relay::called_op(e)->name;
  const size_t rank = out.shape.size();
  auto last_of = [](const relay::Expr& x) { return as_tensor(x->type)->shape.back().value(); };
  auto add = [&](int64_t cut) {
    if (cut > 0 && cut < out.shape.back().value()) cuts->push_back(cut);
  };
  if (name == "concatenate" && axis_of(attrs_as<relay::ConcatenateAttrs>(call.attrs)->axis, rank) + 1 == rank) {
    int64_t at = 0;
    if (const auto* parts = relay::as<relay::TupleNode>(call.args[0]))
      for (const relay::Expr& part : parts->fields) add(at += last_of(part));
  } else if (name == "nn.pad") {
    const auto& width = attrs_as<relay::PadAttrs>(call.attrs)->pad_width[rank - 1];
    if (width[0] >= 0 && width[1] >= 0 && last_of(call.args[0]) > 0)
      add(width[0]), add(width[0] + last_of(call.args[0]));
  } else if (name == "tile" && !as_tensor(call.args[0]->type)->shape.empty()) {
    const int64_t own = last_of(call.args[0]);
    if (own > 1 && out.shape.back().value() / own <= 8)
      for (int64_t at = own; at < out.shape.back().value(); at += own) add(at);
  }
}

constexpr ComputeDef kTransformComputes[] = {
    {"broadcast_to", broadcast_to},
    {"concatenate", concatenate},
    {"expand_dims", reshape},
    {"gather", gather},
    {"layout_transform", layout_transform},
    {"nn.batch_flatten", reshape},
    {"nn.depth_to_space", depth_to_space},
    {"nn.pad", pad},
    {"nn.space_to_depth", space_to_depth},
    {"repeat", repeat},
    {"reshape", reshape},
    {"reverse", reverse},
    {"reverse_sequence", reverse_sequence},
    {"split", split},
    {"squeeze", reshape},
    {"stack", stack},
    {"strided_slice", strided_slice},
    {"take", take},
    {"tile", tile},
    {"transpose", transpose},
};

}  // namespace

PrimExpr bounded_index(PrimExpr value, int64_t extent, std::string_view mode) {
  const int lanes = value->dtype.lanes;
  auto number = [&](int64_t n) { return broadcast(make_int(n), lanes); };
  PrimExpr i = cast(kInt64.with_lanes(lanes), std::move(value));
  if (mode == "wrap") return floormod(i, number(extent));
  if (mode == "fast") i = select(lt(i, number(0)), i + number(extent), i);
  return max(min(i, number(extent - 1)), number(0));
}

std::span<const ComputeDef> transform_computes() { return kTransformComputes; }

std::vector<int64_t> run_cuts(const relay::Expr& e, int output) {
  std::vector<int64_t> cuts;
  std::vector<const relay::ExprNode*> seen;
  std::function<void(const relay::Expr&)> visit = [&](const relay::Expr& x) {
    const auto* call = relay::as<relay::CallNode>(x);
    const auto* out = as_tensor(x->type);
    if (!call || !out || out->shape.empty() || !relay::called_op(x) ||
        std::find(seen.begin(), seen.end(), x.get()) != seen.end())
      return;
    seen.push_back(x.get());
    add_cuts(x, *out, &cuts);
    // Below an elementwise operator the indices stay the same.
    if (relay::called_op(x)->pattern > relay::OpPattern::kBroadcast) return;
    for (const relay::Expr& arg : call->args)
      if (const auto* in = as_tensor(arg->type); in && !in->shape.empty() && in->shape.back() == out->shape.back())
        visit(arg);
  };
  if (const auto* tuple = relay::as<relay::TupleNode>(e))
    visit(tuple->fields[static_cast<size_t>(output)]);
  else
    visit(e);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  constexpr size_t kMostCuts = 15;  // each range between cuts has its own code
  return cuts.size() > kMostCuts ? std::vector<int64_t>() : cuts;
}

}  // namespace tilewright::lower
