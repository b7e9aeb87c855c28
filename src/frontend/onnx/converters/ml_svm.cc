// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: support vector machines. Votes of pairs of classes and the coupling of their probabilities follow LIBSVM:
// C.-C. Chang and C.-J. Lin, "LIBSVM: a library for support vector machines", ACM TIST 2(3), 2011, and T.-F. Wu,
// C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by pairwise coupling", JMLR 5, 2004.
#include <algorithm>

#include "base/format.h"
#include "frontend/lets.h"
#include "frontend/onnx/converters/ml.h"
#include "frontend/onnx/importer.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

// The coupling of probabilities ends after so many steps, or where the rest is below this, divided by the classes.
constexpr int64_t kMostCouplingSteps = 100;
constexpr double kCouplingError = 0.005;

Expr number(NodeContext& c, double v) { return c.scalar(v, kFloat32); }

Expr column(NodeContext& c, const Expr& e, int64_t at) { return c.slice(e, 1, at, at + 1); }

// x * matrix^T for a matrix of so many rows.
Expr product(NodeContext& c, const Expr& x, const Doubles& matrix, int64_t rows) {
  const auto columns = static_cast<int64_t>(matrix.size()) / rows;
  return c.call("nn.dense", {x, c.constant_of(numbers_of(matrix, {rows, columns}, kFloat32))},
                make_attrs<relay::DenseAttrs>([&](auto& a) { a.units = rows; }));
}

// The number of features of a row, which `count` vectors of `numbers` in all must have, too.
void check_vectors(NodeContext& c, const Expr& x, size_t numbers, int64_t count) {
  const Dim features = c.shape(x)[1];
  const auto all = static_cast<int64_t>(numbers);
  if (count < 1 || all % count != 0 || (features.is_const() && features.value() != all / count))
    c.fail_type(format("{} numbers are not {} vectors of {} features", numbers, count, features.str()));
}

// The kernel function (LINEAR, POLY, RBF or SIGMOID with gamma, coef0, degree) of every row and support vector.
Expr kernel_products(NodeContext& c, const Expr& x, const Doubles& vectors, int64_t count) {
  const std::string kind = c.string_attr("kernel_type", "LINEAR");
  Doubles parameters = c.floats_attr("kernel_params");
  parameters.resize(3, 0);
  check_vectors(c, x, vectors.size(), count);
  if (kind == "RBF") {
    const auto features = static_cast<int64_t>(vectors.size()) / count;
    const Expr support = c.constant_of(numbers_of(vectors, {count, features}, kFloat32));
    const Expr away = c.sub(c.expand(x, 1), c.expand(support, 0));  // (rows, vectors, features)
    const Expr far = c.reduce("sum", c.mul(away, away), {2}, false);
    return c.call("exp", {c.mul(far, number(c, -parameters[0]))});
  }
  Expr dot = product(c, x, vectors, count);
  if (kind == "LINEAR") return dot;
  const Expr shifted = c.add(c.mul(dot, number(c, parameters[0])), number(c, parameters[1]));
  if (kind == "POLY") return c.call("power", {shifted, number(c, parameters[2])});
  if (kind == "SIGMOID") return c.call("tanh", {shifted});
  c.fail(format("its kernel_type '{}' is unknown", kind));
}

Values svm_regressor(NodeContext& c) {
  const Expr x = feature_rows(c, kFloat32);
  const Doubles vectors = c.floats_attr("support_vectors"), weights = c.floats_attr("coefficients"),
                rho = c.floats_attr("rho", {0});
  const int64_t count = c.int_attr("n_supports", 0);
  // Without support vectors the model is linear: the coefficients apply to the features.
  const Expr products = count > 0 ? kernel_products(c, x, vectors, count) : x;
  check_vectors(c, products, weights.size(), 1);
  if (rho.empty()) c.fail("its rho is empty");
  Expr y = c.add(product(c, products, weights, 1), number(c, rho[0]));
  if (c.int_attr("one_class", 0) != 0) y = c.where(c.call("greater", {y, number(c, 0)}), number(c, 1), number(c, -1));
  return {post_transformed(c, y, post_transform_of(c))};
}

