// SPDX-License-Identifier: Apache-2.0
// topk, sort, argsort: the first elements of every line of a tensor, in order.
#include <algorithm>

#include "lower/implementation.h"
#include "relay/ops/attrs.h"
#include "topi/rank.h"
#include "topi/reduce.h"
#include "topi/select.h"

namespace tilewright::lower {
namespace {
using namespace relay;

enum class RankForm { kExtreme, kSelect, kCount };
std::span<const char* const> config_names(RankForm) {
  static constexpr const char* kNames[] = {"extreme", "select", "count"};
  return kNames;
}
struct RankConfig {
  RankForm form = RankForm::kCount;
  bool operator==(const RankConfig&) const = default;
  static constexpr auto fields() { return std::tuple{topi::field("form", &RankConfig::form)}; }
};

struct RankSite {
  topi::RankProblem problem;
  DataType dtype;
  bool values = false, indices = false;
};

size_t place_of_axis(int64_t axis, const std::vector<int64_t>& shape) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
}
// Complete lines (k is the extent).
template <class A>
topi::RankProblem whole_lines(const Problem& p) {
  const auto& attrs = p.attrs<A>();
  const auto shape = p.arg_shape(0);
  const size_t axis = place_of_axis(attrs.axis, shape);
  return {shape, axis, shape.empty() ? 0 : shape[axis], attrs.is_ascend};
}

std::optional<RankSite> rank_site(const Problem& p) {
  const DataType dtype = p.arg_dtype(0);
  const auto shape = p.arg_shape(0);
  if (!whole_group(p) || shape.empty()) return std::nullopt;
  if (!(dtype.is_float() || dtype.is_integral()) || dtype.bits < 8) return std::nullopt;
  if (p.anchor.op == "sort") return RankSite{whole_lines<SortAttrs>(p), dtype, true, false};
  if (p.anchor.op == "argsort") return RankSite{whole_lines<ArgsortAttrs>(p), dtype, false, true};
  const auto& attrs = p.attrs<TopKAttrs>();
  if (p.anchor.inputs.size() != 1) return std::nullopt;
  const size_t axis = place_of_axis(attrs.axis, shape);
  return RankSite{{shape, axis, attrs.k.value_or(shape[axis]), attrs.is_ascend},
                  dtype,
                  attrs.ret_type != "indices",
                  attrs.ret_type != "values"};
}

struct Rank {
  using Config = RankConfig;
  static std::optional<RankSite> site(const Problem& p) { return rank_site(p); }
  static bool fits(const Problem&, const RankSite& s, const Config& c) {
    const topi::RankProblem& problem = s.problem;
    switch (c.form) {
      // An arg-reduction gives the first maximum, and both rank NaN largest. (Not for minima: there NaN would come
      // first, and comes last here.)
      case RankForm::kExtreme:
        return problem.k == 1 && problem.shape[problem.axis] > 0 && (!problem.ascending || !s.dtype.is_float());
      case RankForm::kSelect:
        return topi::can_select(problem, s.dtype);
      case RankForm::kCount:
        return topi::can_rank(problem);
    }
    return false;
  }
  static std::vector<Config> configs(const Problem& p, const RankSite& s, size_t most) {
    std::vector<Config> out;
    for (RankForm form : {RankForm::kExtreme, RankForm::kSelect, RankForm::kCount})
      if (fits(p, s, {form})) out.push_back({form});
    std::stable_sort(out.begin(), out.end(), [&](const Config& a, const Config& b) {
      return cost(p, s, a).microseconds < cost(p, s, b).microseconds;
    });
    out.resize(std::min(out.size(), most));
    return out;
  }
  static topi::Cost cost(const Problem& p, const RankSite& s, const Config& c) {
    if (c.form == RankForm::kSelect) return topi::select_cost(s.problem, s.dtype);
    if (c.form == RankForm::kCount) return topi::rank_cost(s.problem, s.dtype, p.target);
    topi::Cost cost;
    cost.bytes = static_cast<double>(topi::product(s.problem.shape)) * s.dtype.bits / 8;
    cost.microseconds = cost.bytes / (p.target.machine.l2_gbps * 1e3);
    return cost;
  }
  static std::shared_ptr<Choice> make(const Problem& p, const RankSite& s, const Config& c) {
    auto choice = std::make_shared<Choice>();
    if (c.form != RankForm::kExtreme)
      choice->parallel = topi::product(s.problem.shape) > s.problem.shape[s.problem.axis];
    if (c.form == RankForm::kSelect) {
      choice->scratch_bytes = topi::select_scratch_bytes(s.problem, s.dtype);
      choice->scratch_dtype = kInt64;
    }
    choice->emit = [s, form = c.form, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
      const topi::Operand x = scope.anchor_operand(anchor, 0);
      const topi::View* values = s.values ? &scope.output(0) : nullptr;
      const topi::View* indices = s.indices ? &scope.output(s.values ? 1 : 0) : nullptr;
      if (form == RankForm::kCount) return topi::rank(s.problem, s.dtype, x, values, indices, context);
      if (form == RankForm::kSelect) return topi::select_first(s.problem, s.dtype, x, values, indices, context);
      topi::ArgReduceProblem first;
      first.largest = !s.problem.ascending;
      first.shape = s.problem.shape;
      first.axis = static_cast<int>(s.problem.axis);
      first.dtype = s.dtype;
      return topi::extremes(first, x, values, indices, context);
    };
    return choice;
  }
};

constexpr int kRankPlevel = 1;
constexpr Implementation kRankImplementations[] = {
    tuned<Rank>("argsort", "argsort.rank", kRankPlevel),
    tuned<Rank>("sort", "sort.rank", kRankPlevel),
    tuned<Rank>("topk", "topk.rank", kRankPlevel),
};

}  // namespace

std::span<const Implementation> rank_implementations() { return kRankImplementations; }

}  // namespace tilewright::lower
