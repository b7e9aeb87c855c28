// SPDX-License-Identifier: Apache-2.0
// The interpreter's code: each statement's expressions as a list of instructions over lane slots, compiled once.
// Execution needs no recursion over expressions, evaluates shared nodes once, and does not allocate.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "tir/memory.h"
#include "tir/stmt.h"

namespace tilewright::tir::interpreter {

// The location of a value's lanes: a temporary of the statement, or (kept bit) a variable, constant or register.
using Slot = uint32_t;
constexpr Slot kKept = 0x80000000u;
constexpr int kNone = -1;

struct Instruction {
  const ExprNode* node = nullptr;
  Slot to = 0;
  Slot in[3] = {0, 0, 0};
  int memory = kNone;              // a load's buffer
  std::vector<Slot> more;          // inputs of a shuffle
  int branch[2] = {kNone, kNone};  // if_then_else: the code of both branches; their results are in[1] and in[2]
};
using Program = std::vector<Instruction>;

struct Step {
  const StmtNode* node = nullptr;
  Program code;
  Slot in[3] = {0, 0, 0};  // For: min, extent. Store: index, value, mask. Let: value. If, While: condition.
  Slot var = 0;
  int memory = kNone;
  bool masked = false;
  std::vector<std::unique_ptr<Step>> children;
};

struct Memory {
  const BufferNode* buffer;
  void* data = nullptr;  // global and stack
  Slot first = 0;        // registers
  std::vector<std::byte> own;
};

struct Code {
  std::vector<Program> branches;
  std::vector<Memory> memories;
  std::vector<Lane> constants;  // initial values of the kept slots
  uint32_t temporaries = 0, kept = 0;
  std::unique_ptr<Step> body;
};

// Compiles statements. Variables and buffers must be bound or added before the statements that use them.
class Compiler {
 public:
  explicit Compiler(Code& code) : code_(code) {}

  Slot keep(int64_t lanes);  // slots that persist for the whole run
  void bind(const PrimExpr& var, Slot slot) { variables_[var.get()] = slot; }
  int add_memory(const Buffer& buffer, void* data);
  std::unique_ptr<Step> step(const Stmt& s);

 private:
  Slot temporary(int lanes);
  Slot value(const PrimExpr& e);
  Slot compute(const PrimExpr& e);
  Slot constant(const PrimExpr& e);

  // Code in a branch or below a let is conditional: its values cannot be reused behind it.
  template <class F>
  void scoped(const F& inner) {
    size_t mark = order_.size();
    inner();
    for (; order_.size() > mark; order_.pop_back()) done_.erase(order_.back());
  }

  Code& code_;
  Program* target_ = nullptr;
  uint32_t next_temporary_ = 0;
  std::unordered_map<const ExprNode*, Slot> variables_, done_;
  std::vector<const ExprNode*> order_;
  std::unordered_map<const BufferNode*, int> memory_of_;
};

}  // namespace tilewright::tir::interpreter