// The pairs of classes (i, j), i < j, in the order of their scores.
std::vector<std::pair<int64_t, int64_t>> pairs_of(int64_t classes) {
  std::vector<std::pair<int64_t, int64_t>> out;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j) out.emplace_back(i, j);
  return out;
}

// The coefficient of each support vector in each pair's score. A vector of class i has one for each other class, in
// rows without the class itself.
Doubles pair_weights(const Doubles& coefficients, const Ints& starts, int64_t vectors, int64_t classes) {
  Doubles out;
  for (const auto& [i, j] : pairs_of(classes)) {
    Doubles one(static_cast<size_t>(vectors), 0);
    auto take = [&](int64_t of, int64_t row) {
      for (int64_t v = starts[static_cast<size_t>(of)]; v < starts[static_cast<size_t>(of) + 1]; ++v)
        one[static_cast<size_t>(v)] = coefficients[static_cast<size_t>(row * vectors + v)];
    };
    take(i, j - 1);
    take(j, i);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

// Each pair votes for its first class where its score is positive, else for its second: votes of (rows, classes).
Expr votes_of(NodeContext& c, const Expr& scores, int64_t classes) {
  const auto pairs = pairs_of(classes);
  Doubles moves(static_cast<size_t>(classes) * pairs.size(), 0), second(static_cast<size_t>(classes), 0);
  for (size_t p = 0; p < pairs.size(); ++p) {
    moves[static_cast<size_t>(pairs[p].first) * pairs.size() + p] = 1;
    moves[static_cast<size_t>(pairs[p].second) * pairs.size() + p] = -1;
    second[static_cast<size_t>(pairs[p].second)] += 1;
  }
  const Expr positive = c.cast(c.call("greater", {scores, number(c, 0)}), kFloat32);
  return c.add(product(c, positive, moves, classes), c.constant_of(numbers_of(second, {classes}, kFloat32)));
}

// The probability that a row is of class i where it is of class i or j, from the pair's score: (rows, classes,
// classes).
Expr pairwise_probabilities(NodeContext& c, const Expr& scores, const Doubles& a, const Doubles& b, int64_t classes) {
  const auto pairs = pairs_of(classes);
  const auto count = static_cast<int64_t>(pairs.size());
  if (a.size() != pairs.size() || b.size() != pairs.size())
    c.fail(format("it has {} and {} numbers in prob_a and prob_b for {} pairs", a.size(), b.size(), count));
  const Expr line = c.add(c.mul(scores, c.constant_of(numbers_of(a, {count}, kFloat32))),
                          c.constant_of(numbers_of(b, {count}, kFloat32)));
  const Expr first = c.call("clip", {c.call("sigmoid", {c.call("negative", {line})})},
                            make_attrs<relay::ClipAttrs>([](auto& at) { at.a_min = 1e-7, at.a_max = 1 - 1e-7; }));
  // Columns of the pairs, of their opposites, and one of zeros for the diagonal.
  const Expr columns = c.concat({first, c.sub(number(c, 1), first), c.mul(column(c, first, 0), number(c, 0))}, 1);
  Ints places(static_cast<size_t>(classes * classes), 2 * count);
  for (size_t p = 0; p < pairs.size(); ++p) {
    const auto [i, j] = pairs[p];
    places[static_cast<size_t>(i * classes + j)] = static_cast<int64_t>(p);
    places[static_cast<size_t>(j * classes + i)] = static_cast<int64_t>(p) + count;
  }
  const Expr taken = c.call("take", {columns, c.ints_constant(places)},
                            make_attrs<relay::TakeAttrs>([](auto& at) { at.axis = 1, at.mode = "fast"; }));
  return c.reshape(taken, {-1, classes, classes});
}

// The form whose minimum over probabilities that sum to 1 is the coupling (Wu, Lin and Weng, equation 26).
Expr coupling_form(NodeContext& c, const Expr& r, int64_t classes) {
  Tensor eye(kFloat32, {classes, classes});
  for (int64_t i = 0; i < classes * classes; ++i) eye.set_double(i, i % (classes + 1) == 0 ? 1 : 0);
  const Expr diagonal = c.mul(c.expand(c.reduce("sum", c.mul(r, r), {1}, false), 2), c.constant_of(eye));
  return c.sub(diagonal, c.mul(r, c.transpose(r, {0, 2, 1})));
}

struct Coupling {
  Expr p, qp, pqp;  // probabilities, Q p of (rows, classes), p' Q p of (rows, 1)
};
Coupling coupling_of(NodeContext& c, frontend::Lets& lets, const Expr& p, const Expr& q) {
  const Expr qp = lets.bound("qp", c.reduce("sum", c.mul(q, c.expand(p, 1)), {2}, false));
  return {p, qp, lets.bound("pqp", c.reduce("sum", c.mul(p, qp), {1}, true))};
}

// One pass over the classes: each probability in turn takes its best value, and all are scaled to sum to 1.
Expr coupling_step(NodeContext& c, Coupling at, const Expr& q, int64_t classes) {
  for (int64_t t = 0; t < classes; ++t) {
    Tensor unit(kFloat32, {1, classes});
    for (int64_t i = 0; i < classes; ++i) unit.set_double(i, i == t ? 1 : 0);
    const Expr row = c.squeeze(column(c, q, t), {1});
    const Expr own = column(c, row, t), slope = column(c, at.qp, t);
    const Expr move = c.div(c.sub(at.pqp, slope), own), scale = c.add(number(c, 1), move);
    const Expr gain = c.mul(move, c.add(c.mul(move, own), c.mul(number(c, 2), slope)));
    at.pqp = c.div(c.div(c.add(at.pqp, gain), scale), scale);
    at.qp = c.div(c.add(at.qp, c.mul(move, row)), scale);
    at.p = c.div(c.add(at.p, c.mul(move, c.constant_of(unit))), scale);
  }
  return at.p;
}

// Probabilities of classes from those of pairs. A row ends where its rest is small; the rows' passes are a function
// that calls itself until all have ended.
Expr coupled(NodeContext& c, const Expr& r, int64_t classes) {
  if (!c.importer().programs())
    throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedModel,
                                       "how many steps its probabilities take is known only at run time", "",
                                       "compile it to a shared library, which may be a program (docs/vm.md)")};
  c.importer().is_program = true;
  const Expr form = coupling_form(c, r, classes);
  const Expr even =
      c.add(c.mul(c.reduce("sum", form, {2}, false), number(c, 0)), number(c, 1.0 / static_cast<double>(classes)));
  const Expr step = relay::make_var("step", tensor_type({}, kInt64)), p = relay::make_var("p", even->type),
             q = relay::make_var("q", form->type);
  const Expr self = relay::make_var("couple", func_type({step->type, p->type, q->type}, p->type));
  frontend::Lets lets;
  const Coupling now = coupling_of(c, lets, p, q);
  const Expr rest = c.reduce("max", c.call("abs", {c.sub(now.qp, now.pqp)}), {1}, true);
  const Expr open =
      lets.bound("open", c.call("greater_equal", {rest, number(c, kCouplingError / static_cast<double>(classes))}));
  const Expr more = c.call("less", {step, c.scalar(kMostCouplingSteps, kInt64)});
  const Expr goes_on = c.call("logical_and", {c.reduce("any", open, {0, 1}, false), more});
  const Expr next = c.where(open, coupling_step(c, now, q, classes), p);
  if (!type_equal(next->type, p->type)) c.unsupported("probabilities of rows without a known number");
  const Expr again = relay::call_function(self, {c.add(step, c.scalar(1, kInt64)), next, q});
  const Expr body = lets.around(make_node<relay::IfNode>(goes_on, again, p));
  return make_node<relay::LetNode>(self, relay::make_function({step, p, q}, body),
                                   relay::call_function(self, {c.scalar(0, kInt64), even, form}));
}

