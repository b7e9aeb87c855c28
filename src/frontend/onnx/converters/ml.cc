// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: linear models and feature preprocessing.
#include "frontend/onnx/converters/ml.h"

#include <cmath>
#include <limits>

#include "base/format.h"
#include "frontend/onnx/converters/linear.h"
#include "frontend/onnx/importer.h"

namespace tilewright::onnx {

PostTransform post_transform_of(NodeContext& c) {
  const std::string name = c.string_attr("post_transform", "NONE");
  if (name == "NONE") return PostTransform::kNone;
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  c.fail(format("its post_transform '{}' is unknown", name));
}

namespace {

// The probit function (quantile of the normal distribution): sqrt(2) erfinv(2x - 1), with Winitzki's approximation of
// erfinv and its parameter 0.147.
Expr probit(NodeContext& c, const Expr& x) {
  auto number = [&](double v) { return c.scalar_like(v, x); };
  const Expr y = c.sub(c.mul(x, number(2)), number(1));
  const Expr log = c.call("log", {c.mul(c.sub(number(1), y), c.add(number(1), y))});
  const Expr a = c.add(c.mul(log, number(0.5)), number(2 / (M_PI * 0.147)));
  const Expr root = c.call("sqrt", {c.sub(c.mul(a, a), c.mul(log, number(1 / 0.147)))});
  return c.mul(c.mul(c.call("sqrt", {c.sub(root, a)}), c.call("sign", {y})), number(std::sqrt(2.0)));
}

Expr softmax_of_scores(NodeContext& c, const Expr& x) {
  return c.call("nn.softmax", {x}, make_attrs<relay::SoftmaxAttrs>([](auto& a) { a.axis = -1; }));
}

}  // namespace

Expr post_transformed(NodeContext& c, const Expr& scores, PostTransform transform) {
  switch (transform) {
    case PostTransform::kNone:
      return scores;
    case PostTransform::kSoftmax:
      return softmax_of_scores(c, scores);
    case PostTransform::kLogistic:
      return c.call("sigmoid", {scores});
    case PostTransform::kProbit:
      return probit(c, scores);
    case PostTransform::kSoftmaxZero:
      break;
  }
  // Softmax without zeros: scores of (almost) zero stay zero and do not take part in the sum.
  const Expr zero = c.scalar_like(0, scores);
  const Expr none = c.call("less_equal", {c.call("abs", {scores}), c.scalar_like(1e-7, scores)});
  const Expr low = c.scalar_like(-std::numeric_limits<double>::infinity(), scores);
  return c.where(none, c.mul(scores, zero), softmax_of_scores(c, c.where(none, low, scores)));
}

Tensor class_labels(NodeContext& c) {
  for (const char* name : {"classlabels_strings", "classlabels_ints", "classlabels_int64s"}) {
    if (!c.has_attr(name)) continue;
    if (std::string(name) == "classlabels_strings") {
      auto texts = c.strings_attr(name);
      if (texts.empty()) continue;
      const auto n = static_cast<int64_t>(texts.size());
      return Tensor::strings({n}, std::move(texts));
    }
    const auto numbers = c.ints_attr(name);
    if (!numbers.empty()) return Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(numbers.size())}, numbers);
  }
  c.fail("it has no labels of classes");
}

