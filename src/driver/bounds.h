// SPDX-License-Identifier: Apache-2.0
// Bounds of sizes that a model leaves free. Within them a library has kernels for every size, and needs no compiler
// where it runs.
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
  std::string name;  // of a dimension; "x.0": the first dimension of input x, which may have no name of its own
  int64_t low = 1, high = 1;
};

// What a library holds at most (each of them has a plan of its own): sizes that are compiled for themselves where that
// is asked for, and ranges of sizes.
inline constexpr int64_t kMostExactSizes = 32, kMostBoundedPlans = 512;

// Metadata of the plan: "batch=1..8 length=1..64".
std::string bounds_str(const std::vector<Bound>& bounds);
// "batch=1..8". Error: InvalidArgument.
Result<Bound> parse_bound(const std::string& text);
Result<std::vector<Bound>> parse_bounds(const std::vector<std::string>& texts);

using Shapes = std::map<std::string, std::vector<int64_t>>;  // by input
// What is taken where nothing is said: batches of 1 to 8, if the only sizes that the model leaves free are called so.
// Nothing for a model with other free sizes, whose bounds nobody can guess. Inputs in `given` have their shapes.
std::vector<Bound> usual_bounds(const onnx::Model& model, const Shapes& given);
// One plan of a bounded library: the shapes of the inputs, and which sizes may be smaller than those say.
struct BoundedVariant {
  Shapes shapes, smaller;  // the second: for each free size another one, from which is seen what depends on it
  std::vector<relay::FreeSizeRange> sizes;  // none: the plan is for these shapes alone
  struct Dim {
    std::string input;
    size_t axis, size;
  };
  std::vector<Dim> dims;  // of inputs, that are a free size
};
// Plans that have every combination of sizes within the bounds, the smallest first; inputs in `given` keep those
// shapes. Of few combinations each is one; else the longest bounds are cut into ranges, unless `exact`. Errors:
// InvalidArgument (no such dimension, a bound twice), LimitExceeded (too many).
Result<std::vector<BoundedVariant>> bounded_variants(const onnx::Model& model, const std::vector<Bound>& bounds,
                                                     const Shapes& given, bool exact);
// What lowering made of a bounded module, as a plan with free sizes.
void set_free_sizes(const BoundedVariant& variant, const std::vector<relay::FreeDim>& inputs,
                    const std::vector<relay::FreeDim>& outputs, plan::Plan* plan);
// The variant's dimensions by the parameters of the module's main. Error: UnsupportedModel (one is no tensor of it).
Result<std::vector<relay::FreeDim>> free_inputs(const BoundedVariant& variant, const relay::Module& module);

}  // namespace tilewright::driver
