// SPDX-License-Identifier: Apache-2.0
// One kernel's body as LLVM IR.
//
// Memory: buffers of scope kRegister become one stack slot per element, which SROA turns into SSA values; addresses are
// sums of terms ordered from the outermost loop inwards plus one constant, so that repeated accesses of an unrolled
// tile share everything but a displacement. A node that occurs twice in one expression is computed once; nothing is
// remembered from statement to statement.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "codegen/llvm/math.h"
#include "ir/target.h"
#include "tir/passes/byte_functions.h"
#include "tir/stmt.h"

namespace llvm {
class AllocaInst;
class BasicBlock;
class Constant;
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace tilewright::codegen {

class KernelEmitter {
 public:
  // Emits at `builder`'s insertion point; stack slots go to the front of `entry`.
  KernelEmitter(llvm::IRBuilderBase& builder, llvm::BasicBlock* entry, const Target& target);
  void bind_parameter(const tir::Buffer& buffer, llvm::Value* pointer);
  void bind_index(const tir::PrimExpr& var, llvm::Value* value);  // a non-negative loop-like variable
  // Expressions that are looked up in tables.
  void look_up(std::unordered_map<const tir::ExprNode*, tir::ByteFunction> functions) {
    byte_functions_ = std::move(functions);
  }
  void emit(const tir::Stmt& stmt);
  // The first construct that could not be emitted; the emitted code must then be discarded.
  const std::optional<Diagnostic>& error() const { return error_; }

 private:
  using V = llvm::Value*;
  struct Slots {
    V memory = nullptr;                       // kGlobal, kStack
    std::vector<llvm::AllocaInst*> elements;  // kRegister
  };
  // index = sum of scale * term (outermost first) + offset
  struct Linear {
    struct Term {
      const tir::ExprNode* expr;
      int64_t scale;
      int depth;
    };
    std::vector<Term> terms;
    int64_t offset = 0;
  };

  V fail(std::string message);
  V undefined(DataType dtype);

  // Expressions (emit_expr.cc).
  V emit(const tir::PrimExpr& e) { return emit(e.get()); }
  V emit(const tir::ExprNode* e);
  V emit_uncached(const tir::ExprNode* e);
  V emit_constant(DataType dtype, double number);
  V emit_binary(const tir::BinaryNode* e);
  V emit_float_binary(tir::ExprKind kind, V a, V b);
  V emit_integer_binary(const tir::BinaryNode* e, V a, V b);
  V emit_shuffle(const tir::ShuffleNode* e);
  V emit_call(const tir::CallNode* e);
  V emit_extern(const std::string& name, llvm::Type* result, const std::vector<V>& args);
  V emit_reduce(const tir::CallNode* e);
  V emit_dot4(V sum, V a, V b);
  // Sums of the two products of signed halves in each lane of 32 bits; null without an instruction for them.
  V emit_x86_pairs(V a, V b);
  V emit_dot2_bfloat16(V sum, V a, V b);
  V emit_table(V source, const std::array<uint8_t, 256>& table);
  V emit_word_of_halves(const tir::CallNode* e);
  V emit_arm_dot4(V sum, V a, V b);
  V emit_choice(const tir::CallNode* e);
  // Bytes of sums (emit_rounded.cc); null for other casts.
  V emit_rounded_product(const tir::CastNode* e);
  V splat(V value, int lanes);
  V concat(V a, V b);
  V lane(V vector, int i);
  size_t mark() const { return memo_order_.size(); }
  void forget(size_t mark);
  bool is_index(V v) const;  // computed from loop variables and constants: arithmetic on it cannot overflow
  bool is_non_negative(V v) const;
  V note(V v, bool index, bool non_negative);

  // Quotients (emit_quotient.cc).
  V emit_quotient(tir::ExprKind kind, DataType dtype, V a, V b);
  V emit_truncated_quotient(DataType dtype, bool is_signed, V a, V b);
  V emit_wide_quotient(bool is_signed, V a, V b);
  bool divides_by_floats(DataType dtype, const llvm::Value* a, const llvm::Value* b) const;

  // Memory (emit_memory.cc).
  V emit_load(const tir::LoadNode* e);
  void emit_store(const tir::StoreNode* s);
  void emit_prefetch(const tir::PrefetchNode* s);
  V address(const tir::BufferNode* buffer, const tir::ExprNode* index, bool inside = true);
  V address(const tir::BufferNode* buffer, V index);
  V contiguous_load(const tir::BufferNode* buffer, V pointer, int lanes, V mask);
  V strided_load(const tir::LoadNode* e, const tir::RampNode* ramp);
  V load_pieces(const tir::BufferNode* buffer, llvm::FixedVectorType* type, V pointer, const llvm::Constant* mask);
  void store_streamed(V value, V pointer, llvm::Align align);
  void store_pieces(const tir::BufferNode* buffer, V value, V pointer, const llvm::Constant* mask);
  V gather(const tir::LoadNode* e);
  Slots* slots_of(const tir::BufferNode* buffer);
  llvm::AllocaInst* register_slot(const tir::BufferNode* buffer, const tir::PrimExpr& index);
  void linearize(const tir::ExprNode* e, int64_t scale, Linear* out, int* budget);
  int depth_of(const tir::ExprNode* e, int* budget);
  llvm::AllocaInst* allocate_slot(llvm::Type* type, int alignment, const std::string& name);

  // Statements (emit_stmt.cc).
  void emit_for(const tir::ForNode* s);
  void emit_if(const tir::IfNode* s);
  void emit_while(const tir::WhileNode* s);
  void emit_call_extern(const tir::CallExternNode* s);
  void emit_allocate(const tir::BufferNode* buffer);

  llvm::IRBuilderBase& b_;
  llvm::BasicBlock* entry_;
  const Target& target_;
  VectorMath math_;
  std::unordered_map<const tir::ExprNode*, tir::ByteFunction> byte_functions_;
  std::optional<Diagnostic> error_;
  std::unordered_map<const tir::ExprNode*, V> vars_;
  std::unordered_map<const tir::ExprNode*, int> var_depth_;
  // index variables bound by lets, with their values
  std::unordered_map<const tir::ExprNode*, const tir::ExprNode*> lets_;
  std::unordered_map<const tir::BufferNode*, Slots> buffers_;
  std::unordered_map<const tir::ExprNode*, V> memo_;
  std::vector<const tir::ExprNode*> memo_order_;
  std::unordered_set<V> index_values_, non_negative_;
  int loop_depth_ = 0;
  int64_t stack_bytes_ = 0;
};

}  // namespace tilewright::codegen