Expr labels_of(NodeContext& c, const Expr& classes, const Tensor& labels) {
  if (!labels.dtype().is_string())
    return c.call("take", {c.constant_of(labels), classes}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
  // Compiled code handles no texts: a program looks them up beside it.
  if (!NodeContext::known(classes) && c.importer().programs()) {
    Node lookup;
    lookup.op_type = "LabelEncoder";
    lookup.domain = kMlDomain;
    lookup.name = c.node().label() + "/labels";
    lookup.inputs = {"classes"};
    lookup.outputs = {"labels"};
    Attribute keys, values;
    keys.name = "keys_int64s", keys.kind = AttributeKind::kInts;
    values.name = "values_strings", values.kind = AttributeKind::kStrings, values.strings = labels.string_values();
    for (int64_t i = 0; i < labels.size(); ++i) keys.ints.push_back(i);
    lookup.attributes = {std::move(keys), std::move(values)};
    return c.importer().defer(lookup, {}, 2, {Value(classes)}).at(0).expr;
  }
  const Tensor known = c.constant(classes, "classes");
  std::vector<std::string> texts;
  for (int64_t i = 0; i < known.size(); ++i)
    texts.push_back(labels.string_values().at(static_cast<size_t>(known.at_int(i))));
  return c.constant_of(Tensor::strings(known.shape(), std::move(texts)));
}

Expr feature_rows(NodeContext& c, DataType dtype) {
  Expr x = c.cast(c.input(0), dtype);
  if (c.rank(x) == 1) return c.expand(x, 0);
  if (c.rank(x) != 2) c.fail_type(format("its input has rank {}, rows of features are needed", c.rank(x)));
  return x;
}

Tensor numbers_of(const std::vector<double>& values, std::vector<int64_t> shape, DataType dtype) {
  Tensor t(dtype, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, values[static_cast<size_t>(i)]);
  return t;
}

Expr best_class(NodeContext& c, const Expr& scores) {
  return c.call("argmax", {scores}, make_attrs<relay::ArgReduceAttrs>([](auto& a) {
                  a.axis = std::vector<int64_t>{1};
                  a.dtype = kInt64;
                }));
}

namespace {

using Ints = std::vector<int64_t>;

// rows * coefficients^T + intercepts
Expr linear_scores(NodeContext& c, const Expr& x, const char* intercepts, int64_t outputs) {
  const auto weights = c.floats_attr("coefficients"), bias = c.floats_attr(intercepts);
  const int64_t features = c.dims(x)[1];
  if (outputs < 1 || static_cast<int64_t>(weights.size()) % outputs != 0 ||
      static_cast<int64_t>(weights.size()) / outputs != features)
    c.fail_type(format("{} coefficients do not make {} scores of {} features", weights.size(), outputs, features));
  Expr y = c.call("nn.dense", {x, c.constant_of(numbers_of(weights, {outputs, features}, kFloat32))},
                  make_attrs<relay::DenseAttrs>([&](auto& a) { a.units = outputs; }));
  if (bias.empty()) return y;
  if (static_cast<int64_t>(bias.size()) != outputs)
    c.fail(format("it has {} intercepts for {} scores", bias.size(), outputs));
  return c.add(y, c.constant_of(numbers_of(bias, {outputs}, kFloat32)));
}

Values linear_regressor(NodeContext& c) {
  const Expr y = linear_scores(c, feature_rows(c, kFloat32), "intercepts", c.int_attr("targets", 1));
  return {post_transformed(c, y, post_transform_of(c))};
}

// Two classes may have a single row of coefficients: its score is that of the second class.
Values linear_classifier(NodeContext& c) {
  const Tensor labels = class_labels(c);
  const Expr x = feature_rows(c, kFloat32);
  const auto weights = static_cast<int64_t>(c.floats_attr("coefficients").size());
  const int64_t features = c.dims(x)[1], rows = features > 0 ? weights / features : 0;
  const PostTransform transform = post_transform_of(c);
  const Expr scores = linear_scores(c, x, "intercepts", rows);
  if (rows == 1 && labels.size() == 2) {
    const bool logistic = transform == PostTransform::kLogistic;
    if (!logistic && transform != PostTransform::kNone) c.unsupported("a post_transform of one score for two classes");
    const Expr own = logistic ? c.call("sigmoid", {scores}) : scores;
    const Expr over = c.call("greater", {own, c.scalar(logistic ? 0.5 : 0, kFloat32)});
    const Expr label = labels_of(c, c.cast(c.squeeze(over, {1}), kInt64), labels);
    return {label, c.concat({c.sub(c.scalar(1, kFloat32), own), own}, 1)};
  }
  if (rows != labels.size()) c.fail(format("it has {} labels for {} scores", labels.size(), rows));
  return {labels_of(c, best_class(c, scores), labels), post_transformed(c, scores, transform)};
}

Values normalizer(NodeContext& c) {
  const Expr x = feature_rows(c, kFloat32);
  const std::string norm = c.string_attr("norm", "MAX");
  Expr size;
  if (norm == "MAX") size = c.reduce("max", x, {1}, true);
  if (norm == "L1") size = c.reduce("sum", c.call("abs", {x}), {1}, true);
  if (norm == "L2") size = c.call("sqrt", {c.reduce("sum", c.mul(x, x), {1}, true)});
  if (!size) c.fail(format("its norm '{}' is unknown", norm));
  const Expr y = c.where(c.call("equal", {size, c.scalar(0, kFloat32)}), x, c.div(x, size));
  return {c.rank(c.input(0)) == 1 ? c.squeeze(y, {0}) : y};
}

Values imputer(NodeContext& c) {
  const Expr x = c.input(0);
  const bool real = c.dtype(x).is_float();
  std::vector<double> values = c.floats_attr("imputed_value_floats");
  if (!real) {
    const Ints whole = c.ints_attr("imputed_value_int64s");
    values.assign(whole.begin(), whole.end());
  }
  if (values.empty()) c.fail("it has no values to put in");
  const auto count = static_cast<int64_t>(values.size());
  const Expr replaced =
      c.constant_of(real ? numbers_of(values, {count}, c.dtype(x))
                         : Tensor::from<int64_t>(kInt64, {count}, c.ints_attr("imputed_value_int64s")));
  const double wanted =
      real ? c.float_attr("replaced_value_float", 0) : static_cast<double>(c.int_attr("replaced_value_int64", 0));
  const Expr hit = std::isnan(wanted) ? c.call("isnan", {x}) : c.call("equal", {x, c.scalar_like(wanted, x)});
  return {c.where(hit, count == 1 ? c.reshape(replaced, {}) : replaced, x)};
}

// One-hot encoding of each element's category, along a new last axis.
Values one_hot_encoder(NodeContext& c) {
  const Ints categories = c.ints_attr("cats_int64s");
  if (categories.empty()) c.unsupported("categories that are texts");
  if (c.int_attr("zeros", 1) == 0) c.unsupported("that elements of no category are an error (zeros=0)");
  const Expr x = c.cast(c.input(0), kInt64);
  return {c.cast(c.call("equal", {c.expand(x, c.rank(x)), c.ints_constant(categories)}), kFloat32)};
}

// Concatenates the inputs of each row.
Values feature_vectorizer(NodeContext& c) {
  std::vector<Expr> parts;
  const Ints widths = c.ints_attr("inputdimensions");
  for (size_t i = 0; i < c.input_count(); ++i) {
    Expr x = c.cast(c.input(i), kFloat32);
    x = c.rank(x) == 1 ? c.expand(x, 0) : x;
    const Ints d = c.dims(x);
    const int64_t width = c.product(d, 1);
    if (d.size() > 2) x = c.reshape(x, {d[0], width});
    if (i < widths.size() && widths[i] != width)
      c.fail_type(format("its input {} has {} features, not {}", i, width, widths[i]));
    parts.push_back(x);
  }
  if (parts.empty()) c.fail("it has no input");
  return {c.concat(std::move(parts), 1)};
}

// A library gives tensors: in place of each row's map from class to score come the scores themselves, in the order of
// the node's labels. Values that are maps have no tensor, so that this is the operator's only use, as a model's output.
Values zip_map(NodeContext& c) {
  const Expr x = c.input(0);
  const int64_t labels = class_labels(c).size(), rank = c.rank(x);
  if (rank != 1 && rank != 2) c.fail_type(format("its input has rank {}, rows of scores are needed", rank));
  const int64_t scores = c.dims(x).back();
  if (scores != labels) c.fail_type(format("it has {} labels for {} scores", labels, scores));
  return {x};
}

constexpr ConverterEntry kMlConverters[] = {
    {"FeatureVectorizer", 1, feature_vectorizer, kMlDomain},
    {"Imputer", 1, imputer, kMlDomain},
    {"LinearClassifier", 1, linear_classifier, kMlDomain},
    {"LinearRegressor", 1, linear_regressor, kMlDomain},
    {"Normalizer", 1, normalizer, kMlDomain},
    {"OneHotEncoder", 1, one_hot_encoder, kMlDomain},
    {"ZipMap", 1, zip_map, kMlDomain},
};

}  // namespace

std::span<const ConverterEntry> ml_converters() { return kMlConverters; }

}  // namespace tilewright::onnx