// Scores of one pair of classes are those of both: the second one's is the pair's, the first one's its opposite or,
// as onnxruntime has it where the transform is a softmax, what is left of 1, neither of them transformed.
Expr scores_of_two(NodeContext& c, const Expr& score, PostTransform transform) {
  if (transform == PostTransform::kProbit) c.unsupported("a post_transform of one score for two classes");
  const bool each = transform == PostTransform::kNone || transform == PostTransform::kLogistic;
  if (!each) return c.concat({c.sub(number(c, 1), score), score}, 1);
  return post_transformed(c, c.concat({c.call("negative", {score}), score}, 1), transform);
}

// Without support vectors: one row of coefficients for each class. Of two classes without probabilities, the second
// one is taken where the larger score passes a threshold.
Values linear_svm(NodeContext& c, const Expr& x, const Tensor& labels, const Doubles& weights, double rho) {
  const int64_t classes = labels.size();
  check_vectors(c, x, weights.size(), classes);
  const Expr scores = c.add(product(c, x, weights, classes), number(c, rho));
  Expr best = best_class(c, scores);
  if (classes == 2 && c.floats_attr("prob_a").empty()) {
    const bool positive = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
    const Expr most = c.reduce("max", scores, {1}, false);
    const Expr over = c.call(positive ? "greater_equal" : "greater", {most, number(c, positive ? 0.5 : 0)});
    best = c.where(over, c.scalar(1, kInt64), best);
  }
  return {labels_of(c, best, labels), post_transformed(c, scores, post_transform_of(c))};
}

