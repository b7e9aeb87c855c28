// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: operators that look values up by keys. Keys may be texts, which compiled code never handles: like the
// operators on texts, these compute on known values. A map is a sequence of two vectors, its keys and its values.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/format.h"
#include "frontend/onnx/converters/ml.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Texts = std::vector<std::string>;

// A key of any kind as text; the two zeros are one key.
std::string key_text(const Tensor& t, int64_t i) {
  return t.dtype().is_string()  ? t.string_values()[static_cast<size_t>(i)]
         : t.dtype().is_float() ? format("{}", t.at_double(i) + 0.0)
                                : format("{}", t.at_int(i));
}

// Tensors of text, integers or floats, made element by element.
class Elements {
 public:
  Elements(DataType dtype, Ints shape) : shape_(std::move(shape)) {
    if (!dtype.is_string()) numbers_ = Tensor::zeros(dtype, shape_);
  }
  // Element `to` becomes element `from` of t, which has the same dtype.
  void copy(int64_t to, const Tensor& t, int64_t from) {
    if (!numbers_) {
      texts_.resize(std::max(texts_.size(), static_cast<size_t>(to) + 1));
      texts_[static_cast<size_t>(to)] = t.string_values()[static_cast<size_t>(from)];
    } else if (numbers_->dtype().is_float()) {
      numbers_->set_double(to, t.at_double(from));
    } else {
      numbers_->set_int(to, t.at_int(from));
    }
  }
  Tensor made() { return numbers_ ? *numbers_ : Tensor::strings(shape_, std::move(texts_)); }

 private:
  Ints shape_;
  std::optional<Tensor> numbers_;
  Texts texts_;
};

Tensor text_scalar(std::string s) { return Tensor::strings({}, {std::move(s)}); }

// Each element of x as the value of the key that it equals.
Values looked_up(NodeContext& c, const Tensor& x, const Tensor& keys, const Tensor& values, const Tensor& otherwise) {
  if (keys.size() != values.size() || keys.dtype().is_string() != x.dtype().is_string())
    c.fail_type(format("it maps {} {} to {} {}", keys.size(), keys.dtype().str(), values.size(), values.dtype().str()));
  std::map<std::string, int64_t> places;
  for (int64_t i = 0; i < keys.size(); ++i) places.emplace(key_text(keys, i), i);
  Elements out(values.dtype(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    auto found = places.find(key_text(x, i));
    if (found != places.end())
      out.copy(i, values, found->second);
    else
      out.copy(i, otherwise, 0);
  }
  return {c.constant_of(out.made())};
}

Tensor texts_attr(NodeContext& c, const std::string& name) {
  Texts v = c.strings_attr(name);
  const auto n = static_cast<int64_t>(v.size());
  return Tensor::strings({n}, std::move(v));
}
Tensor integers_attr(NodeContext& c, const std::string& name) {
  const Ints v = c.ints_attr(name);
  return Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(v.size())}, v);
}

// Maps keys to values, with a default; either side is strings, integers or floats.
Values label_encoder(NodeContext& c) {
  const Tensor x = c.constant(0, "input");
  auto list = [&](const std::string& side) -> Tensor {
    if (c.has_attr(side + "_strings")) return texts_attr(c, side + "_strings");
    if (c.has_attr(side + "_int64s")) return integers_attr(c, side + "_int64s");
    if (c.has_attr(side + "_floats")) {
      const std::vector<double> v = c.floats_attr(side + "_floats");
      Tensor t(kFloat32, {static_cast<int64_t>(v.size())});
      for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, v[static_cast<size_t>(i)]);
      return t;
    }
    const Attribute* a = c.attr(side + "_tensor", AttributeKind::kTensor);
    if (!a) c.fail(format("it has no {}", side));
    return a->tensors.at(0);
  };
  const Tensor values = list("values");
  auto otherwise = [&]() -> Tensor {
    if (const Attribute* a = c.attr("default_tensor", AttributeKind::kTensor)) return a->tensors.at(0);
    if (values.dtype().is_string()) return text_scalar(c.string_attr("default_string", "_Unused"));
    Tensor one = Tensor::zeros(values.dtype(), {});
    if (values.dtype().is_float())
      one.set_double(0, c.float_attr("default_float", -0.0));
    else
      one.set_int(0, c.int_attr("default_int64", -1));
    return one;
  };
  return looked_up(c, x, list("keys"), values, otherwise());
}

// Texts become the numbers of their categories, numbers the texts.
Values category_mapper(NodeContext& c) {
  const Tensor x = c.constant(0, "input"), numbers = integers_attr(c, "cats_int64s"),
               names = texts_attr(c, "cats_strings");
  if (x.dtype().is_string())
    return looked_up(c, x, names, numbers, Tensor::scalar<int64_t>(kInt64, c.int_attr("default_int64", -1)));
  return looked_up(c, x, numbers, names, text_scalar(c.string_attr("default_string", "_Unused")));
}

