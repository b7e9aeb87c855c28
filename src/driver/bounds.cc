// SPDX-License-Identifier: Apache-2.0
#include "driver/bounds.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/format.h"

namespace tilewright::driver {
namespace {

bool read_size(std::string_view text, int64_t* size) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *size);
  return error == std::errc() && end == text.data() + text.size() && *size >= 0;
}

std::string place_of(const std::string& input, size_t dimension) { return format("{}.{}", input, dimension); }

// The bound that applies to a dimension, or null.
const Bound* bound_of(const std::vector<Bound>& bounds, const std::string& input, size_t dimension,
                      const std::string& name) {
  for (const Bound& b : bounds)
    if (b.name == place_of(input, dimension) || (!name.empty() && b.name == name)) return &b;
  return nullptr;
}

// The free dimensions of the inputs, as a user may name them.
std::string free_names(const onnx::Model& model) {
  std::set<std::string> names;
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    if (!input.type.shape) continue;
    for (size_t d = 0; d < input.type.shape->size(); ++d) {
      const auto& dim = (*input.type.shape)[d];
      if (!dim.value) names.insert(dim.param.empty() ? place_of(input.name, d) : dim.param);
    }
  }
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

Status check_names(const onnx::Model& model, const std::vector<Bound>& bounds, const Shapes& given) {
  for (size_t i = 0; i < bounds.size(); ++i) {
    const Bound& bound = bounds[i];
    bool found = false;
    for (const onnx::ValueInfo& input : model.graph.inputs)
      for (size_t d = 0; input.type.shape && !given.count(input.name) && d < input.type.shape->size(); ++d) {
        const auto& dim = (*input.type.shape)[d];
        found = found || (!dim.value && bound_of({bound}, input.name, d, dim.param));
      }
    if (!found) {
      const std::string names = free_names(model);
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("the model leaves no dimension '{}' of its inputs free", bound.name), "--bound",
                        names.empty() ? "all sizes are fixed: leave --bound out" : "it leaves free: " + names);
    }
    for (size_t j = 0; j < i; ++j)
      if (bounds[j].name == bound.name)
        return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' has two bounds", bound.name), "--bound");
  }
  return Ok{};
}

}  // namespace

namespace {

bool named_as(const std::string& dim, std::initializer_list<const char*> words) {
  std::string name = dim;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return name.find(w) != std::string::npos; });
}

}  // namespace

std::vector<Bound> usual_bounds(const onnx::Model& model, const Shapes& given) {
  std::optional<Bound> batch, length;
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    if (given.contains(input.name)) continue;
    if (!input.type.shape) return {};
    for (const auto& dim : *input.type.shape) {
      if (dim.value) continue;
      // Tokens are integers: a sequence of samples may have any length. A cache's length is past or total.
      const bool tokens = input.type.elem && input.type.elem->is_integral() &&
                          named_as(dim.param, {"seq", "length", "token"}) &&
                          !named_as(dim.param, {"past", "total", "+"});
      if (!tokens && !named_as(dim.param, {"batch"})) return {};
      std::optional<Bound>& bound = tokens ? length : batch;
      if (bound && bound->name != dim.param) return {};
      bound = tokens ? Bound{dim.param, 1, 512, 4, 16} : Bound{dim.param, 1, 8};
    }
  }
  if (batch && length) batch->parts = length->parts = 1;  // few plans: each takes seconds of a core to compile
  std::vector<Bound> out;
  for (const std::optional<Bound>& bound : {batch, length})
    if (bound) out.push_back(*bound);
  return out;
}

std::string bounds_str(const std::vector<Bound>& bounds) {
  std::string out;
  for (const Bound& b : bounds) out += format("{}{}={}..{}", out.empty() ? "" : " ", b.name, b.low, b.high);
  return out;
}

Result<Bound> parse_bound(const std::string& text) {
  const size_t eq = text.rfind('=');
  Bound bound;
  if (eq != std::string::npos && eq > 0) {
    bound.name = text.substr(0, eq);
    const std::string_view range = std::string_view(text).substr(eq + 1);
    const size_t dots = range.find("..");
    if (dots != std::string_view::npos && read_size(range.substr(0, dots), &bound.low) &&
        read_size(range.substr(dots + 2), &bound.high) && bound.low <= bound.high)
      return bound;
  }
  return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' is no range of sizes", text), "--bound",
                    "write --bound batch=1..8");
}