Values svm_classifier(NodeContext& c) {
  const Tensor labels = class_labels(c);
  const int64_t classes = labels.size();
  const Expr x = feature_rows(c, kFloat32);
  const Doubles weights = c.floats_attr("coefficients"), rho = c.floats_attr("rho"), a = c.floats_attr("prob_a");
  Ints starts = {0};
  for (int64_t n : c.ints_attr("vectors_per_class")) {
    if (n < 0 || n > (int64_t{1} << 40)) c.fail(format("a class has {} support vectors", n));
    starts.push_back(starts.back() + n);
  }
  const int64_t vectors = starts.back();
  if (rho.empty()) c.fail("its rho is empty");
  if (vectors == 0) return linear_svm(c, x, labels, weights, rho[0]);
  const int64_t pairs = classes * (classes - 1) / 2;
  if (static_cast<int64_t>(starts.size()) != classes + 1 || classes < 2)
    c.fail(format("it has {} labels for support vectors of {} classes", classes, starts.size() - 1));
  if (static_cast<int64_t>(weights.size()) != (classes - 1) * vectors || static_cast<int64_t>(rho.size()) != pairs)
    c.fail(format("{} coefficients and {} numbers in rho do not fit {} support vectors of {} classes", weights.size(),
                  rho.size(), vectors, classes));
  const Expr kernels = kernel_products(c, x, c.floats_attr("support_vectors"), vectors);
  const Expr scores = c.add(product(c, kernels, pair_weights(weights, starts, vectors, classes), pairs),
                            c.constant_of(numbers_of(rho, {pairs}, kFloat32)));
  const Expr label = labels_of(c, best_class(c, votes_of(c, scores, classes)), labels);
  const PostTransform transform = post_transform_of(c);
  if (a.empty() && pairs == 1) return {label, scores_of_two(c, scores, transform)};
  if (a.empty()) return {label, post_transformed(c, scores, transform)};
  const Expr r = pairwise_probabilities(c, scores, a, c.floats_attr("prob_b"), classes);
  return {label, post_transformed(c, coupled(c, r, classes), transform)};
}

constexpr ConverterEntry kMlSvmConverters[] = {
    {"SVMClassifier", 1, svm_classifier, kMlDomain},
    {"SVMRegressor", 1, svm_regressor, kMlDomain},
};

}  // namespace

std::span<const ConverterEntry> ml_svm_converters() { return kMlSvmConverters; }

}  // namespace tilewright::onnx
