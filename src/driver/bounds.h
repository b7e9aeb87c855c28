// SPDX-License-Identifier: Apache-2.0
// Bounds for free sizes. Within them a library has kernels
// for every size, and needs no compiler where it runs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "base/result.h"
#include "frontend/onnx/proto.h"
#include "relay/passes/program/bound_sizes.h"

namespace tilewright::driver {

struct Bound {
  std::string name;  // name of a dimension; "x.0": the first dimension of input x, for dimensions without a name
  int64_t low = 1, high = 1;
  // Of usual bounds: ranges of each doubling, and the first range's largest size. 0: as fine as a library may be.
  int64_t parts = 0, first = 1;
};

// Limits on a library (each item has a plan of its own): sizes
// compiled exactly, where requested, and ranges of sizes.
inline constexpr int64_t kMostExactSizes = 32, kMostBoundedPlans = 512;

// As metadata of the plan: "batch=1..8 length=1..64".
std::string bounds_str(const std::vector<Bound>& bounds);
// "batch=1..8". Error: InvalidArgument.
Result<Bound> parse_bound(const std::string& text);
Result<std::vector<Bound>> parse_bounds(const std::vector<std::string>& texts);

using Shapes = std::map<std::string, std::vector<int64_t>>;  // by input
// The default bounds: batches of 1 to 8, and 1 to 512 tokens in few ranges, if the model's only free sizes have such
// names. Nothing for a model with other free sizes, whose bounds cannot be guessed. Inputs in `given` have those
// shapes.
std::vector<Bound> usual_bounds(const onnx::Model& model, const Shapes& given);
// One plan of a bounded library: the inputs' shapes, and which of their sizes may be smaller at run time.
struct BoundedVariant {
  Shapes shapes, smaller;                   // smaller: other values of the free sizes, to find out what depends on them
  std::vector<relay::FreeSizeRange> sizes;  // empty: the plan is for exactly these shapes
  struct Dim {
    std::string input;
    size_t axis, size;
  };
  std::vector<Dim> dims;  // input dimensions with a free size
};
// Plans for all combinations of sizes within the bounds, smallest first; inputs in `given` keep those shapes. Few
// combinations get a plan each; otherwise the longest bounds are split into ranges, unless `exact`. Errors:
// InvalidArgument (no such dimension, a bound given twice), LimitExceeded (too many).
Result<std::vector<BoundedVariant>> bounded_variants(const onnx::Model& model, const std::vector<Bound>& bounds,
                                                     const Shapes& given, bool exact);
// Marks the free sizes in the plan of a lowered bounded module.
void set_free_sizes(const BoundedVariant& variant, const std::vector<relay::FreeDim>& inputs,
                    const std::vector<relay::FreeDim>& outputs, plan::Plan* plan);
// The variant's free dimensions, by parameters of the module's main. Error: UnsupportedModel (an input is no tensor
// parameter).
Result<std::vector<relay::FreeDim>> free_inputs(const BoundedVariant& variant, const relay::Module& module);

}  // namespace tilewright::driver
