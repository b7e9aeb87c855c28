// SPDX-License-Identifier: Apache-2.0
// Sums of products over named axes.
#include <algorithm>
#include <limits>
#include <map>

#include "relay/ops/attrs.h"
#include "relay/ops/reference.h"
#include "relay/ops/tensor/einsum.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {

Result<EinsumEquation> parse_equation(const std::string& text, const std::vector<size_t>& ranks) {
  std::string s;
  for (char c : text)
    if (c != ' ') s += c;
  auto bad = [&](const std::string& why) { return type_error(format("equation \"{}\" {}", text, why)); };
  const size_t arrow = s.find("->");
  std::vector<std::string> terms(1);
  for (char c : s.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != ranks.size()) return bad(format("has {} operands, but {} are given", terms.size(), ranks.size()));
  size_t widest = 0;
  auto spell = [](size_t n) {
    std::string out;
    for (size_t i = n; i-- > 0;) out += static_cast<char>('0' + i);
    return out;
  };
  EinsumEquation e;
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string term = terms[i];
    const size_t dots = term.find("...");
    if (dots != std::string::npos) {
      const size_t named = term.size() - 3;
      if (ranks[i] < named || ranks[i] - named > 9)
        return bad(format("does not fit operand {} of rank {}", i, ranks[i]));
      widest = std::max(widest, ranks[i] - named);
      term = term.substr(0, dots) + spell(ranks[i] - named) + term.substr(dots + 3);
    }
    if (term.size() != ranks[i])
      return bad(format("names {} axes of operand {}, which has {}", term.size(), i, ranks[i]));
    if (!std::all_of(term.begin(), term.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }))
      return bad("has a character that is not a letter");
    e.operands.push_back(term);
  }
  if (arrow == std::string::npos) {
    // Implicit form: the ellipsis, then the letters that appear exactly once, in alphabetical order.
    std::map<char, int> count;
    for (const std::string& t : e.operands)
      for (char c : t) ++count[c];
    e.result = spell(widest);
    for (auto [c, n] : count)
      if (n == 1 && !(c >= '0' && c <= '9')) e.result += c;
    return e;
  }
  e.result = s.substr(arrow + 2);
  const size_t dots = e.result.find("...");
  if (dots != std::string::npos) e.result = e.result.substr(0, dots) + spell(widest) + e.result.substr(dots + 3);
  for (size_t i = 0; i < e.result.size(); ++i) {
    if (e.result.find(e.result[i], i + 1) != std::string::npos) return bad("names an axis twice in its result");
    if (std::none_of(e.operands.begin(), e.operands.end(),
                     [&](const std::string& t) { return t.find(e.result[i]) != std::string::npos; }))
      return bad("has a result axis that no operand has");
  }
  return e;
}

