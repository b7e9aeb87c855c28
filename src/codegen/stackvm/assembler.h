// SPDX-License-Identifier: Apache-2.0
// Loop IR as byte code (base/formats/stackvm.h).
//
// Values live in registers without number while a program is written; what is computed from loop variables and
// constants alone is computed once, in the outermost loop that knows them (an interpreter has nobody behind it who
// would do that). allocate_registers then gives each its place in the frame.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/formats/stackvm.h"
#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::codegen {

// A legalised kernel: no elements of fewer than 8 bits, no arithmetic on small floats. Error: UnsupportedModel (calls
// of C functions, dtypes that are no numbers, more code than a program holds).
Result<stackvm::Program> assemble(const tir::PrimFunc& function);

namespace bytecode {

// Lanes of a register, from a byte of it on.
struct Value {
  uint32_t reg = 0, offset = 0;
  bool operator==(const Value&) const = default;
  auto operator<=>(const Value&) const = default;
};
inline constexpr Value kNothing{UINT32_MAX, 0};

struct Draft {
  enum Mark : uint8_t { kNone, kLabel, kUse };  // kLabel: a place for jumps; kUse: `to` is needed up to here
  stackvm::Instruction n;
  Value to = kNothing, a = kNothing, b = kNothing, c = kNothing;
  Mark mark = kNone;
  uint32_t label = 0;  // of a jump: where to; a Loop and its EndLoop have one in common
};

struct Register {
  uint32_t bytes = 0;
  uint32_t depth = 0;     // of the scope in which it is known
  bool changing = false;  // written more than once: an element of a register array
};

// Everything about a program but where its registers lie.
struct Listing {
  std::vector<Draft> code;
  std::vector<Register> registers;
  std::vector<std::vector<Value>> shuffles;  // a shuffle's value is its place here
  Value tid, nthreads;
};
// Operands get their places, jumps their targets. Error: UnsupportedModel (more than a program holds).
Status allocate_registers(const Listing& listing, stackvm::Program* program);

class Assembler {
 public:
  explicit Assembler(const tir::PrimFunc& function);
  Result<stackvm::Program> run();

 private:
  // A loop, a branch or the function: code, and what is known in it.
  using Key = std::tuple<stackvm::Op, uint32_t, uint32_t, Value, Value, Value, int64_t>;
  struct Scope {
    std::vector<Draft> code;
    std::map<Key, Value> known;
  };
  struct Wanted {
    stackvm::Op op{};
    int lanes = 1;
    uint32_t bytes = 8;  // of a lane of the result
    Value a = kNothing, b = kNothing, c = kNothing;
    int64_t value = 0;
    stackvm::Element element = stackvm::Element::kF32, other = stackvm::Element::kF32;
    int result_lanes = 0;  // 0: lanes
  };
  // The instruction's result, in the outermost scope that knows its operands; once, if it was there already.
  Value pure(const Wanted& w);
  void append(const Wanted& w, Value to, uint32_t scope);
  Value new_register(uint64_t bytes, uint32_t depth);
  uint32_t here() const { return static_cast<uint32_t>(scopes_.size()) - 1; }
  bool changes(Value v) const { return listing_.registers[v.reg].changing; }
  Value kept(Value v, DataType type);  // a copy of what may change
  void fail(std::string what);
  void open_scope() { scopes_.emplace_back(); }
  std::vector<Draft> close_scope();
  void extend(std::vector<Draft> code);
  void place_label(uint32_t label);
  void jump(stackvm::Op op, Value condition, uint32_t label);
  // What is computed in a branch or under a binding is not there for the code behind it.
  template <class F>
  void scoped(const F& inner) {
    const size_t mark = order_.size();
    inner();
    for (; order_.size() > mark; order_.pop_back()) done_.erase(order_.back());
  }

  void statement(const tir::Stmt& s);
  void loop(const tir::ForNode& n);
  void store(const tir::StoreNode& n);
  void store_in_register(const tir::StoreNode& n);
  void join_load(Value into, uint32_t first_register);
  void let(const tir::LetStmtNode& n);
  void branch(const tir::IfNode& n);
  void allocation(const tir::AllocateNode& n);

  Value value(const tir::PrimExpr& e);
  Value compute(const tir::PrimExpr& e);
  Value constant(DataType type, int64_t integer, double real);
  Value integer(int64_t v) { return constant(kInt64, v, 0); }
  Value binary(const tir::BinaryNode& n);
  Value float_binary(tir::ExprKind kind, DataType type, Value a, Value b);
  Value integer_binary(tir::ExprKind kind, DataType type, Value a, Value b);
  Value wrapped(Value v, DataType type);
  Value cast(const tir::CastNode& n);
  Value reinterpret(const tir::ReinterpretNode& n);
  Value load(const tir::LoadNode& n);
  Value select(const tir::SelectNode& n);
  Value shuffle(const tir::ShuffleNode& n);
  Value call(const tir::CallNode& n);
  void count_uses();
  const tir::BroadcastNode* broadcast_of(const tir::PrimExpr& e) const;
  bool is_number(const tir::PrimExpr& e) const { return broadcast_of(e) || numbers_.count(e.get()); }
  Value number_of(const tir::PrimExpr& e);
  Value multiply_add(const tir::CallNode& n);
  Value reduction(const tir::CallNode& n);
  Value choice(const tir::CallNode& n);
  Value splat(Value v, DataType type, int lanes);
  // An index as what changes and a number beside it, so that accesses beside each other share the sum.
  struct Address {
    Value base;
    int64_t beside = 0;
  };
  Address address(const tir::PrimExpr& e);
  // The memory operands of an access. `stored`: kNothing for a load.
  Wanted access(const tir::Buffer& buffer, const tir::PrimExpr& index, const tir::PrimExpr& mask, int lanes,
                bool store);
  stackvm::Element element_of(DataType type);
  Value element_of_array(const tir::BufferNode& buffer, const tir::PrimExpr& index);

  const tir::PrimFunc& function_;
  stackvm::Program program_;
  Listing listing_;
  std::vector<Scope> scopes_;
  std::pair<Key, Value> last_known_{};  // put into a scope
  uint32_t labels_ = 0;
  std::unordered_map<const tir::ExprNode*, Value> variables_, done_;
  // Variables that are one number in all lanes: what multiplies by them takes the number. `late_`: those that are used
  // once, computed there.
  std::unordered_map<const tir::ExprNode*, Value> numbers_;
  std::unordered_map<const tir::ExprNode*, const tir::BroadcastNode*> late_;
  std::unordered_map<const tir::ExprNode*, int> uses_;  // of variables
  std::vector<const tir::ExprNode*> order_;
  std::unordered_map<const tir::BufferNode*, uint32_t> memories_;
  std::unordered_map<const tir::BufferNode*, Value> arrays_;
  std::string error_;
};

uint32_t lane_bytes(DataType type);

}  // namespace bytecode
}  // namespace tilewright::codegen
