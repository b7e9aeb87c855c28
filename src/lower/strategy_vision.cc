// SPDX-License-Identifier: Apache-2.0
// Object detection: box suppression and region pooling; resizing and sampling of images.
#include <algorithm>
#include <limits>
#include <map>

#include "lower/implementation.h"
#include "relay/ops/attrs.h"
#include "relay/ops/image/attrs_image.h"
#include "relay/ops/image/attrs_vision.h"
#include "topi/detection.h"
#include "topi/grid_sample.h"
#include "topi/resize.h"

namespace tilewright::lower {
namespace {
using namespace relay;

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
  // Assumes that half of the boxes are kept, and each is compared with half of those.
  choice->cost.flops = 12.0 * static_cast<double>(problem.rows) * static_cast<double>(problem.count) *
                       static_cast<double>(problem.count) / 4;
  choice->cost.microseconds = choice->cost.flops / (p.target.machine.gflops / 4 * 1e3);
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
  choice->cost.microseconds = choice->cost.bytes / (p.target.machine.l2_gbps * 1e3);
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
  problem.planes = a.layout == "NCHW";
  if (problem.planes) std::rotate(problem.data.begin() + 1, problem.data.begin() + 2, problem.data.end());
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
  choice->cost.microseconds = choice->cost.flops / (p.target.machine.gflops / 4 * 1e3);
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

// image.resize2d by tables of taps.
std::shared_ptr<Choice> resize2d(const Problem& p) {
  using C = topi::ResizeCoordinates;
  using R = topi::ResizeRounding;
  if (!p.anchor.direct()) return nullptr;
  const auto& attrs = p.attrs<Resize2DAttrs>();
  auto data = p.arg_shape(0), out = p.out_shape();
  // Nearest neighbour copies elements of any dtype; interpolation is in float32 or float64.
  const DataType dtype = p.arg_dtype(0);
  const bool sums = attrs.method != "nearest_neighbor";
  if (as_tensor(p.anchor.call->type)->dtype != dtype || (sums && dtype != kFloat32 && dtype != kFloat64))
    return nullptr;
  if (attrs.layout.substr(0, 4) != "NCHW" || attrs.antialias || data.size() != out.size() || data.size() < 4)
    return nullptr;
  topi::ResizeAxis axis;
  if (attrs.method == "nearest_neighbor")
    axis.method = topi::ResizeMethod::kNearest;
  else if (attrs.method == "linear")
    axis.method = topi::ResizeMethod::kLinear;
  else
    axis.method = topi::ResizeMethod::kCubic;
  static const std::map<std::string, C> kCoordinates{{"half_pixel", C::kHalfPixel},
                                                     {"pytorch_half_pixel", C::kPytorchHalfPixel},
                                                     {"align_corners", C::kAlignCorners},
                                                     {"asymmetric", C::kAsymmetric},
                                                     {"half_pixel_symmetric", C::kHalfPixelSymmetric},
                                                     {"tf_half_pixel_for_nn", C::kTfHalfPixelForNearest}};
  auto coordinates = kCoordinates.find(attrs.coordinate_transformation_mode);
  if (coordinates == kCoordinates.end()) return nullptr;
  axis.coordinates = coordinates->second;
  static const std::map<std::string, R> kRounding{{"round", R::kRoundPreferCeil},
                                                  {"round_prefer_floor", R::kRoundPreferFloor},
                                                  {"round_prefer_ceil", R::kRoundPreferCeil},
                                                  {"floor", R::kFloor},
                                                  {"ceil", R::kCeil}};
  const bool corners = axis.coordinates == C::kAlignCorners;
  auto rounding = kRounding.find(!attrs.rounding_method.empty() ? attrs.rounding_method : corners ? "round" : "floor");
  if (rounding == kRounding.end()) return nullptr;
  axis.rounding = rounding->second;
  axis.cubic_coefficient = attrs.cubic_alpha;
  axis.exclude_outside = attrs.cubic_exclude != 0;
  auto choice = std::make_shared<Choice>();
  for (size_t d : {size_t{2}, size_t{3}}) {
    axis.in = data[d];
    axis.out = out[d];
    axis.scale = attrs.scales.size() == 2 ? attrs.scales[d - 2] : 0;
    choice->tables.push_back(topi::resize_indices(axis));
    choice->tables.push_back(topi::resize_weights(axis, topi::resized_in(dtype)));
  }
  choice->cost.bytes = 8;
  for (int64_t d : out) choice->cost.bytes *= static_cast<double>(d);
  choice->cost.microseconds = choice->cost.bytes / (p.target.machine.l2_gbps * 1e3);
  Anchor anchor = p.anchor;
  auto input = static_cast<size_t>(p.input_index(0)), tables = p.group.inputs.size();
  auto method = axis.method;
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    topi::ResizeTables t{scope.input(tables), scope.input(tables + 1), scope.input(tables + 2),
                         scope.input(tables + 3)};
    return topi::resize2d(method, t, scope.input(input), scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

std::shared_ptr<Choice> grid_sample(const Problem& p) {
  const auto& a = p.attrs<GridSampleAttrs>();
  const DataType dtype = p.arg_dtype(0);
  if (p.anchor.inputs[0] < 0 || !dtype.is_float()) return nullptr;
  using G = topi::GridSampleProblem;
  G problem;
  problem.method = a.method == "nearest"    ? G::Method::kNearest
                   : a.method == "bilinear" ? G::Method::kLinear
                                            : G::Method::kCubic;
  problem.padding = a.padding_mode == "zeros"    ? G::Padding::kZeros
                    : a.padding_mode == "border" ? G::Padding::kBorder
                                                 : G::Padding::kReflection;
  problem.align_corners = a.align_corners;
  problem.data = p.arg_shape(0), problem.out = p.out_shape();
  const int64_t plane = topi::product({problem.data.begin() + 2, problem.data.end()});
  problem.dtype = plane > std::numeric_limits<int32_t>::max() ? kFloat64 : computed_in(dtype);
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, p.target);
  choice->scratch_bytes = topi::grid_sample_scratch_bytes(problem, p.target);
  choice->scratch_dtype = topi::grid_sample_scratch_dtype(problem);
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    return topi::grid_sample(problem, scope.input(static_cast<size_t>(anchor.inputs[0])),
                             scope.anchor_operand(anchor, 1), scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

constexpr Implementation kVisionImplementations[] = {
    fixed<grid_sample>("image.grid_sample", "grid_sample", 10),
    fixed<resize2d>("image.resize2d", "resize2d.tables", 10),
    fixed<compact>("vision.compact", "compact", 10),
    fixed<region_align>("vision.region_align", "region_align", 10),
    fixed<region_pool>("vision.region_pool", "region_pool", 10),
    fixed<suppress>("vision.suppress", "suppress.greedy", 10),
};

}  // namespace

std::span<const Implementation> vision_implementations() { return kVisionImplementations; }

}  // namespace tilewright::lower
