// SPDX-License-Identifier: Apache-2.0
// Scalar and vector expressions of the loop IR. Immutable; typed when built. A vector expression has lanes > 1.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "ir/object.h"

namespace tilewright::tir {

// Leaves, binary operators, and the rest. Binary operands have equal dtypes (lanes included); comparisons and logic
// give bool. Integers wrap. Undefined: an integer divided by zero, the smallest integer by -1, a shift by the width or
// more. Floats: Min(a, b) is a < b ? a : b and Max(a, b) is a > b ? a : b, so the second operand where either is NaN
// (x86's minps/maxps): max(0, x) keeps a NaN in x. Generated code may fuse a product and the sum that takes it.
// Div truncates integers, and Mod is its remainder. Mod, FloorDiv, FloorMod, bits and shifts are for integers only.
// clang-format off
#define TW_TIR_BINARY(X)                                                                                  \
  X(Add) X(Sub) X(Mul) X(Div) X(Mod) X(FloorDiv) X(FloorMod) X(Min) X(Max) X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE) \
  X(And) X(Or) X(BitAnd) X(BitOr) X(BitXor) X(ShiftLeft) X(ShiftRight)
#define TW_TIR_OTHER(X) \
  X(IntImm) X(FloatImm) X(Var) X(Not) X(Select) X(Cast) X(Reinterpret) X(Load) X(Read) X(Ramp) X(Broadcast) X(Shuffle) X(Call) X(Extern) \
  X(Let)
// clang-format on
enum class ExprKind : uint8_t {
#define TW_KIND(name) k##name,
  TW_TIR_BINARY(TW_KIND) TW_TIR_OTHER(TW_KIND)
#undef TW_KIND
};

class ExprNode : public Node {
 public:
  ExprNode(ExprKind k, DataType d) : kind(k), dtype(d) {}
  const ExprKind kind;
  const DataType dtype;
};
using PrimExpr = Ref<ExprNode>;

enum class Scope : uint8_t {
  kGlobal,    // a function parameter
  kStack,     // a small array on the kernel's stack (Allocate)
  kRegister,  // an array of SSA values: constant indices only, elements may be vectors (Allocate)
};

// Memory seen as a flat array of `dtype`; indices are in elements of dtype.element() (kRegister: of whole dtype).
class BufferNode : public Node {
 public:
  BufferNode(std::string n, DataType d, int64_t s, Scope sc, int al, bool ro, bool st)
      : name(std::move(n)), dtype(d), size(s), scope(sc), alignment(al), read_only(ro), streamed(st) {}
  const std::string name;
  const DataType dtype;
  const int64_t size;  // elements; bounds for the verifier and the interpreter
  const Scope scope;
  const int alignment;  // guaranteed alignment of element 0, in bytes
  const bool read_only;
  const bool streamed;  // written once, and too large for caches to hold it until it is read
};
using Buffer = Ref<BufferNode>;
// The BufferNode::size of memory whose extent is known only at a call: upper bounds of indices cannot be checked.
inline constexpr int64_t kUnknownSize = -1;
Buffer make_buffer(std::string name, DataType dtype, int64_t size, Scope scope = Scope::kGlobal, int alignment = 0,
                   bool read_only = false, bool streamed = false);

