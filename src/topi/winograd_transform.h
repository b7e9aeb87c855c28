// SPDX-License-Identifier: Apache-2.0
// One-dimensional Winograd convolution F(m, r): m outputs of an r-tap correlation from t = m + r - 1 products,
// y = A^T [(G g) * (B^T d)], by Toom and Cook's construction from t - 1 points and infinity (Winograd, Arithmetic
// Complexity of Computations, 1980; Lavin and Gray, 2016). Matrices are made here from the points, at compile time.
#pragma once
#include <vector>

#include "topi/view.h"

namespace tilewright::topi {

// A straight-line program of linear combinations; value k is input k, then the sums in order. Common sums are computed
// once.
struct LinearProgram {
  struct Term {
    double factor;
    int value;
  };
  int inputs = 0;
  std::vector<std::vector<Term>> sums;
  std::vector<int> results;  // indices of values

  int operations() const;
  std::vector<double> apply(const std::vector<double>& x) const;  // in double, for weights and tests
};

struct WinogradTransform {
  int outputs = 1, taps = 1;   // m, r
  std::vector<double> points;  // the finite points; all zero or powers of two, so that A and B are exact
  std::vector<double> kernel;  // G, products() x taps
  LinearProgram data;          // B^T: products() -> products()
  LinearProgram result;        // A^T: products() -> outputs
  int products() const { return outputs + taps - 1; }
};

// One strided axis as `stride` interleaved ones of stride 1 whose products are summed between the transforms: phase q
// reads every stride-th input from q on, with kernel elements q, q + stride, ... A phase with one tap fewer has no term
// at infinity, and its inputs end one earlier.
struct WinogradAxis {
  const WinogradTransform* transform = nullptr;  // of winograd_transform
  int stride = 1, last_phases = 1;               // last_phases: the number of phases with a point at infinity
  int products() const { return transform->products(); }
  int phases(int point) const { return point == products() - 1 ? last_phases : stride; }
  // Phases over all points; also the number of inputs of a tile.
  int slices() const { return (products() - 1) * stride + last_phases; }
  LinearProgram data(int phase) const;
};
WinogradAxis winograd_axis(int outputs, int kernel, int stride);

// Points with small rounding errors: 0, 1, -1, 1/2, -2, then 2, -1/2 (Barabasz et al., 2018). F(1, 1) is the identity,
// for axes with a single tap. products() is at most 8. Each is made once: the cost model asks for every configuration.
const WinogradTransform& winograd_transform(int outputs, int taps);

// Emits a program in registers: `input` is called once per input, in order, `result` once per result. `registers` needs
// program_registers elements from `first` on; inputs stay there.
int program_registers(const LinearProgram& program);
tir::Stmt emit_program(const LinearProgram& program, const tir::Buffer& registers,
                       const std::function<tir::PrimExpr(int)>& input,
                       const std::function<tir::Stmt(int, tir::PrimExpr)>& result);

}  // namespace tilewright::topi
