// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/dynamic.h"

#include "relay/interpreter.h"
#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

struct Dynamic {
  const char* name;
  const char* static_name;
  const char* doc;
  size_t operands;  // that stay
  size_t deciding;  // that become attributes
  AttrsRef (*attrs)(const AttrsRef& own, const Lists& values);
  // The result's rank while the deciding operands are unknown: that of data (and what is added to it), the length of
  // the first deciding operand, the difference of the two, or the larger.
  enum Rank { kLikeData, kLikeDataPlusOne, kLength, kLessLength, kLongest } rank;
  AttrsRef (*make)();
};

AttrsRef reshape_attrs(const AttrsRef& own, const Lists& v) {
  return make_attrs<ReshapeAttrs>([&](auto& a) {
    a = *attrs_as<ReshapeAttrs>(own);
    a.newshape = v[0];
  });
}
AttrsRef shape_attrs(const AttrsRef& own, const Lists& v) {
  return make_attrs<InitOpAttrs>([&](auto& a) {
    a = *attrs_as<InitOpAttrs>(own);
    a.shape = v[0];
  });
}
AttrsRef tile_attrs(const AttrsRef&, const Lists& v) {
  return make_attrs<TileAttrs>([&](auto& a) { a.reps = v[0]; });
}
AttrsRef slice_attrs(const AttrsRef& own, const Lists& v) {
  return make_attrs<StridedSliceAttrs>([&](auto& a) {
    a = *attrs_as<StridedSliceAttrs>(own);
    a.begin = v[0];
    a.end = v[1];
    a.strides = v[2];
  });
}
AttrsRef squeeze_attrs(const AttrsRef&, const Lists& v) {
  return make_attrs<SqueezeAttrs>([&](auto& a) { a.axis = v[0]; });
}
AttrsRef expand_attrs(const AttrsRef& own, const Lists& v) {
  return make_attrs<ExpandDimsAttrs>([&](auto& a) {
    a = *attrs_as<ExpandDimsAttrs>(own);
    a.axis = v[0].empty() ? 0 : v[0][0];
  });
}
AttrsRef one_hot_attrs(const AttrsRef& own, const Lists& v) {
  return make_attrs<OneHotAttrs>([&](auto& a) {
    a = *attrs_as<OneHotAttrs>(own);
    a.depth = v[0].empty() ? 0 : v[0][0];
  });
}

using D = Dynamic;
constexpr Dynamic kDynamic[] = {
    {"dyn.broadcast_to", "broadcast_to", "Axes of size 1 repeated to a shape.", 1, 1, shape_attrs, D::kLength,
     make_default_attrs<InitOpAttrs>},
    {"dyn.expand_dims", "expand_dims", "num_newaxis axes of size 1 inserted at axis.", 1, 1, expand_attrs,
     D::kLikeDataPlusOne, make_default_attrs<ExpandDimsAttrs>},
    {"dyn.full", "full", "A tensor of one value.", 1, 1, shape_attrs, D::kLength, make_default_attrs<InitOpAttrs>},
    {"dyn.one_hot", "one_hot", "on_value where the new axis equals the index, else off_value.", 3, 1, one_hot_attrs,
     D::kLikeDataPlusOne, make_default_attrs<OneHotAttrs>},
    {"dyn.ones", "ones", "A tensor of ones.", 0, 1, shape_attrs, D::kLength, make_default_attrs<InitOpAttrs>},
    {"dyn.reshape", "reshape", "The same elements under another shape.", 1, 1, reshape_attrs, D::kLength,
     make_default_attrs<ReshapeAttrs>},
    {"dyn.squeeze", "squeeze", "Axes of size 1 removed.", 1, 1, squeeze_attrs, D::kLessLength, nullptr},
    {"dyn.strided_slice", "strided_slice", "begin:end:stride of the leading axes.", 1, 3, slice_attrs, D::kLikeData,
     make_default_attrs<StridedSliceAttrs>},
    {"dyn.tile", "tile", "The whole tensor repeated reps[i] times along each axis.", 1, 1, tile_attrs, D::kLongest,
     nullptr},
    {"dyn.zeros", "zeros", "A tensor of zeros.", 0, 1, shape_attrs, D::kLength, make_default_attrs<InitOpAttrs>},
};

const Dynamic* find_dynamic(const OpDef* op) {
  for (const Dynamic& d : kDynamic)
    if (op && std::string_view(op->name) == d.name) return &d;
  return nullptr;
}

// An optional attribute struct: rows without one make none.
AttrsRef static_attrs(const Dynamic& d, const AttrsRef& own, const Lists& values) { return d.attrs(own, values); }