class IntImmNode : public ExprNode {  // integers and bool
 public:
  IntImmNode(DataType d, int64_t v) : ExprNode(ExprKind::kIntImm, d), value(v) {}
  const int64_t value;
};
class FloatImmNode : public ExprNode {
 public:
  FloatImmNode(DataType d, double v) : ExprNode(ExprKind::kFloatImm, d), value(v) {}
  const double value;
};
class VarNode : public ExprNode {
 public:
  VarNode(std::string n, DataType d, bool s) : ExprNode(ExprKind::kVar, d), name(std::move(n)), is_size(s) {}
  const std::string name;
  const bool is_size;  // a size, which is never negative
};
class BinaryNode : public ExprNode {
 public:
  BinaryNode(ExprKind k, DataType d, PrimExpr x, PrimExpr y) : ExprNode(k, d), a(std::move(x)), b(std::move(y)) {}
  const PrimExpr a, b;
};
class NotNode : public ExprNode {
 public:
  explicit NotNode(PrimExpr x) : ExprNode(ExprKind::kNot, x->dtype), a(std::move(x)) {}
  const PrimExpr a;
};
class SelectNode : public ExprNode {  // both sides are evaluated; lanes chosen one by one
 public:
  SelectNode(PrimExpr c, PrimExpr t, PrimExpr f)
      : ExprNode(ExprKind::kSelect, t->dtype), condition(std::move(c)), on_true(std::move(t)), on_false(std::move(f)) {}
  const PrimExpr condition, on_true, on_false;
};
class CastNode : public ExprNode {  // value conversion, C rules (float to int truncates)
 public:
  CastNode(DataType d, PrimExpr v) : ExprNode(ExprKind::kCast, d), value(std::move(v)) {}
  const PrimExpr value;
};
class ReinterpretNode : public ExprNode {  // the same bits as another dtype of the same size
 public:
  ReinterpretNode(DataType d, PrimExpr v) : ExprNode(ExprKind::kReinterpret, d), value(std::move(v)) {}
  const PrimExpr value;
};
// buffer[index]. A scalar index into a scalar buffer gives a scalar. A Ramp(base, 1, n) index gives n contiguous
// elements; any other vector index gathers lane by lane. With a mask (bool x n) lanes that are off are not read and
// give zero. A register buffer (scope kRegister) has vector elements; its index is a constant.
class LoadNode : public ExprNode {
 public:
  LoadNode(DataType d, Buffer b, PrimExpr i, PrimExpr m)
      : ExprNode(ExprKind::kLoad, d), buffer(std::move(b)), index(std::move(i)), mask(std::move(m)) {}
  const Buffer buffer;
  const PrimExpr index, mask;  // mask may be null
};
// source[indices]: an element of a multi-dimensional value without an address yet, such as a tensor expression
// (te/tensor.h). Kernels contain none: lowering replaces them by loads.
class ReadNode : public ExprNode {
 public:
  ReadNode(DataType d, Ref<Node> s, std::string n, std::vector<PrimExpr> i)
      : ExprNode(ExprKind::kRead, d), source(std::move(s)), name(std::move(n)), indices(std::move(i)) {}
  const Ref<Node> source;
  const std::string name;
  const std::vector<PrimExpr> indices;
};
class RampNode : public ExprNode {  // base, base + stride, ... over `lanes`
 public:
  RampNode(PrimExpr b, int64_t s, int lanes)
      : ExprNode(ExprKind::kRamp, b->dtype.with_lanes(lanes)), base(std::move(b)), stride(s) {}
  const PrimExpr base;
  const int64_t stride;
};
class BroadcastNode : public ExprNode {
 public:
  BroadcastNode(PrimExpr v, int lanes)
      : ExprNode(ExprKind::kBroadcast, v->dtype.with_lanes(lanes)), value(std::move(v)) {}
  const PrimExpr value;
};
class ShuffleNode
    : public ExprNode {  // lanes of the concatenated inputs, by constant index; one index extracts a scalar
 public:
  ShuffleNode(std::vector<PrimExpr> v, std::vector<int> i)
      : ExprNode(ExprKind::kShuffle, v[0]->dtype.with_lanes(static_cast<int>(i.size()))),
        vectors(std::move(v)),
        indices(std::move(i)) {}
  const std::vector<PrimExpr> vectors;
  const std::vector<int> indices;
};
// Built-in functions of the loop IR, all pure. Math ones work on any lanes and are for floats; popcount and clz (the
// width for zero) for integers. dot4(sum, a, b), all int32: sum + a0*b0 + a1*b1 + a2*b2 + a3*b3, where a's bytes,
// the lowest first, are unsigned and b's signed; it wraps as sums do. dot2: the same of the signed halves of two words.
// dot2_bfloat16(sum, a, b): float32 sum plus the products of the halves of two int32 words as bfloat16; how the steps
// round, and whether denormals count, is the processor's.
// exp_nonpositive: e^x of x <= 0, whose results below the normal numbers may be zero.
// even_bytes(a, b): a word whose halves are those of a plus b's bytes 0 and 2, signed; odd_bytes: 1 and 3. low_halves,
// high_halves(a, b): that half of a, and above it that of b. round takes halves to even. reduce_*: while the lanes are
// even in number, lane i with lane i + n/2; then the rest from first to last.
// clang-format off
#define TW_TIR_INTRINSICS(X)                                                                                 \
  X(fma, 3) X(exp, 1) X(exp_nonpositive, 1) X(log, 1) X(sqrt, 1) X(rsqrt, 1) X(tanh, 1) X(erf, 1) X(sigmoid, 1) X(pow, 2) X(floor, 1) \
  X(ceil, 1) X(round, 1) X(trunc, 1) X(fabs, 1) X(sin, 1) X(cos, 1) X(tan, 1) X(asin, 1) X(acos, 1) X(atan, 1) \
  X(sinh, 1) X(cosh, 1) X(asinh, 1) X(acosh, 1) X(atanh, 1) X(exp2, 1) X(log2, 1) X(log10, 1) X(log1p, 1) X(fmod, 2) \
  X(copysign, 2) X(isnan, 1) X(isinf, 1) X(isfinite, 1) X(popcount, 1) X(clz, 1)                             \
  X(reduce_add, 1) X(reduce_max, 1) X(reduce_min, 1)  /* vector -> scalar, fixed order */                      \
  X(ldexp_int, 2)                                     /* x * 2^n, n int32: exponent arithmetic for exp */     \
  X(dot4, 3) X(dot2, 3) X(dot2_bfloat16, 3) X(even_bytes, 2) X(odd_bytes, 2) X(low_halves, 2) X(high_halves, 2) /* words; above */ \
  X(if_then_else, 3)                                  /* scalar condition; only the chosen side is evaluated */
