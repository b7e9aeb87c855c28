// SPDX-License-Identifier: Apache-2.0
// The compiler of one function of a program. Within one body (of a function, a branch, a clause) operators are gathered
// into regions: an operator's level is one above those of the values it must wait for, and the operators of one level
// form one packed function. function_compiler.cc: levels and regions; control.cc: everything that is no operator of a
// region.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "program/node_facts.h"
#include "program/region_source.h"
#include "runtime/vm/program.h"

namespace tilewright::program {

using Registers = std::unordered_map<const ExprNode*, int64_t>;

Diagnostic unsupported(const Expr& e, std::string what);

// The program under construction, and state shared by its functions.
class ProgramCompiler {
 public:
  explicit ProgramCompiler(const relay::Module& module);
  Result<runtime::vm::Program> run(const std::string& target);

  NodeFacts facts;
  // Whether the module creates or accesses references: calls are then executed in order.
  bool has_references = false;

  Result<int64_t> add_closure(const relay::FunctionNode& function, const std::vector<Expr>& captured,
                              const ExprNode* self);
  Result<int64_t> function_index(const Expr& global) const;
  int64_t add_constant(const Tensor& t);
  int64_t add_region(const char* format, const Expr& function);
  // `function` may be followed by lines with attributes.
  int64_t add_host(const std::string& function, size_t arguments);

 private:
  Status describe_main();
  // Compiles a function. `captured` values come before its parameters; `self` is the closure itself inside its body.
  Status compile(size_t index, const std::string& name, const relay::FunctionNode& function,
                 const std::vector<Expr>& captured, const ExprNode* self);

  const relay::Module& module_;
  runtime::vm::Program program_;
  RegionWriter regions_;
  std::map<std::string, int64_t> index_;
  int depth_ = 0;
};

class FunctionCompiler {
 public:
  // `self` is the function's own value, if its body can call it.
  FunctionCompiler(ProgramCompiler& program, std::string name, const ExprNode* self) : program_(program), self_(self) {
    f_.name = std::move(name);
  }
  int64_t parameter(const std::string& name);
  // Compiles everything behind the parameters.
  Status whole(const Expr& root, Registers known, size_t captured);
  int64_t fresh() { return f_.registers++; }
  size_t emit(runtime::vm::Opcode op, std::vector<int64_t> fields);
  runtime::vm::Function take() { return std::move(f_); }

 private:
  // The state of one body.
  struct Scope {
    Registers known;          // values that are in registers
    std::vector<Expr> order;  // in post order, without constants and values known before
    std::unordered_map<const ExprNode*, int> level;
    std::unordered_set<const ExprNode*> kept;  // operators whose values are used outside of their region
    std::unordered_map<const ExprNode*, std::vector<int64_t>> results;  // registers of nodes with several results
    const ExprNode* tail = nullptr;                                     // the function's tail expression
  };
  static constexpr int64_t kReturned = -1;  // pseudo-register of a body that has jumped away

  Result<int64_t> body(const Expr& root, Registers known, bool tail);
  void find_order(Scope& s, const Expr& root);
  int find_levels(Scope& s);
  void find_kept(Scope& s, const Expr& root);
  std::vector<Expr> operands(const Expr& e);
  static std::vector<Expr> outside_variables(const std::vector<Expr>& bodies, const std::vector<Expr>& bound);
  std::vector<Expr> outside_values(const std::vector<Expr>& bodies, const std::vector<Expr>& bound);
  bool is_operator(const Expr& e);
  bool is_self_call(const Expr& e);

  struct RegionBuilder;
  Status region(Scope& s, int level);
  Status evaluate(Scope& s, const Expr& e);
  std::vector<int64_t> invoke(const char* format, const std::vector<Expr>& params,
                              const std::vector<int64_t>& arguments, const std::vector<Expr>& outputs);

  Status control(Scope& s, const Expr& e);
  Result<int64_t> branch(Scope& s, const Expr& e);
  Result<int64_t> call(Scope& s, const relay::CallNode& c);
  Status jump_to_self(Scope& s, const relay::CallNode& c);
  Status host_call(Scope& s, const Expr& e);
  Result<std::vector<int64_t>> host_operands(Scope& s, const Expr& e);
  Result<int64_t> reference(Scope& s, const Expr& e);
  Result<int64_t> closure(Scope& s, const Expr& e);
  Result<int64_t> match(Scope& s, const relay::MatchNode& m, bool tail);
  void test_pattern(const relay::Pattern& p, int64_t value, Registers* known, std::vector<size_t>* misses);
  Result<int64_t> value_of(Scope& s, Expr e);
  int64_t tuple_of(const std::vector<int64_t>& fields, int64_t tag = 0);
  void patch(size_t at, size_t field) { f_.code[at].fields[field] = static_cast<int64_t>(f_.code.size() - at); }

  ProgramCompiler& program_;
  const ExprNode* self_;
  std::vector<int64_t> own_parameters_;  // without captured ones
  size_t begin_ = 0;                     // target of the function's calls of itself
  bool jumps_ = false;                   // the function's code may run repeatedly
  runtime::vm::Function f_;
};

}  // namespace tilewright::program