namespace {

Result<Type> einsum_type(const TypeArgs& args) {
  std::vector<Type> in = flat_types(args);
  if (in.empty()) return type_error("it needs at least one tensor");
  std::vector<size_t> ranks;
  for (const Type& t : in) {
    if (as_tensor(t)->dtype != as_tensor(in[0])->dtype)
      return type_error(format("operands are {} and {}", type_str(in[0]), type_str(t)));
    ranks.push_back(as_tensor(t)->shape.size());
  }
  DataType dtype = as_tensor(in[0])->dtype;
  if (!dtype.is_float() && !dtype.is_integral()) return type_error(format("it needs numbers, not {}", dtype.str()));
  EinsumEquation e = TW_TRY(parse_equation(attrs_of<EinsumAttrs>(args).equation, ranks));
  std::map<char, Dim> size;
  for (size_t i = 0; i < in.size(); ++i)
    for (size_t k = 0; k < ranks[i]; ++k) {
      const Dim& d = as_tensor(in[i])->shape[k];
      auto [it, fresh] = size.try_emplace(e.operands[i][k], d);
      if (it->second == Dim(1)) it->second = d;
      if (!fresh && d != Dim(1) && dims_differ(d, it->second))
        return type_error(format("axis {} is {} and {}", e.operands[i][k], it->second.str(), d.str()));
      if (!fresh && d != Dim(1)) it->second = known_dim(it->second, d);
    }
  Shape out;
  for (char c : e.result) out.push_back(size.at(c));
  return tensor_type(std::move(out), dtype);
}

Result<std::vector<Value>> eval_einsum(const EvalArgs& args) {
  std::vector<size_t> ranks;
  for (const Value& v : args.inputs) ranks.push_back(v.shape.size());
  EinsumEquation e = TW_TRY(parse_equation(args.as<EinsumAttrs>().equation, ranks));
  std::map<char, int64_t> size;
  for (size_t i = 0; i < args.inputs.size(); ++i)
    for (size_t k = 0; k < ranks[i]; ++k) {
      int64_t& s = size.try_emplace(e.operands[i][k], 1).first->second;
      if (args.inputs[i].shape[k] != 1) s = args.inputs[i].shape[k];
    }
  std::string axes = e.result;
  for (auto [c, n] : size)
    if (axes.find(c) == std::string::npos) axes += c;
  std::vector<int64_t> shape;
  for (char c : axes) shape.push_back(size[c]);
  auto strides_of = [&](const std::string& term, const std::vector<int64_t>& dims) {
    std::vector<int64_t> own = row_major_strides(dims), out(axes.size(), 0);
    for (size_t k = 0; k < term.size(); ++k)
      if (dims[k] != 1) out[axes.find(term[k])] += own[k];  // a repeated letter means the diagonal
    return out;
  };
  Value out = out_value(args);
  const int64_t per_result = product(shape, e.result.size(), shape.size());
  std::vector<double> magnitude(out.f.size(), 0.0), spread(out.f.size(), 0.0);
  std::vector<std::vector<int64_t>> strides;
  for (size_t i = 0; i < args.inputs.size(); ++i) strides.push_back(strides_of(e.operands[i], args.inputs[i].shape));
  std::vector<int64_t> own = row_major_strides(shape);
  int64_t total = 1;
  for (int64_t s : shape)
    if (__builtin_mul_overflow(total, s, &total)) total = std::numeric_limits<int64_t>::max();
  if (total > (int64_t{1} << 36))
    return Diagnostic(ErrorCode::kLimitExceeded, "an einsum of more than 2^36 terms is too slow to interpret");
  for (int64_t j = 0; j < total; ++j) {
    const int64_t o = j / per_result;  // the result's axes come first
    double term = 1, moved = 0;
    uint64_t exact = 1;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      int64_t at = 0;
      for (size_t k = 0; k < axes.size(); ++k) at += j / own[k] % shape[k] * strides[i][k];
      const Value& v = args.inputs[i];
      if (v.is_float()) {
        moved = std::fabs(term) * bound_at(v, at) + std::fabs(v.f[at]) * moved;
        term *= v.f[at];
      } else {
        exact *= static_cast<uint64_t>(v.i[at]);
      }
    }
    if (out.is_float()) {
      out.f[o] += term;
      magnitude[o] += term * term;
      spread[o] += moved * moved;
    } else {
      out.i[o] = wrap_int(out.dtype, static_cast<int64_t>(static_cast<uint64_t>(out.i[o]) + exact));
    }
  }
  if (out.is_float()) {
    out.bound.resize(out.f.size());
    const double u =
        kSumSlack * unit_roundoff(out.dtype) * std::sqrt(static_cast<double>(std::max<int64_t>(per_result, 1)));
    for (size_t i = 0; i < out.f.size(); ++i) out.bound[i] = std::sqrt(spread[i]) + u * std::sqrt(magnitude[i]);
  }
  return one(std::move(out));
}

}  // namespace

std::vector<OpDef> einsum_ops() {
  OpDef d;
  d.name = "einsum";
  d.num_inputs = -1;
  d.pattern = OpPattern::kInjective;
  d.doc = "The sum of products that the equation names (numpy's einsum, with ellipsis).";
  d.args = {{"data", "a tuple of tensors of one dtype"}};
  d.infer_type = einsum_type;
  d.evaluate = eval_einsum;
  d.make_attrs = make_default_attrs<EinsumAttrs>;
  return {d};
}

}  // namespace tilewright::relay