template <size_t kRow>
Result<Type> dynamic_type(const TypeArgs& args) {
  constexpr const Dynamic& d = kDynamic[kRow];
  Lists values;
  for (size_t i = d.operands; i < d.operands + d.deciding; ++i) {
    const auto& t = args.tensor(i);
    if (!t.dtype.is_integral() || t.shape.size() > 1)
      return type_error(format("operand {} is {}, not a list of integers", i, type_str(args.types[i])));
    if (const Tensor* data = constant_operand(args, i)) values.push_back(int_values(*data));
  }
  if (values.size() == d.deciding) {
    AttrsRef attrs = static_attrs(d, args.attrs, values);
    return result_type(*find_op(d.static_name),
                       TypeArgs{args.types.first(d.operands), args.args.first(d.operands), attrs});
  }
  size_t rank = d.operands ? args.tensor(0).shape.size() : 0;
  const Shape& length = args.tensor(d.operands).shape;
  const bool known = length.size() == 1 && length[0].is_const() && length[0].value() <= 64;
  if (d.rank == Dynamic::kLength || d.rank == Dynamic::kLessLength || d.rank == Dynamic::kLongest) {
    if (!known) return type_error("the number of dimensions is not known: the shape operand's length is not constant");
    size_t count = static_cast<size_t>(length[0].value());
    if (d.rank == Dynamic::kLessLength && count > rank) return type_error("more axes are squeezed than there are");
    rank = d.rank == Dynamic::kLength ? count : d.rank == Dynamic::kLessLength ? rank - count : std::max(rank, count);
  }
  if (d.rank == Dynamic::kLikeDataPlusOne) {
    const auto* expand = attrs_as<ExpandDimsAttrs>(args.attrs);
    int64_t added = expand ? expand->num_newaxis : 1;
    if (added < 0 || added > 64) return type_error(format("num_newaxis is {}", added));
    rank += static_cast<size_t>(added);
  }
  DataType dtype = d.operands ? args.tensor(0).dtype : kFloat32;
  if (const auto* init = attrs_as<InitOpAttrs>(args.attrs)) dtype = TW_TRY(dtype_or(init->dtype, dtype));
  if (const auto* hot = attrs_as<OneHotAttrs>(args.attrs)) dtype = hot->dtype;
  Shape shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(Dim::any());
  return tensor_type(std::move(shape), dtype);
}

template <size_t kRow>
Result<std::vector<Value>> dynamic_eval(const EvalArgs& args) {
  constexpr const Dynamic& d = kDynamic[kRow];
  Lists values;
  for (size_t i = d.operands; i < d.operands + d.deciding; ++i) values.push_back(args.inputs[i].i);
  AttrsRef attrs = static_attrs(d, args.attrs, values);
  // The values decide the type; what the graph knew of it may be less.
  std::vector<Expr> operands;
  for (size_t i = 0; i < d.operands; ++i)
    operands.push_back(make_var("", tensor_type(to_shape(args.inputs[i].shape), args.inputs[i].dtype)));
  const OpDef& op = *find_op(d.static_name);
  Type type = TW_TRY(infer_call_type(op, operands, attrs));
  if (type->kind == TypeKind::kIncomplete || !static_shape(as_tensor(type)->shape))
    return eval_error("its result has no known size");
  const std::vector<size_t> plain(d.operands, 0);
  return evaluate_op(op, args.inputs.first(d.operands), plain, attrs, type);
}

template <size_t... kRows>
std::vector<OpDef> records(std::index_sequence<kRows...>) {
  std::vector<OpDef> out;
  auto add = [&](const Dynamic& d, Result<Type> (*type)(const TypeArgs&),
                 Result<std::vector<Value>> (*eval)(const EvalArgs&)) {
    static constexpr const char* kNames[] = {"data", "on_value", "off_value"};
    std::vector<ArgDoc> operands;
    for (size_t i = 0; i < d.operands; ++i) operands.push_back({kNames[i], "as the static operator's"});
    static constexpr const char* kDeciding[] = {"begin", "end", "strides"};
    for (size_t i = 0; i < d.deciding; ++i)
      operands.push_back(
          {d.deciding == 1 ? "values" : kDeciding[i], "integers that the static operator has as an attribute"});
    out.push_back(define_op(d.name, d.doc, std::move(operands), OpPattern::kOpaque, type, eval, d.make));
  };
  (add(kDynamic[kRows], dynamic_type<kRows>, dynamic_eval<kRows>), ...);
  return out;
}

}  // namespace

std::optional<StaticForm> static_form(const Expr& e) {
  const Dynamic* d = find_dynamic(called_op(e));
  if (!d) return std::nullopt;
  const auto& call = *as<CallNode>(e);
  Lists values;
  for (size_t i = d->operands; i < call.args.size(); ++i) {
    const auto* constant = as<ConstantNode>(call.args[i]);
    if (!constant || !constant->data.dtype().is_integral()) return std::nullopt;
    values.push_back(int_values(constant->data));
  }
  return StaticForm{find_op(d->static_name), d->operands, d->attrs(call.attrs, values)};
}

std::vector<OpDef> dynamic_ops() { return records(std::make_index_sequence<std::size(kDynamic)>()); }

}  // namespace tilewright::relay