// An input that is a map: its keys and its values.
std::pair<Tensor, Tensor> map_input(NodeContext& c) {
  const Value& v = c.value(0);
  const auto parts = v.sequence ? *v.sequence : Values();
  if (parts.size() != 2) c.fail_type("its input is no map");
  std::pair<Tensor, Tensor> out = {c.constant(parts[0].expr, "keys"), c.constant(parts[1].expr, "values")};
  if (out.first.shape() != out.second.shape() || out.first.rank() != 1)
    c.fail_type(
        format("its map has keys of {} and values of {}", shape_str(out.first.shape()), shape_str(out.second.shape())));
  return out;
}

// The values of a map in the order of a vocabulary; what the map lacks is 0 or an empty text.
Values dict_vectorizer(NodeContext& c) {
  const auto [keys, values] = map_input(c);
  const bool of_text = c.has_attr("string_vocabulary");
  const Tensor vocabulary = of_text ? texts_attr(c, "string_vocabulary") : integers_attr(c, "int64_vocabulary");
  if (keys.dtype().is_string() != of_text) c.fail_type(format("its map has keys of {}", keys.dtype().str()));
  const Tensor nothing = values.dtype().is_string() ? text_scalar("") : Tensor::zeros(values.dtype(), {});
  const Values row = looked_up(c, vocabulary, keys, values, nothing);
  Tensor out = c.constant(row.at(0).expr, "row");
  return {c.constant_of(out.reshaped({1, out.size()}))};
}

// The values of a map in another dtype. As onnxruntime does, numbers are written with six digits behind the point, and
// what follows a number in a text is not looked at.
Tensor map_values_as(NodeContext& c, const Tensor& values, DataType dtype) {
  if (values.dtype() == dtype) return values;
  const bool of_text = values.dtype().is_string();
  Texts texts;
  Tensor numbers = dtype.is_string() ? Tensor() : Tensor::zeros(dtype, values.shape());
  for (int64_t i = 0; i < values.size(); ++i) {
    if (dtype.is_string()) {
      texts.push_back(std::to_string(values.at_double(i)));
      continue;
    }
    double v = of_text ? 0 : values.at_double(i);
    if (of_text) {
      const std::string& text = values.string_values()[static_cast<size_t>(i)];
      char* end = nullptr;
      v = std::strtod(text.c_str(), &end);
      if (end == text.c_str()) c.fail(format("its map has the value '{}', which is no number", text));
    }
    if (dtype.is_float())
      numbers.set_double(i, v);
    else
      numbers.set_int(i, std::isfinite(v) && std::abs(v) < 0x1p63 ? static_cast<int64_t>(v) : INT64_MIN);
  }
  return dtype.is_string() ? Tensor::strings(values.shape(), std::move(texts)) : numbers;
}

constexpr int64_t kLongestSparseMap = int64_t{1} << 28;

// The values of a map in the order of its keys (DENSE), or each at the place of its key (SPARSE), as one row.
Values cast_map(NodeContext& c) {
  const auto [keys, values] = map_input(c);
  if (keys.dtype() != kInt64) c.fail_type(format("its map has keys of {}", keys.dtype().str()));
  const std::string to = c.string_attr("cast_to", "TO_FLOAT"), form = c.string_attr("map_form", "DENSE");
  const DataType dtype = to == "TO_FLOAT" ? kFloat32 : to == "TO_INT64" ? kInt64 : kString;
  if (dtype == kString && to != "TO_STRING") c.fail(format("its cast_to '{}' is unknown", to));
  if (form != "DENSE" && form != "SPARSE") c.fail(format("its map_form '{}' is unknown", form));
  std::map<int64_t, int64_t> places;
  for (int64_t i = 0; i < keys.size(); ++i) places.emplace(keys.at_int(i), i);
  const bool sparse = form == "SPARSE";
  const int64_t width = sparse ? c.int_attr("max_map", 1) : static_cast<int64_t>(places.size());
  if (width < 0 || width > kLongestSparseMap) c.fail(format("its max_map is {}", width));
  if (sparse && !places.empty() && places.begin()->first < 0) c.fail("its map has a key below 0");
  const Tensor cast = map_values_as(c, values, dtype);
  const Tensor nothing = dtype == kString ? text_scalar("0.f") : Tensor::zeros(dtype, {});
  Elements out(dtype, {1, width});
  for (int64_t i = 0; i < width && sparse; ++i) out.copy(i, nothing, 0);
  int64_t next = 0;
  for (const auto& [key, place] : places)
    if (!sparse || key < width) out.copy(sparse ? key : next++, cast, place);
  return {c.constant_of(out.made())};
}

constexpr ConverterEntry kMlMapsConverters[] = {
    {"LabelEncoder", 2, label_encoder, kMlDomain},
    {"CategoryMapper", 1, category_mapper, kMlDomain},
    {"DictVectorizer", 1, dict_vectorizer, kMlDomain},
    {"CastMap", 1, cast_map, kMlDomain},
};

}  // namespace

std::span<const ConverterEntry> ml_maps_converters() { return kMlMapsConverters; }

}  // namespace tilewright::onnx
