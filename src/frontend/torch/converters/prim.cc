// SPDX-License-Identifier: Apache-2.0
// What TorchScript computes with besides tensors and lists (list.cc): texts, None, dtypes, and numbers out of tensors
// and back. A list is one object for all its names: what changes it changes it for them all. Arithmetic on numbers
// comes as Python's operators (torch_script.py).
#include <algorithm>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace script {
namespace {

const Values& items_of(NodeContext& c, const Value& v) {
  if (!v.list) c.fail_type("its operand is not a list");
  return *v.list;
}

Value truth(bool b) {
  Tensor t = Tensor::zeros(kBool, {});
  t.set_int(0, b ? 1 : 0);
  return Value::number(relay::make_constant(std::move(t)));
}

// ---- equality, None

// Whether two values are equal; nothing when that is known only at run time.
std::optional<bool> same(const Value& a, const Value& b) {
  if (a.kind == Value::kDtype || b.kind == Value::kDtype) {
    const auto first = NodeContext::element_type(a), second = NodeContext::element_type(b);
    return first && second && *first == *second;
  }
  if (a.kind != b.kind) {
    const bool numbers = a.expr && b.expr;
    if (!numbers) return false;
  }
  switch (a.kind) {
    case Value::kNothing:
      return true;
    case Value::kText:
      return a.text == b.text;
    case Value::kOption:
      return a.text == b.text && a.option == b.option;
    case Value::kList: {
      if (a.list->size() != b.list->size()) return false;
      for (size_t i = 0; i < a.list->size(); ++i) {
        const std::optional<bool> each = same(a.list->at(i), b.list->at(i));
        if (!each || !*each) return each;
      }
      return true;
    }
    case Value::kTensor:
    case Value::kNumber: {
      const Tensor *x = NodeContext::known(a.expr), *y = NodeContext::known(b.expr);
      if (!x || !y || x->size() != 1 || y->size() != 1) return std::nullopt;
      if (x->dtype().is_float() || y->dtype().is_float()) return x->at_double(0) == y->at_double(0);
      return x->at_int(0) == y->at_int(0);
    }
    case Value::kDtype:
    case Value::kGrown:
    case Value::kGraph:
      break;
  }
  return std::nullopt;
}
bool equal_values(NodeContext& c) {
  const std::optional<bool> found = same(c.positional(0), c.positional(1));
  if (!found) c.unsupported("comparing lists whose numbers only a run has");
  return *found;
}
Values equal(NodeContext& c) { return {truth(equal_values(c))}; }
Values not_equal(NodeContext& c) { return {truth(!equal_values(c))}; }
bool is_nothing(const Value& v) { return v.kind == Value::kNothing; }
template <bool kSame>
Values identical(NodeContext& c) {
  const bool first = is_nothing(c.positional(0)), second = is_nothing(c.positional(1));
  if (first || second) return {truth((first && second) == kSame)};
  const Value &a = c.positional(0), &b = c.positional(1);
  if (a.kind == Value::kTensor && b.kind == Value::kTensor) return {truth((a.expr == b.expr) == kSame)};
  return {truth(equal_values(c) == kSame)};
}
Values contains(NodeContext& c) {
  const Value &list = c.positional(0), &item = c.positional(1);
  if (list.kind == Value::kText) return {truth(list.text.find(item.text) != std::string::npos)};
  Values open;  // what only a run can compare
  for (const Value& each : items_of(c, list)) {
    const std::optional<bool> found = same(each, item);
    if (!found && (!each.expr || !item.expr)) c.unsupported("looking for what only a run has");
    if (!found) open.push_back(each);
    if (found && *found) return {truth(true)};
  }
  if (open.empty()) return {truth(false)};
  Expr any;
  for (const Value& each : open) {
    if (!as_tensor(each.expr->type) || !as_tensor(item.expr->type))
      throw ConversionFailure{Diagnostic(ErrorCode::kFreeDimension, "its numbers are known in a run only")};
    const DataType dtype = c.dtype(each.expr).is_float() || c.dtype(item.expr).is_float() ? kFloat64 : kInt64;
    const Expr one = c.call("equal", {c.cast(each.expr, dtype), c.cast(item.expr, dtype)});
    any = any ? c.call("logical_or", {any, one}) : one;
  }
  return {Value::number(any)};
}

// Whether the value is of one of the types, which are named by their kinds in TorchScript.
Values is_instance(NodeContext& c) {
  const Value &v = c.positional(0), &types = c.positional(1);
  auto asked = [&](std::string_view kind) {
    return types.list &&
           std::any_of(types.list->begin(), types.list->end(), [&](const Value& t) { return t.text == kind; });
  };
  if (v.list) {
    const bool list = asked("AnyListType") || asked("ListType"), tuple = asked("AnyTupleType") || asked("TupleType");
    if (list != tuple) c.unsupported("a question whether a value is a list or a tuple");
    return {truth(list)};
  }
  if (v.kind == Value::kTensor) return {truth(asked("TensorType"))};
  if (v.kind == Value::kText) return {truth(asked("StringType"))};
  if (v.kind == Value::kNothing) return {truth(asked("NoneType"))};
  if (v.kind != Value::kNumber || !as_tensor(v.expr->type)) c.unsupported("a question for the type of this value");
  const DataType dtype = c.dtype(v.expr);
  return {truth(asked(dtype.is_float() ? "FloatType" : dtype.is_bool() ? "BoolType" : "IntType"))};
}

// ---- numbers

// A one-element tensor as a number, and the reverse.
Values number_as(NodeContext& c, DataType dtype) {
  const Value& v = c.positional(0);
  if (v.kind == Value::kText) c.unsupported("a number out of a text");
  if (!v.expr) c.fail_type("its operand is neither a tensor nor a number");
  Expr e = v.expr;
  if (c.rank(e) > 0) e = c.reshape(e, {});
  if (dtype.is_int() && c.dtype(e).is_float()) e = c.call("trunc", {e});
  return {Value::number(c.cast(e, dtype))};
}
Values as_integer(NodeContext& c) { return number_as(c, kInt64); }
Values as_real(NodeContext& c) { return number_as(c, kFloat64); }
Values as_truth(NodeContext& c) { return number_as(c, kBool); }
Values as_is(NodeContext& c) {
  const Value& v = c.positional(0);
  if (!v.expr) c.fail_type("its operand is neither a tensor nor a number");
  const DataType dtype = c.dtype(v.expr);
  return number_as(c, dtype.is_float() ? kFloat64 : dtype.is_bool() ? kBool : kInt64);
}
Values number_to_tensor(NodeContext& c) {
  const Value& v = c.positional(0);
  if (!v.expr) c.fail_type("its operand is not a number");
  const DataType dtype = c.dtype(v.expr);
  return {Value(c.cast(v.expr, dtype == kFloat64 ? kFloat32 : dtype))};
}
// A tensor from numbers, or from nested lists of them.
Expr gathered(NodeContext& c, const Value& v, DataType dtype) {
  if (!v.list) {
    if (!v.expr) c.fail_type("its data hold something that is no number");
    return c.cast(v.expr, dtype);
  }
  if (v.list->empty()) return c.zeros(dtype, {0});
  std::vector<Expr> rows;
  for (const Value& item : *v.list) rows.push_back(c.expand(gathered(c, item, dtype), 0));
  return c.concat(std::move(rows), 0);
}
// The dtype that PyTorch infers for a tensor of these numbers, from the first one.
DataType natural_dtype(NodeContext& c, const Value& v) {
  if (v.list) return v.list->empty() ? kFloat32 : natural_dtype(c, v.list->front());
  if (!v.expr) return kFloat32;
  const DataType dtype = c.dtype(v.expr);
  return dtype == kFloat64 && v.kind == Value::kNumber ? kFloat32 : dtype;
}
Values make_tensor(NodeContext& c) {
  const Value& data = c.positional(0);
  return {Value(gathered(c, data, c.dtype_arg("dtype", natural_dtype(c, data))))};
}
// Python's range: how many there are, and which one the n-th is.
Values range_length(NodeContext& c) {
  const Expr first = c.cast(c.positional(0).expr, kInt64), end = c.cast(c.positional(1).expr, kInt64);
  const int64_t step = c.integer_of(c.positional(2), "step");
  if (step == 0) c.fail("its step is 0");
  const Expr apart = step > 0 ? c.sub(end, first) : c.sub(first, end), stride = c.scalar(std::abs(step), kInt64);
  const Expr count = c.call("floor_divide", {c.add(apart, c.sub(stride, c.scalar(1, kInt64))), stride});
  return {Value::number(c.call("maximum", {count, c.scalar(0, kInt64)}))};
}
Values range_item(NodeContext& c) {
  const Expr at = c.cast(c.positional(0).expr, kInt64), first = c.cast(c.positional(1).expr, kInt64);
  return {Value::number(c.add(first, c.mul(at, c.cast(c.positional(2).expr, kInt64))))};
}
template <const char* kOp>
Values extreme_of_list(NodeContext& c) {
  const Values& items = items_of(c, c.positional(0));
  if (items.empty()) c.fail("its list is empty");
  Expr out;
  for (const Value& item : items) {
    if (!item.expr) c.fail_type("its list holds something that is no number");
    out = out ? c.call(kOp, {out, c.cast(item.expr, c.dtype(out))}) : item.expr;
  }
  return {Value::number(out)};
}
constexpr char kMost[] = "maximum", kLeast[] = "minimum";
Values sum_of_list(NodeContext& c) {
  Expr out = c.scalar(0, kInt64);
  for (const Value& item : items_of(c, c.positional(0))) {
    if (!item.expr) c.fail_type("its list holds something that is no number");
    const DataType dtype = c.dtype(item.expr).is_float() || c.dtype(out).is_float() ? kFloat64 : kInt64;
    out = c.add(c.cast(out, dtype), c.cast(item.expr, dtype));
  }
  return {Value::number(out)};
}
template <bool kAll>
Values truth_of_list(NodeContext& c) {
  Expr out = truth(kAll).expr;
  for (const Value& item : items_of(c, c.positional(0))) {
    if (!item.expr) c.fail_type("its list holds something that is no number");
    out = c.call(kAll ? "logical_and" : "logical_or", {out, c.cast(item.expr, kBool)});
  }
  return {Value::number(out)};
}

// ---- queries about a tensor

Expr looked_at(NodeContext& c) {
  const Value& v = c.positional(0);
  if (!v.expr) c.fail_type("its operand is not a tensor");
  return v.expr;
}
Values dtype_of(NodeContext& c) { return {Value::of_dtype(c.dtype(looked_at(c)))}; }
Values device_of(NodeContext&) {
  Value v;
  v.kind = Value::kOption;
  v.text = "cpu";
  return {v};
}
// Of a device: there is one.
Values kind_of_device(NodeContext&) { return {Value::of_text("cpu")}; }
Values number_of_device(NodeContext&) { return {Value()}; }
Values layout_of(NodeContext&) { return {whole(0)}; }  // strided, as TorchScript numbers layouts
Values shape_of(NodeContext& c) {
  Values out;
  for (int64_t d : c.dims(looked_at(c))) out.push_back(whole(d));
  return {Value::of_list(std::move(out))};
}
Values shape_tensor(NodeContext& c) { return {Value(c.ints_constant(c.dims(looked_at(c))))}; }
Values axis_count(NodeContext& c) {
  const Expr e = looked_at(c);
  return {whole(c.rank(e) - (c.positional(0).packed ? 1 : 0))};
}
Values is_real(NodeContext& c) { return {truth(c.dtype(looked_at(c)).is_float())}; }
Values never(NodeContext&) { return {truth(false)}; }
Values always(NodeContext&) { return {truth(true)}; }
Values itself(NodeContext& c) { return {c.positional(0)}; }
Values itself_not_none(NodeContext& c) {
  if (is_nothing(c.positional(0))) c.fail("its operand is None");
  return {c.positional(0)};
}
// A variable that has no value yet, or the result of a branch that raises.
Values unset(NodeContext&) {
  Value v;
  v.text = "uninitialized";
  return {v};
}

// ---- strings

std::string text_of(NodeContext& c, const Value& v) {
  switch (v.kind) {
    case Value::kText:
    case Value::kOption:
      return v.text;
    case Value::kDtype:
      return v.dtype.str();
    case Value::kNothing:
      return "None";
    case Value::kList: {
      std::string out = "[";
      for (const Value& item : *v.list) out += (out.size() > 1 ? ", " : "") + text_of(c, item);
      return out + "]";
    }
    case Value::kTensor:
    case Value::kNumber:
    case Value::kGrown:
    case Value::kGraph:
      break;
  }
  const Tensor* t = v.expr ? NodeContext::known(v.expr) : nullptr;
  if (!t || t->size() != 1) return "a tensor";
  if (t->dtype().is_bool()) return t->at_int(0) != 0 ? "True" : "False";
  return t->dtype().is_float() ? format("{}", t->at_double(0)) : format("{}", t->at_int(0));
}
Values formatted(NodeContext& c) {
  const std::string pattern = c.positional(0).text;
  std::string out;
  size_t next = 1;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, "{}") == 0 && next < c.argument_count()) {
      out += text_of(c, c.positional(next++));
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return {Value::of_text(out)};
}
Values as_text(NodeContext& c) { return {Value::of_text(text_of(c, c.positional(0)))}; }
// The import reached a raise without a run-time condition in front of it: the script always fails here.
Values raise(NodeContext& c) {
  const std::string message = c.argument_count() > 0 ? text_of(c, c.positional(0)) : "";
  c.fail(format("for inputs of these shapes the model itself raises an error: {}", message));
}
Values nothing(NodeContext&) { return {}; }