// clang-format on
enum class Intrinsic : uint8_t {
#define TW_INTRINSIC(name, arity) k_##name,
  TW_TIR_INTRINSICS(TW_INTRINSIC)
#undef TW_INTRINSIC
};
const char* intrinsic_name(Intrinsic op);
int intrinsic_arity(Intrinsic op);

class CallNode : public ExprNode {
 public:
  CallNode(DataType d, Intrinsic o, std::vector<PrimExpr> a)
      : ExprNode(ExprKind::kCall, d), op(o), args(std::move(a)) {}
  const Intrinsic op;
  const std::vector<PrimExpr> args;
};
// A scalar C function without side effects on what the kernel sees; or a function that a script lowers.
class ExternNode : public ExprNode {
 public:
  ExternNode(DataType d, std::string n, std::vector<PrimExpr> a)
      : ExprNode(ExprKind::kExtern, d), name(std::move(n)), args(std::move(a)) {}
  const std::string name;
  const std::vector<PrimExpr> args;
};
class LetNode : public ExprNode {
 public:
  LetNode(PrimExpr v, PrimExpr x, PrimExpr b)
      : ExprNode(ExprKind::kLet, b->dtype), var(std::move(v)), value(std::move(x)), body(std::move(b)) {}
  const PrimExpr var, value, body;
};

bool is_binary(ExprKind kind);
bool is_comparison(ExprKind kind);  // EQ NE LT LE GT GE
const char* kind_name(ExprKind kind);
template <class T>
const T* as(const PrimExpr& e) {
  return dynamic_cast<const T*>(e.get());
}

// Builders: fold constants and trivial identities (x+0, x*1, x*0 for integers); a dtype mismatch is an internal error.
PrimExpr make_int(int64_t value, DataType dtype = kInt64);
PrimExpr make_float(double value, DataType dtype = kFloat32);
PrimExpr make_const(DataType dtype, double value);  // broadcast when dtype has lanes
PrimExpr make_var(std::string name, DataType dtype = kInt64, bool is_size = false);
PrimExpr binary(ExprKind kind, PrimExpr a, PrimExpr b);  // a scalar operand is broadcast to the other's lanes
PrimExpr operator+(const PrimExpr& a, const PrimExpr& b);
PrimExpr operator-(const PrimExpr& a, const PrimExpr& b);
PrimExpr operator*(const PrimExpr& a, const PrimExpr& b);
PrimExpr operator+(const PrimExpr& a, int64_t b);
PrimExpr operator-(const PrimExpr& a, int64_t b);
PrimExpr operator*(const PrimExpr& a, int64_t b);
PrimExpr div(PrimExpr a, PrimExpr b);  // floats: IEEE; integers: truncating
PrimExpr floordiv(PrimExpr a, PrimExpr b);
PrimExpr floormod(PrimExpr a, PrimExpr b);
PrimExpr floordiv(const PrimExpr& a, int64_t b);
PrimExpr floormod(const PrimExpr& a, int64_t b);
PrimExpr min(PrimExpr a, PrimExpr b);
PrimExpr max(PrimExpr a, PrimExpr b);
PrimExpr lt(PrimExpr a, PrimExpr b);
PrimExpr le(PrimExpr a, PrimExpr b);
PrimExpr gt(PrimExpr a, PrimExpr b);
PrimExpr ge(PrimExpr a, PrimExpr b);
PrimExpr eq(PrimExpr a, PrimExpr b);
PrimExpr ne(PrimExpr a, PrimExpr b);
PrimExpr logical_and(PrimExpr a, PrimExpr b);
PrimExpr logical_or(PrimExpr a, PrimExpr b);
PrimExpr logical_not(PrimExpr a);
PrimExpr select(PrimExpr condition, PrimExpr on_true, PrimExpr on_false);
PrimExpr cast(DataType dtype, PrimExpr value);  // keeps the value's lanes when dtype has one lane
PrimExpr reinterpret(DataType dtype, PrimExpr value);
PrimExpr ramp(PrimExpr base, int64_t stride, int lanes);
PrimExpr broadcast(PrimExpr value, int lanes);  // a no-op for lanes == 1
PrimExpr shuffle(std::vector<PrimExpr> vectors, std::vector<int> indices);
PrimExpr intrinsic(Intrinsic op, std::vector<PrimExpr> args);
PrimExpr extern_value(DataType dtype, std::string name, std::vector<PrimExpr> args);
PrimExpr fma(PrimExpr a, PrimExpr b, PrimExpr c);  // a*b + c, one rounding
PrimExpr let(PrimExpr var, PrimExpr value, PrimExpr body);
PrimExpr load(Buffer buffer, PrimExpr index, PrimExpr mask = {});
PrimExpr read(DataType dtype, Ref<Node> source, std::string name, std::vector<PrimExpr> indices);

// The value of an integer, bool or float constant, also if broadcast to lanes.
std::optional<int64_t> as_const_int(const PrimExpr& e);
std::optional<double> as_const_float(const PrimExpr& e);

}  // namespace tilewright::tir
