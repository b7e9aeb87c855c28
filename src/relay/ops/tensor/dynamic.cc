// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/tensor/dynamic.h"

#include "relay/interpreter.h"
#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/tensor/attrs_indexing.h"
#include "relay/ops/training/attrs_training.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

using Values = std::vector<Tensor>;  // of the deciding operands

struct Dynamic {
  const char* name = "";
  const char* static_name = "";
  const char* doc = "";
  size_t operands = 0;  // number of remaining operands
  size_t deciding = 0;  // number of deciding operands, which become attributes
  AttrsRef (*attrs)(const AttrsRef& own, const Values& values) = nullptr;
  // The result's rank while the deciding operands are unknown: that of data (plus one), the length of the first
  // deciding operand, the difference of the two, or the larger of them.
  enum Rank { kLikeData, kLikeDataPlusOne, kLength, kLessLength, kLongest } rank = kLikeData;
  AttrsRef (*make)() = nullptr;
  size_t first = SIZE_MAX;  // index of the first deciding operand, where they do not come last
  size_t typed_by = 0;      // the operand that gives the result's dtype
  bool numbers = false;     // deciding operands may be floats
  size_t begin() const { return first == SIZE_MAX ? operands : first; }
  bool decides(size_t i) const { return i >= begin() && i < begin() + deciding; }
};
std::vector<int64_t> ints(const Tensor& t) { return int_values(t); }
int64_t one_int(const Tensor& t) { return t.size() ? t.at_int(0) : 0; }
double one_double(const Tensor& t) { return t.size() ? t.at_double(0) : 0; }

AttrsRef reshape_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<ReshapeAttrs>([&](auto& a) {
    a = *attrs_as<ReshapeAttrs>(own);
    a.newshape = ints(v[0]);
  });
}
AttrsRef shape_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<InitOpAttrs>([&](auto& a) {
    a = *attrs_as<InitOpAttrs>(own);
    a.shape = ints(v[0]);
  });
}
AttrsRef tile_attrs(const AttrsRef&, const Values& v) {
  return make_attrs<TileAttrs>([&](auto& a) { a.reps = ints(v[0]); });
}
AttrsRef slice_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<StridedSliceAttrs>([&](auto& a) {
    a = *attrs_as<StridedSliceAttrs>(own);
    a.begin = ints(v[0]);
    a.end = ints(v[1]);
    a.strides = ints(v[2]);
  });
}
AttrsRef squeeze_attrs(const AttrsRef&, const Values& v) {
  return make_attrs<SqueezeAttrs>([&](auto& a) { a.axis = ints(v[0]); });
}
AttrsRef expand_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<ExpandDimsAttrs>([&](auto& a) {
    a = *attrs_as<ExpandDimsAttrs>(own);
    a.axis = one_int(v[0]);
  });
}
AttrsRef one_hot_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<OneHotAttrs>([&](auto& a) {
    a = *attrs_as<OneHotAttrs>(own);
    a.depth = one_int(v[0]);
  });
}

