// SPDX-License-Identifier: Apache-2.0
// Object detection: greedy choices among boxes and bins of regions.
#include "lower/strategy.h"
#include "relay/ops/attrs_vision.h"
#include "topi/detection.h"

namespace tilewright::lower {
namespace {
using namespace relay;

bool whole_group(const Problem& p) { return p.group.function->body == p.anchor.expr; }
DataType computed_in(DataType dtype) { return dtype == kFloat64 ? kFloat64 : kFloat32; }

std::shared_ptr<Choice> suppress(const Problem& p) {
  if (!whole_group(p)) return nullptr;
  const auto& a = p.attrs<SuppressAttrs>();
  const auto boxes = p.arg_shape(0), order = p.arg_shape(2);
  topi::SuppressProblem problem{.pictures = boxes[0],
                                .rows = order[0],
                                .count = order[1],
                                .dtype = computed_in(p.arg_dtype(0)),
                                .classes = p.anchor.inputs.size() == 7,
                                .force = a.force_suppress,
                                .count_all = a.count_all,
                                .pixels = a.pixels};
  auto choice = std::make_shared<Choice>();
  // Half of the boxes stay, say, and each is compared with half of those.
  choice->cost.flops = 12.0 * static_cast<double>(problem.rows) * static_cast<double>(problem.count) *
                       static_cast<double>(problem.count) / 4;
  choice->cost.microseconds = choice->cost.flops / (p.target.gflops / 4 * 1e3);
  choice->parallel = problem.rows > 1;
  choice->scratch_bytes = topi::suppress_scratch_bytes(problem, p.target);
  choice->scratch_dtype = problem.dtype;
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    auto operand = [&](size_t i) { return scope.anchor_operand(anchor, i); };
    return topi::suppress(problem,
                          {operand(0), operand(1), operand(2), operand(3), operand(4), operand(5),
                           problem.classes ? operand(6) : topi::Operand()},
                          scope.output(), context);
  };
  return choice;
}

std::shared_ptr<Choice> compact(const Problem& p) {
  if (!whole_group(p)) return nullptr;
  const auto shape = p.arg_shape(0);
  auto choice = std::make_shared<Choice>();
  choice->cost.bytes = static_cast<double>(topi::product(shape)) * 8;
  choice->cost.microseconds = choice->cost.bytes / (p.target.l2_gbps * 1e3);
  choice->parallel = shape[0] > 1;
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    return topi::compact(shape[0], shape[1], scope.anchor_operand(anchor, 0), scope.output(0), scope.output(1),
                         context);
  };
  return choice;
}

using RegionKernel = tir::Stmt (*)(const topi::RegionProblem&, const topi::Operand&, const topi::Operand&,
                                   const topi::View&, const topi::KernelContext&);
template <class A>
topi::RegionProblem regions(const Problem& p) {
  const auto& a = p.attrs<A>();
  topi::RegionProblem problem;
  problem.data = p.arg_shape(0);
  problem.regions = p.arg_shape(1)[0];
  problem.rows = a.pooled_size[0], problem.columns = a.pooled_size[1];
  problem.scale = a.spatial_scale;
  problem.dtype = computed_in(p.arg_dtype(0));
  return problem;
}
std::shared_ptr<Choice> region_kernel(const Problem& p, const topi::RegionProblem& problem, double reads,
                                      RegionKernel kernel) {
  if (!whole_group(p)) return nullptr;
  auto choice = std::make_shared<Choice>();
  choice->cost.flops = 2 * reads * static_cast<double>(topi::product(p.out_shape()));
  choice->cost.microseconds = choice->cost.flops / (p.target.gflops / 4 * 1e3);
  choice->scratch_bytes = topi::region_scratch_bytes(problem, p.target);
  choice->scratch_dtype = problem.dtype;
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    return kernel(problem, scope.anchor_operand(anchor, 0), scope.anchor_operand(anchor, 1), scope.output(), context);
  };
  return choice;
}
std::shared_ptr<Choice> region_align(const Problem& p) {
  const auto& a = p.attrs<RegionAlignAttrs>();
  auto problem = regions<RegionAlignAttrs>(p);
  using Mode = topi::RegionProblem::Mode;
  problem.mode = a.mode == "avg" ? Mode::kAverage : a.mode == "max" ? Mode::kMax : Mode::kMaxPixel;
  problem.samples = std::max<int64_t>(a.sample_ratio, 0);
  problem.half_pixel = a.half_pixel;
  const double each = problem.samples > 0 ? static_cast<double>(problem.samples) : 2;
  return region_kernel(p, problem, 4 * each * each, topi::region_align);
}
std::shared_ptr<Choice> region_pool(const Problem& p) {
  const auto problem = regions<ROIPoolAttrs>(p);
  return region_kernel(p, problem, 4, topi::region_pool);
}

constexpr Implementation kImplementations[] = {
    {"vision.compact", "compact", 10, compact},
    {"vision.region_align", "region_align", 10, region_align},
    {"vision.region_pool", "region_pool", 10, region_pool},
    {"vision.suppress", "suppress.greedy", 10, suppress},
};

}  // namespace

std::span<const Implementation> vision_implementations() { return kImplementations; }

}  // namespace tilewright::lower
