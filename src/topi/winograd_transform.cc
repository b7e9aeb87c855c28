// SPDX-License-Identifier: Apache-2.0
#include "topi/winograd_transform.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

namespace tilewright::topi {

using namespace tir;

namespace {

using Polynomial = std::vector<double>;  // coefficients, lowest power first

// The product of (x - p) over the points except those at the two indices (-1: none).
Polynomial product_without(const std::vector<double>& points, int a, int b = -1) {
  Polynomial out{1};
  for (int i = 0; i < static_cast<int>(points.size()); ++i) {
    if (i == a || i == b) continue;
    Polynomial next(out.size() + 1, 0);
    for (size_t k = 0; k < out.size(); ++k) {
      next[k + 1] += out[k];
      next[k] -= points[static_cast<size_t>(i)] * out[k];
    }
    out = std::move(next);
  }
  return out;
}

// Adds a linear combination; a single value with factor 1 needs none. Terms with factor 1 come first.
int add_sum(LinearProgram* program, std::vector<LinearProgram::Term> terms) {
  std::erase_if(terms, [](const LinearProgram::Term& t) { return t.factor == 0; });
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& x, const auto& y) { return (x.factor == 1) > (y.factor == 1); });
  if (terms.size() == 1 && terms[0].factor == 1) return terms[0].value;
  program->sums.push_back(std::move(terms));
  return program->inputs + static_cast<int>(program->sums.size()) - 1;
}

// The polynomial's coefficients applied to the inputs from `shift` on.
std::vector<LinearProgram::Term> applied(const Polynomial& polynomial, int shift) {
  std::vector<LinearProgram::Term> terms;
  for (size_t k = 0; k < polynomial.size(); ++k) terms.push_back({polynomial[k], static_cast<int>(k) + shift});
  return terms;
}

// Rows of B^T: the products of (x - other points); for infinity, of all points. The rows of points a and b are C(x) (x
// - b) and C(x) (x - a) with a common C, so C is applied twice, one input apart, and each row takes one more sum.
LinearProgram data_program(const std::vector<double>& points, int products) {
  LinearProgram program;
  program.inputs = products;
  program.results.resize(static_cast<size_t>(products));
  const int finite = products - 1;
  auto alone = [&](int i) {
    program.results[static_cast<size_t>(i)] = add_sum(&program, applied(product_without(points, i), 0));
  };
  int next = 0;
  if (next < finite) alone(next++);  // the point 0: shares nothing
  for (; next + 1 < finite; next += 2) {
    const Polynomial common = product_without(points, next, next + 1);
    const int low = add_sum(&program, applied(common, 0)), high = add_sum(&program, applied(common, 1));
    const size_t a = static_cast<size_t>(next), b = a + 1;
    program.results[a] = add_sum(&program, {{1, high}, {-points[b], low}});
    program.results[b] = add_sum(&program, {{1, high}, {-points[a], low}});
  }
  if (next < finite) alone(next);
  program.results[static_cast<size_t>(finite)] = add_sum(&program, applied(product_without(points, -1), 0));
  return program;
}

// Rows of A^T: y_i = sum of p^i x_p, with infinity in the last row. A pair p, -p contributes its sum or difference.
LinearProgram result_program(const std::vector<double>& points, int outputs, int products) {
  LinearProgram program;
  program.inputs = products;
  std::vector<std::vector<LinearProgram::Term>> rows(static_cast<size_t>(outputs));
  const int finite = products - 1;
  for (int j = 0; j < finite; ++j) {
    const double p = points[static_cast<size_t>(j)];
    const bool pair = outputs > 2 && p != 0 && j + 1 < finite && points[static_cast<size_t>(j) + 1] == -p;
    const int sum = pair ? add_sum(&program, {{1, j}, {1, j + 1}}) : j;
    const int difference = pair ? add_sum(&program, {{1, j}, {-1, j + 1}}) : j;
    double power = 1;
    for (int i = 0; i < outputs; ++i, power *= p)
      rows[static_cast<size_t>(i)].push_back({power, i % 2 == 0 ? sum : difference});
    j += pair;
  }
  rows.back().push_back({1, finite});
  for (auto& row : rows) program.results.push_back(add_sum(&program, std::move(row)));
  return program;
}

}  // namespace