constexpr ConverterEntry kScriptConverters[] = {
    {"aten.__range_length", range_length},
    {"aten.__derive_index", range_item},
    {"aten.eq.int_list", equal},
    {"aten.eq.float_list", equal},
    {"aten.eq.bool_list", equal},
    {"aten.eq.str_list", equal},
    {"aten.eq.str", equal},
    {"aten.eq.device", equal},
    {"aten.eq.enum", equal},
    {"aten.ne.int_list", not_equal},
    {"aten.ne.float_list", not_equal},
    {"aten.ne.bool_list", not_equal},
    {"aten.ne.str_list", not_equal},
    {"aten.ne.str", not_equal},
    {"aten.ne.device", not_equal},
    {"aten.ne.enum", not_equal},
    {"aten.__is__", identical<true>},
    {"aten.__isnot__", identical<false>},
    {"aten.__contains__", contains},
    {"aten.Int", as_integer},
    {"aten.IntImplicit", as_integer},
    {"aten.Float", as_real},
    {"aten.FloatImplicit", as_real},
    {"aten.Bool", as_truth},
    {"aten.ScalarImplicit", as_is},
    {"prim.ImplicitTensorToNum", as_is},
    {"prim.NumToTensor", number_to_tensor},
    {"aten.tensor", make_tensor},
    {"aten.as_tensor", make_tensor},
    {"prim.max.self_int", extreme_of_list<kMost>},
    {"prim.max.self_float", extreme_of_list<kMost>},
    {"prim.min.self_int", extreme_of_list<kLeast>},
    {"prim.min.self_float", extreme_of_list<kLeast>},
    {"aten.sum.int", sum_of_list},
    {"aten.sum.float", sum_of_list},
    {"aten.all.int", truth_of_list<true>},
    {"aten.all.bool", truth_of_list<true>},
    {"aten.any.int", truth_of_list<false>},
    {"aten.any.bool", truth_of_list<false>},
    {"prim.dtype", dtype_of},
    {"prim.device", device_of},
    {"prim.type", kind_of_device},
    {"prim.index", number_of_device},
    {"aten.device", device_of},
    {"prim.layout", layout_of},
    {"prim.shape", shape_of},
    {"aten.dim", axis_count},
    {"aten._shape_as_tensor", shape_tensor},
    {"aten.is_floating_point", is_real},
    {"prim.isinstance", is_instance},
    {"aten.is_complex", never},
    {"aten.is_contiguous", always},
    {"prim.is_cuda", never},
    {"prim.is_cpu", always},
    {"prim.is_sparse", never},
    {"prim.is_quantized", never},
    {"prim.is_nested", never},
    {"prim.is_mkldnn", never},
    {"prim.is_meta", never},
    {"prim.is_mps", never},
    {"prim.is_vulkan", never},
    {"prim.requires_grad", never},
    {"aten.requires_grad_", itself},
    {"aten.is_scripting", always},
    {"aten.is_autocast_enabled", never},
    {"aten.is_autocast_cpu_enabled", never},
    {"aten.is_grad_enabled", never},
    {"prim.data", itself},
    {"prim.unchecked_cast", itself},
    {"prim.unchecked_unwrap_optional", itself},
    {"aten._unwrap_optional", itself_not_none},
    {"prim.annotate", itself},
    {"prim.Uninitialized", unset},
    {"aten.format", formatted},
    {"aten.str", as_text},
    {"prim.RaiseException", raise},
    {"aten.warn", nothing},
};

}  // namespace
}  // namespace script

std::span<const ConverterEntry> prim_converters() { return script::kScriptConverters; }

}  // namespace tilewright::torch