Result<std::vector<Bound>> parse_bounds(const std::vector<std::string>& texts) {
  std::vector<Bound> bounds;
  for (const std::string& text : texts) bounds.push_back(TW_TRY(parse_bound(text)));
  return bounds;
}

namespace {

struct SizeRange {
  int64_t low, high;
};

std::vector<SizeRange> single_sizes(const Bound& bound) {
  std::vector<SizeRange> out;
  for (int64_t n = bound.low; n <= bound.high; ++n) out.push_back({n, n});
  return out;
}

// Ranges whose work is done for their largest size. Up to `parts` every size has its own range (from `first` on); then
// each doubling has that many, ending at round numbers.
std::vector<SizeRange> size_ranges(const Bound& bound, int64_t parts) {
  std::vector<SizeRange> out;
  int64_t top = bound.first, step = 1;
  for (int64_t low = bound.low; low <= bound.high; low = top + 1) {
    while (top < low) {
      while (step * parts * 2 <= top) step *= 2;
      top += step;
    }
    if (low == 0) top = 0;  // size 0 is a special case
    top = std::min(top, bound.high);
    out.push_back({low, top});
  }
  return out;
}

int64_t length_of(const Bound& bound) {
  int64_t length = 0;
  return __builtin_sub_overflow(bound.high, bound.low, &length) || length >= (int64_t{1} << 40) ? int64_t{1} << 40
                                                                                                : length + 1;
}

// The ranges of each bound.
Result<std::vector<std::vector<SizeRange>>> chosen_ranges(const std::vector<Bound>& bounds, bool exact) {
  std::vector<bool> cut(bounds.size());
  int64_t parts = 8;
  auto ranges_of = [&](const Bound& b) { return size_ranges(b, b.parts > 0 ? b.parts : parts); };
  for (size_t i = 0; i < bounds.size(); ++i) cut[i] = bounds[i].parts > 0;
  auto plans = [&] {
    double all = 1;
    for (size_t i = 0; i < bounds.size(); ++i)
      all *= static_cast<double>(cut[i] ? static_cast<int64_t>(ranges_of(bounds[i]).size()) : length_of(bounds[i]));
    return all;
  };
  auto too_many = [&](const char* hint) {
    return Diagnostic(
        ErrorCode::kLimitExceeded,
        format("{} takes more than the {} plans that one library can have", bounds_str(bounds), kMostBoundedPlans),
        "--bound", hint);
  };
  for (const Bound& b : bounds)
    if (length_of(b) > (int64_t{1} << 20)) return too_many("narrow the bounds");
  if (!exact && plans() > static_cast<double>(kMostExactSizes))
    while (true) {
      size_t longest = bounds.size();
      for (size_t i = 0; i < bounds.size(); ++i)
        if (!cut[i] && (longest == bounds.size() || length_of(bounds[i]) > length_of(bounds[longest]))) longest = i;
      if (longest == bounds.size()) break;
      cut[longest] = true;
      if (plans() <= static_cast<double>(kMostBoundedPlans)) break;
    }
  while (parts > 2 && plans() > static_cast<double>(kMostBoundedPlans)) parts /= 2;
  if (plans() > static_cast<double>(kMostBoundedPlans))
    return too_many(exact ? "narrow the bounds, or give some sizes with --shape x={16,32,64}x8" : "narrow the bounds");
  std::vector<std::vector<SizeRange>> out;
  for (size_t i = 0; i < bounds.size(); ++i) out.push_back(cut[i] ? ranges_of(bounds[i]) : single_sizes(bounds[i]));
  return out;
}

bool is_prime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

// A second size, whose module shows what depends on the size. It is below the range, so that everything that changes
// within the range differs; far enough away that strides show; and a prime, so that it shares no divisor with windows.
// Sizes that are free together get different ones.
int64_t other_size(int64_t low, int64_t largest, size_t which) {
  for (int64_t n = largest - largest / 3; n >= std::max<int64_t>(low, 2); --n)
    if (is_prime(n) && which-- == 0) return n;
  return std::max(low, largest - 1 - static_cast<int64_t>(which));
}

// The plan for one range of each bound.
BoundedVariant variant_for(const onnx::Model& model, const std::vector<Bound>& bounds, const Shapes& given,
                           const std::vector<SizeRange>& ranges) {
  BoundedVariant out{given, given, {}, {}};
  std::vector<size_t> size_of(bounds.size());
  std::vector<int64_t> smaller;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto [low, high] = ranges[i];
    size_of[i] = out.sizes.size();
    smaller.push_back(low == high ? high : other_size(bounds[i].low, high, out.sizes.size()));
    if (low != high) out.sizes.push_back({bounds[i].name, low, high, smaller.back()});
  }
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    if (given.count(input.name) || !input.type.shape) continue;
    std::vector<int64_t> shape, small;
    bool free = false;
    for (size_t d = 0; d < input.type.shape->size(); ++d) {
      const auto& dim = (*input.type.shape)[d];
      const Bound* bound = dim.value ? nullptr : bound_of(bounds, input.name, d, dim.param);
      const auto i = static_cast<size_t>(bound ? bound - bounds.data() : 0);
      free = free || bound;
      shape.push_back(bound ? ranges[i].high : dim.value.value_or(-1));
      small.push_back(bound ? smaller[i] : shape.back());
      if (bound && ranges[i].low != ranges[i].high) out.dims.push_back({input.name, d, size_of[i]});
    }
    if (!free) continue;
    out.shapes[input.name] = std::move(shape);
    out.smaller[input.name] = std::move(small);
  }
  return out;
}

}  // namespace

