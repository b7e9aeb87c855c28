// SPDX-License-Identifier: Apache-2.0
// Loop nests for everything without a template of its own: any dtype, any rank. The fallback of every contraction,
// window and scan.
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

// out[i] = epilogue(sum (or maximum) over r of term(i, r)); `reduction` has the extents of r. `dtype` is the
// accumulator's.
struct DirectProblem {
  std::vector<int64_t> shape, reduction;
  DataType dtype = kFloat32;
  bool largest = false;
};
using DirectTerm = std::function<tir::PrimExpr(const Index& out, const Index& r)>;

// A tile of results whose sums are made together, in registers.
struct DirectConfig {
  int lanes = 1;    // of a vector along the last dimension; a row's last vector may be masked
  int columns = 1;  // vectors along the last dimension
  int axis = 0;     // the dimension of rows
  int rows = 1;
  int unroll = 0;  // how many of the innermost reduction loops are unrolled
  bool operator==(const DirectConfig&) const = default;
  static constexpr auto fields() {
    using C = DirectConfig;
    return std::tuple{field("lanes", &C::lanes), field("columns", &C::columns), field("axis", &C::axis),
                      field("rows", &C::rows), field("unroll", &C::unroll)};
  }
};
// Fastest first by the cost model; at most `most`.
std::vector<DirectConfig> configs(const DirectProblem& problem, const Target& target, size_t most);
bool fits(const DirectProblem& problem, const DirectConfig& config, const Target& target);
tir::Stmt direct_reduction(const DirectProblem& problem, const DirectConfig& config, const DirectTerm& term,
                           const View& out, const Epilogue& epilogue, const KernelContext& context);
Cost estimate(const DirectProblem& problem, const DirectConfig& config, const Target& target);

// Prefix sums or products along one axis.
struct ScanProblem {
  std::vector<int64_t> shape;
  size_t axis = 0;
  bool product = false, exclusive = false, reverse = false;
};
tir::Stmt scan(const ScanProblem& problem, const Operand& input, const View& out, const KernelContext& context);

// out = data; then for every update, in order: out[place(u)] = combine(out[place(u)], update(u)). `rows`: the last
// dimension of updates is the result's, and threads divide it; otherwise single-threaded.
enum class Combination { kUpdate, kAdd, kMul, kMin, kMax };
using Place = std::function<Index(const Index& update)>;  // indices inside out
tir::Stmt scatter(Combination how, const std::vector<int64_t>& updates_shape, const Operand& data,
                  const Operand& updates, const Place& place, const View& out, const KernelContext& context,
                  bool rows = false);

}  // namespace tilewright::topi