AttrsRef topk_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<TopKAttrs>([&](auto& a) {
    a = *attrs_as<TopKAttrs>(own);
    // Below one means all, as for the attribute.
    const int64_t k = one_int(v[0]);
    a.k = k < 1 ? std::nullopt : std::optional(k);
  });
}
AttrsRef dense_attrs(const AttrsRef&, const Values& v) {
  return make_attrs<SparseToDenseAttrs>([&](auto& a) { a.output_shape = ints(v[0]); });
}
AttrsRef pad_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<PadAttrs>([&](auto& a) {
    a = *attrs_as<PadAttrs>(own);
    a.pad_width.clear();
    const std::vector<int64_t> widths = ints(v[0]);
    for (size_t i = 0; i + 1 < widths.size(); i += 2) a.pad_width.push_back({widths[i], widths[i + 1]});
  });
}
AttrsRef upsampling_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<UpSamplingAttrs>([&](auto& a) {
    a = *attrs_as<UpSamplingAttrs>(own);
    a.scale_h = one_double(v[0]);
    a.scale_w = one_double(v[1]);
  });
}
AttrsRef upsampling3d_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<UpSampling3DAttrs>([&](auto& a) {
    a = *attrs_as<UpSampling3DAttrs>(own);
    a.scale_d = one_double(v[0]);
    a.scale_h = one_double(v[1]);
    a.scale_w = one_double(v[2]);
  });
}
AttrsRef resize_attrs(const AttrsRef& own, const Values& v) {
  return make_attrs<Resize2DAttrs>([&](auto& a) {
    a = *attrs_as<Resize2DAttrs>(own);
    a.size.clear();
    a.roi.clear();
    for (int64_t i = 0; i < v[0].size(); ++i)
      a.size.push_back(v[0].dtype().is_float() ? static_cast<int64_t>(v[0].at_double(i)) : v[0].at_int(i));
    for (int64_t i = 0; i < v[1].size(); ++i) a.roi.push_back(v[1].at_double(i));
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
    {"dyn.image.resize2d", "image.resize2d", "H and W of an image made size; roi is for tf_crop_and_resize.", 1, 2,
     resize_attrs, D::kLikeData, make_default_attrs<Resize2DAttrs>, 1, 0, true},
    {"dyn.nn.pad", "nn.pad", "pad_width[i] elements before and after axis i.", 2, 1, pad_attrs, D::kLikeData,
     make_default_attrs<PadAttrs>, 1},
    {"dyn.nn.upsampling", "nn.upsampling", "H and W times a scale each.", 1, 2, upsampling_attrs, D::kLikeData,
     make_default_attrs<UpSamplingAttrs>, 1, 0, true},
    {"dyn.nn.upsampling3d", "nn.upsampling3d", "D, H and W times a scale each.", 1, 3, upsampling3d_attrs, D::kLikeData,
     make_default_attrs<UpSampling3DAttrs>, 1, 0, true},
    {"dyn.ones", "ones", "A tensor of ones.", 0, 1, shape_attrs, D::kLength, make_default_attrs<InitOpAttrs>},
    {"dyn.reshape", "reshape", "The same elements under another shape.", 1, 1, reshape_attrs, D::kLength,
     make_default_attrs<ReshapeAttrs>},
    {"dyn.sparse_to_dense", "sparse_to_dense", "Values at places in a tensor of one default value.", 3, 1, dense_attrs,
     D::kLength, nullptr, 1, 2},
    {"dyn.squeeze", "squeeze", "Axes of size 1 removed.", 1, 1, squeeze_attrs, D::kLessLength, nullptr},
    {"dyn.strided_slice", "strided_slice", "begin:end:stride of the leading axes.", 1, 3, slice_attrs, D::kLikeData,
     make_default_attrs<StridedSliceAttrs>},
    {"dyn.tile", "tile", "The whole tensor repeated reps[i] times along each axis.", 1, 1, tile_attrs, D::kLongest,
     nullptr},
    {"dyn.topk", "topk", "The k largest (or smallest) elements of an axis, sorted.", 1, 1, topk_attrs, D::kLikeData,
     make_default_attrs<TopKAttrs>},
    {"dyn.zeros", "zeros", "A tensor of zeros.", 0, 1, shape_attrs, D::kLength, make_default_attrs<InitOpAttrs>},
};

const Dynamic* find_dynamic(const OpDef* op) {
  for (const Dynamic& d : kDynamic)
    if (op && std::string_view(op->name) == d.name) return &d;
  return nullptr;
}

// The remaining operands.
template <class T>
std::vector<T> staying(const Dynamic& d, std::span<const T> all) {
  std::vector<T> out;
  for (size_t i = 0; i < all.size(); ++i)
    if (!d.decides(i)) out.push_back(all[i]);
  return out;
}

template <size_t kRow>
Result<Type> dynamic_type(const TypeArgs& args) {
  constexpr const Dynamic& d = kDynamic[kRow];
  Values values;
  const bool pairs = std::string_view(d.name) == "dyn.nn.pad";
  for (size_t i = d.begin(); i < d.begin() + d.deciding; ++i) {
    const auto& t = args.tensor(i);
    const bool listed = t.shape.size() <= 1 || (pairs && t.shape.size() == 2 && t.shape[1] == Dim(2));
    if (!(t.dtype.is_integral() || (d.numbers && t.dtype.is_float())) || !listed)
      return type_error(
          format("operand {} is {}, not a list of {}", i, type_str(args.types[i]), d.numbers ? "numbers" : "integers"));
    if (const Tensor* data = constant_operand(args, i)) values.push_back(*data);
  }
  if (values.size() == d.deciding) {
    AttrsRef attrs = d.attrs(args.attrs, values);
    const auto types = staying(d, args.types);
    const auto operands = staying(d, args.args);
    return result_type(*find_op(d.static_name), TypeArgs{types, operands, attrs});
  }
  size_t rank = d.operands ? args.tensor(0).shape.size() : 0;
  const Shape& length = args.tensor(d.begin()).shape;
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
  DataType dtype = d.operands ? args.tensor(d.typed_by).dtype : kFloat32;
  if (const auto* init = attrs_as<InitOpAttrs>(args.attrs)) dtype = TW_TRY(dtype_or(init->dtype, dtype));
  if (const auto* hot = attrs_as<OneHotAttrs>(args.attrs)) dtype = hot->dtype;
  Shape shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(Dim::any());
  if (const auto* top = attrs_as<TopKAttrs>(args.attrs)) {
    Type places = tensor_type(shape, top->dtype);
    if (top->ret_type == "indices") return places;
    if (top->ret_type == "both") return tuple_type({tensor_type(shape, dtype), places});
  }
  return tensor_type(std::move(shape), dtype);
}

template <size_t kRow>
Result<std::vector<Value>> dynamic_eval(const EvalArgs& args) {
  constexpr const Dynamic& d = kDynamic[kRow];
  Values values;
  for (size_t i = d.begin(); i < d.begin() + d.deciding; ++i) values.push_back(to_tensor(args.inputs[i]));
  AttrsRef attrs = d.attrs(args.attrs, values);
  // The values decide the type; the graph may have known less.
  const std::vector<Value> inputs = staying(d, args.inputs);
  std::vector<Expr> operands;
  for (const Value& v : inputs) operands.push_back(make_var("", tensor_type(to_shape(v.shape), v.dtype)));
  const OpDef& op = *find_op(d.static_name);
  Type type = TW_TRY(infer_call_type(op, operands, attrs));
  return evaluate_op(op, inputs, std::vector<size_t>(d.operands, 0), attrs, type);
}

const char* operand_name(const Dynamic& d, size_t i) {
  const std::string_view name = d.name;
  static constexpr const char *kSlice[] = {"data", "begin", "end", "strides"},
                              *kHot[] = {"data", "on_value", "off_value", "values"},
                              *kResize[] = {"data", "size", "roi"}, *kPad[] = {"data", "pad_width", "pad_value"},
                              *kUp[] = {"data", "scale_h", "scale_w"},
                              *kUp3[] = {"data", "scale_d", "scale_h", "scale_w"},
                              *kDense[] = {"sparse_indices", "output_shape", "sparse_values", "default_value"},
                              *kTop[] = {"data", "k"}, *kPlain[] = {"data", "values"};
  if (name == "dyn.strided_slice") return kSlice[i];
  if (name == "dyn.one_hot") return kHot[i];
  if (name == "dyn.image.resize2d") return kResize[i];
  if (name == "dyn.nn.pad") return kPad[i];
  if (name == "dyn.nn.upsampling") return kUp[i];
  if (name == "dyn.nn.upsampling3d") return kUp3[i];
  if (name == "dyn.sparse_to_dense") return kDense[i];
  if (name == "dyn.topk") return kTop[i];
  return kPlain[d.operands ? i : 1];
}

template <size_t... kRows>
std::vector<OpDef> records(std::index_sequence<kRows...>) {
  std::vector<OpDef> out;
  auto add = [&](const Dynamic& d, Result<Type> (*type)(const TypeArgs&),
                 Result<std::vector<Value>> (*eval)(const EvalArgs&)) {
    std::vector<ArgDoc> operands;
    for (size_t i = 0; i < d.operands + d.deciding; ++i)
      operands.push_back({operand_name(d, i),
                          d.decides(i) ? "what the static operator has as an attribute" : "as the static operator's"});
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
  Values values;
  for (size_t i = d->begin(); i < d->begin() + d->deciding; ++i) {
    const auto* constant = as<ConstantNode>(call.args[i]);
    if (!constant || !(constant->data.dtype().is_integral() || (d->numbers && constant->data.dtype().is_float())))
      return std::nullopt;
    values.push_back(constant->data);
  }
  return StaticForm{find_op(d->static_name), staying(*d, std::span<const Expr>(call.args)),
                    d->attrs(call.attrs, values)};
}

void dynamic_facts(const FactsOf& facts) {
  for (const Dynamic& d : kDynamic) {
    OpFacts& op = facts(d.name);
    for (size_t i = d.begin(); i < d.begin() + d.deciding; ++i) op.deciding_operands |= 1u << i;
    if (facts(d.static_name).elements != Elements::kComputed) op.elements = Elements::kMoved;
  }
}

std::vector<OpDef> dynamic_ops() { return records(std::make_index_sequence<std::size(kDynamic)>()); }

}  // namespace tilewright::relay
