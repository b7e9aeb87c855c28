// SPDX-License-Identifier: Apache-2.0
// One-dimensional Winograd convolution F(m, r): m outputs of an r-tap correlation from t = m + r - 1 products,
// y = A^T [(G g) * (B^T d)], by Toom and Cook's construction from t - 1 points and infinity (Winograd, Arithmetic
// Complexity of Computations, 1980; Lavin and Gray, 2016). Matrices are made here from the points, at compile time.
#pragma once
#include <vector>

#include "topi/view.h"

namespace tilewright::topi {

// Values computed from `inputs` values by sums of multiples; value k is input k, then the sums in order. Sums that
// several results need are made once.
struct LinearProgram {
  struct Term {
    double factor;
    int value;
  };
  int inputs = 0;
  std::vector<std::vector<Term>> sums;
  std::vector<int> results;  // values

  int operations() const;
  std::vector<double> apply(const std::vector<double>& x) const;  // in double, for the weights' side and tests
};

struct WinogradTransform {
  int outputs = 1, taps = 1;   // m, r
  std::vector<double> points;  // the finite ones; all powers of two or zero, so that A and B are exact
  std::vector<double> kernel;  // G, products() x taps
  LinearProgram data;          // B^T: products() -> products()
  LinearProgram result;        // A^T: products() -> outputs
  int products() const { return outputs + taps - 1; }
};

// One axis of a convolution with a stride, as `stride` interleaved ones of stride 1 whose sums are taken between the
// transforms: phase q sees every stride-th input from q on and the kernel's elements q, q + stride, ... A phase that
// has one tap less than the others adds nothing at infinity, and its inputs end one earlier.
struct WinogradAxis {
  WinogradTransform transform;
  int stride = 1, last_phases = 1;  // last_phases: those that have the point at infinity
  int products() const { return transform.products(); }
  int phases(int point) const { return point == products() - 1 ? last_phases : stride; }
  // Phases over all points; as many inputs does a tile read.
  int slices() const { return (products() - 1) * stride + last_phases; }
  LinearProgram data(int phase) const;
};
WinogradAxis winograd_axis(int outputs, int kernel, int stride);

// Points that keep rounding errors small: 0, 1, -1, 1/2, -2, then 2, -1/2 (Barabasz et al., 2018). F(1, 1) is the
// identity, for axes without taps. products() is at most 8.
WinogradTransform winograd_transform(int outputs, int taps);

// Statements that compute a program's results in registers: `input` is called once per input, in order, `result` once
// per result. `registers` has at least program_registers elements from `first` on; inputs stay there.
int program_registers(const LinearProgram& program);
tir::Stmt emit_program(const LinearProgram& program, const tir::Buffer& registers,
                       const std::function<tir::PrimExpr(int)>& input,
                       const std::function<tir::Stmt(int, tir::PrimExpr)>& result);

}  // namespace tilewright::topi