Result<std::vector<BoundedVariant>> bounded_variants(const onnx::Model& model, const std::vector<Bound>& bounds,
                                                     const Shapes& given, bool exact) {
  TW_TRY_STATUS(check_names(model, bounds, given));
  const auto ranges = TW_TRY(chosen_ranges(bounds, exact));
  std::vector<BoundedVariant> out;
  std::vector<size_t> at(bounds.size());
  while (true) {
    std::vector<SizeRange> now;
    for (size_t i = 0; i < bounds.size(); ++i) now.push_back(ranges[i][at[i]]);
    out.push_back(variant_for(model, bounds, given, now));
    size_t i = bounds.size();
    while (i > 0 && at[i - 1] + 1 == ranges[i - 1].size()) at[--i] = 0;
    if (i == 0) return out;
    ++at[i - 1];
  }
}

Result<std::vector<relay::FreeDim>> free_inputs(const BoundedVariant& variant, const relay::Module& module) {
  const relay::FunctionNode* main = module.main_function();
  std::vector<relay::FreeDim> out;
  for (const BoundedVariant::Dim& dim : variant.dims) {
    size_t i = 0;
    while (i < main->params.size() && relay::as<relay::VarNode>(main->params[i])->name != dim.input) ++i;
    const auto* type = i < main->params.size() ? as_tensor(main->params[i]->type) : nullptr;
    if (!type || type->dtype.bits < 8 || type->dtype.is_string())
      return Diagnostic(ErrorCode::kUnsupportedModel, format("input '{}' cannot have a free size", dim.input));
    out.push_back({i, dim.axis, dim.size});
  }
  return out;
}

void set_free_sizes(const BoundedVariant& variant, const std::vector<relay::FreeDim>& inputs,
                    const std::vector<relay::FreeDim>& outputs, plan::Plan* plan) {
  plan->inputs.resize(plan->inputs.size() - variant.sizes.size());
  for (size_t s = 0; s < variant.sizes.size(); ++s) {
    plan::FreeSize size{variant.sizes[s].name, variant.sizes[s].low, variant.sizes[s].largest, {}};
    for (bool output : {false, true})
      for (const relay::FreeDim& d : output ? outputs : inputs)
        if (d.size == s)
          size.dims.push_back(
              {output, static_cast<uint32_t>(d.tensor), static_cast<uint32_t>(d.axis), d.add, d.divide});
    plan->free_sizes.push_back(std::move(size));
  }
}

}  // namespace tilewright::driver
