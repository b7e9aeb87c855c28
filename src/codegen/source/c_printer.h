// SPDX-License-Identifier: Apache-2.0
// Prints statements and expressions of the loop IR as C. Common subexpressions of a statement become constants
// in front of it; so do parts of long expressions, for readability and compilers' limits. Vectors, where the target has
// them, are GNU C's (c_vectors.h); what these have no operator for is computed lane by lane.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "codegen/source/c_vectors.h"
#include "tir/stmt.h"

namespace tilewright::codegen {

class CPrinter {
 public:
  explicit CPrinter(bool narrow_indices = false, bool vectors = false) : narrow_(narrow_indices), vectors_(vectors) {}
  // Declares a parameter and returns its name.
  std::string declare(const tir::Buffer& buffer);
  void print(const tir::Stmt& stmt);
  const std::string& text() const { return text_; }
  bool uses(const tir::BufferNode* buffer) const { return used_.count(buffer) != 0; }
  // Declarations of the functions that it calls, which are defined elsewhere.
  std::string called() const;
  const std::optional<Diagnostic>& error() const { return error_; }

 private:
  // Precedence of a text's outermost operator.
  enum Level { kChoice, kOr, kAnd, kBits, kCompare, kSum, kProduct, kUnary, kAtom };
  struct Code {
    std::string text;
    Level level = kAtom;
  };

  void line(const std::string& text);
  void fail(std::string message);
  std::string type_of(DataType dtype);
  std::string fresh(const std::string& name);
  const std::string& name_of(const tir::PrimExpr& var);

  // Statements (c_statements.cc).
  void print_in_scope(const tir::Stmt& stmt);  // in braces if it declares something
  void print_seq(const tir::SeqNode& s);
  void print_for(const tir::ForNode& s);
  void print_if(const tir::IfNode& s);
  void print_while(const tir::WhileNode& s);
  void print_store(const tir::StoreNode& s);
  void print_let(const tir::LetStmtNode& s);
  void print_allocate(const tir::AllocateNode& s);
  void print_registers(const tir::AllocateNode& s);
  void print_prefetch(const tir::PrefetchNode& s);
  void print_call_extern(const tir::CallExternNode& s);
  void begin_statement(std::initializer_list<const tir::PrimExpr*> roots);

  // Expressions (c_expressions.cc).
  std::string at(const tir::PrimExpr& e, Level least);  // parenthesised if its precedence is below `least`
  Code code(const tir::PrimExpr& e);
  Code uncached(const tir::PrimExpr& e);
  Code call_extern(const tir::ExternNode& n);
  Code hoisted(const Code& value, DataType dtype);
  Code binary(const tir::BinaryNode& n);
  Code float_binary(const tir::BinaryNode& n);
  Code integer_binary(const tir::BinaryNode& n);
  Code quotient(const tir::BinaryNode& n);
  std::optional<Code> decided(const tir::BinaryNode& n);
  Code cast(const tir::CastNode& n);
  Code reinterpret(const tir::ReinterpretNode& n);
  Code call(const tir::CallNode& n);
  std::string alternative(const tir::PrimExpr& e);
  Code choice(const tir::CallNode& n);
  // A register, which may be an array of them.
  std::string element_of(const tir::BufferNode& buffer, const tir::PrimExpr& index);
  Code wrapped(DataType dtype, const std::string& text);
  Code function(const std::string& name, const tir::BinaryNode& n);
  Code infix(const tir::BinaryNode& n, const char* sign, Level level, Level left, Level right);
  // Vectors (c_vector_expressions.cc, c_vector_memory.cc).
  Code vector(const tir::PrimExpr& e);
  Code vector_binary(const tir::BinaryNode& n);
  Code vector_shift(const tir::BinaryNode& n);
  Code vector_cast(const tir::CastNode& n);
  Code vector_reinterpret(const tir::ReinterpretNode& n);
  Code vector_call(const tir::CallNode& n);
  Code vector_load(const tir::LoadNode& n);
  Code ramp(const tir::RampNode& n);
  Code shuffled(const tir::ShuffleNode& n, const CVector& type, const std::vector<std::string>& inputs);
  Code shuffle_to_scalar(const tir::ShuffleNode& n);
  Code reduced(const tir::CallNode& n);
  Code lane_by_lane(const tir::PrimExpr& e);
  Code literal(const CVector& type, const std::vector<std::string>& lanes);
  std::string one_lane(const tir::PrimExpr& e, int lane);  // of a vector, or a scalar itself
  std::string held(const tir::PrimExpr& e);                // in a variable
  std::string whole(const tir::PrimExpr& e) { return at(e, kAtom); }
  // The lanes of a bool vector as all bits or none of `bits` wide integers.
  std::string mask(const tir::PrimExpr& e, int bits);
  std::string mask_uncached(const tir::PrimExpr& e, int bits);
  std::string compared(const tir::BinaryNode& n, int bits);
  int mask_bits(const tir::PrimExpr& e);  // the width that costs least
  void print_vector_store(const tir::StoreNode& s);
  std::string address(const tir::BufferNode* buffer, const tir::PrimExpr& index);

  bool is_index(const tir::PrimExpr& e);  // computed from loop variables and constants: cannot overflow
  bool is_non_negative(const tir::PrimExpr& e);

  bool narrow_;  // all int64 values are indices and fit 32 bits
  bool vectors_;
  std::string text_;
  int indent_ = 1;
  int temporaries_ = 0;
  std::optional<Diagnostic> error_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<const tir::ExprNode*, std::string> names_;
  std::unordered_set<const tir::ExprNode*> index_vars_, non_negative_vars_;
  std::unordered_map<const tir::BufferNode*, std::string> buffers_;
  std::map<std::string, std::string> called_;                 // by name
  std::unordered_set<const tir::BufferNode*> used_, arrays_;  // arrays_: registers that are indexed by a variable
  // For the current statement.
  std::unordered_map<const tir::ExprNode*, int> uses_;
  std::unordered_map<const tir::ExprNode*, Code> memo_;
  std::vector<const tir::ExprNode*> memo_order_;
  std::unordered_map<const tir::ExprNode*, bool> index_memo_, sign_memo_;
  std::map<std::pair<const tir::ExprNode*, int>, std::string> masks_;
  std::vector<tir::PrimExpr> made_;  // keeps keys alive
};

}  // namespace tilewright::codegen