int LinearProgram::operations() const {
  int n = 0;
  for (const auto& sum : sums) n += std::max<int>(1, static_cast<int>(sum.size()) - (sum[0].factor == 1));
  return n;
}

std::vector<double> LinearProgram::apply(const std::vector<double>& x) const {
  std::vector<double> values = x, out;
  for (const auto& sum : sums) {
    double value = 0;
    for (const Term& t : sum) value += t.factor * values[static_cast<size_t>(t.value)];
    values.push_back(value);
  }
  for (int r : results) out.push_back(values[static_cast<size_t>(r)]);
  return out;
}

namespace {
WinogradTransform made_transform(int outputs, int taps) {
  static constexpr double kPoints[] = {0, 1, -1, 0.5, -2, 2, -0.5};
  WinogradTransform w;
  w.outputs = outputs;
  w.taps = taps;
  const int products = w.products();
  TW_ICHECK(outputs >= 1 && taps >= 1 && products <= 8, "winograd_transform: size");
  w.points.assign(kPoints, kPoints + products - 1);
  if (products == 5) w.points[3] = 2;  // without the pair -2: with 2, F(3,3) rounds in one row of B less
  w.data = data_program(w.points, products);
  w.result = result_program(w.points, outputs, products);
  for (int j = 0; j < products; ++j) {
    double scale = 1;
    const bool infinity = j == products - 1;
    const double p = infinity ? 0 : w.points[static_cast<size_t>(j)];
    for (int l = 0; !infinity && l < products - 1; ++l)
      if (l != j) scale *= p - w.points[static_cast<size_t>(l)];
    for (int k = 0; k < taps; ++k) w.kernel.push_back(infinity ? k == taps - 1 : std::pow(p, k) / scale);
  }
  return w;
}
}  // namespace

const WinogradTransform& winograd_transform(int outputs, int taps) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, WinogradTransform> made;
  std::lock_guard lock(mutex);
  const auto found = made.find({outputs, taps});
  return found != made.end() ? found->second
                             : made.emplace(std::pair(outputs, taps), made_transform(outputs, taps)).first->second;
}

WinogradAxis winograd_axis(int outputs, int kernel, int stride) {
  const int taps = (kernel + stride - 1) / stride;
  return {&winograd_transform(outputs, taps), stride, kernel - (taps - 1) * stride};
}

LinearProgram WinogradAxis::data(int phase) const {
  if (phase < last_phases) return transform->data;
  // Only infinity's row, the last sum, uses the last input.
  LinearProgram program = transform->data;
  const int last = --program.inputs;
  if (program.results.back() > last) program.sums.pop_back();
  program.results.pop_back();
  auto renumber = [&](int* value) {
    TW_ICHECK(*value != last, "winograd: a finite point's row uses the last input");
    if (*value > last) --*value;
  };
  for (auto& sum : program.sums)
    for (LinearProgram::Term& term : sum) renumber(&term.value);
  for (int& result : program.results) renumber(&result);
  return program;
}

int program_registers(const LinearProgram& program) { return program.inputs + static_cast<int>(program.sums.size()); }

Stmt emit_program(const LinearProgram& program, const Buffer& registers, const std::function<PrimExpr(int)>& input,
                  const std::function<Stmt(int, PrimExpr)>& result) {
  std::vector<Stmt> body;
  for (int i = 0; i < program.inputs; ++i) body.push_back(store(registers, make_int(i), input(i)));
  auto value = [&](int i) { return load(registers, make_int(i)); };
  for (size_t k = 0; k < program.sums.size(); ++k) {
    PrimExpr sum;
    for (const auto& term : program.sums[k]) {
      PrimExpr x = value(term.value);
      if (!sum)
        sum = term.factor == 1 ? x : x * make_const(x->dtype, term.factor);
      else if (term.factor == 1)
        sum = sum + x;
      else if (term.factor == -1)
        sum = sum - x;
      else
        sum = fma(make_const(x->dtype, term.factor), x, sum);
    }
    body.push_back(store(registers, make_int(program.inputs + static_cast<int64_t>(k)), sum));
  }
  for (size_t i = 0; i < program.results.size(); ++i)
    body.push_back(result(static_cast<int>(i), value(program.results[i])));
  return seq(std::move(body));
}

}  // namespace tilewright::topi
