// SPDX-License-Identifier: Apache-2.0
// Each statement's expressions become a list of instructions over lane slots, once; running it needs no
// recursion over expressions, evaluates a shared node once, and allocates nothing.
#include "tir/interpret.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <unordered_map>

#include "base/format.h"
#include "tir/memory.h"
#include "tir/scalar.h"
#include "tir/verify.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

// Where a value's lanes are: a temporary of the statement, or (kept bit) a variable, constant or register.
using Slot = uint32_t;
constexpr Slot kKept = 0x80000000u;
constexpr int kNone = -1;

struct Instruction {
  const ExprNode* node = nullptr;
  Slot to = 0;
  Slot in[3] = {0, 0, 0};
  int memory = kNone;      // a load's buffer
  std::vector<Slot> more;  // a shuffle's inputs
  int branch[2] = {kNone,
                   kNone};  // if_then_else: programs to run for true and false, then their results are in[1], in[2]
};
using Program = std::vector<Instruction>;

struct Step {
  const StmtNode* node = nullptr;
  Program code;
  Slot in[3] = {0, 0, 0};  // For: min, extent. Store: index, value, mask. Let: value. If: condition.
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
  std::vector<Lane> constants;  // initial content of the kept slots
  uint32_t temporaries = 0, kept = 0;
  std::unique_ptr<Step> body;
};

class Compiler {
 public:
  explicit Compiler(Code& code) : code_(code) {}

  Slot keep(int64_t lanes) {
    Slot slot = code_.kept | kKept;
    code_.kept += static_cast<uint32_t>(lanes);
    code_.constants.resize(code_.kept);
    return slot;
  }
  void bind(const PrimExpr& var, Slot slot) { variables_[var.get()] = slot; }
  int add_memory(const Buffer& buffer, void* data) {
    Memory m{buffer.get(), data, 0, {}};
    if (buffer->scope == Scope::kRegister) m.first = keep(buffer->size * buffer->dtype.lanes);
    if (buffer->scope == Scope::kStack) m.own.resize(buffer->dtype.bytes_for(buffer->size));
    code_.memories.push_back(std::move(m));
    int id = static_cast<int>(code_.memories.size()) - 1;
    memory_of_[buffer.get()] = id;
    return id;
  }

  std::unique_ptr<Step> step(const Stmt& s) {
    auto out = std::make_unique<Step>();
    out->node = s.get();
    done_.clear();
    next_temporary_ = 0;
    target_ = &out->code;
    switch (s->kind) {
      case StmtKind::kFor: {
        const auto& n = static_cast<const ForNode&>(*s);
        out->in[0] = value(n.min);
        out->in[1] = value(n.extent);
        bind(n.var, out->var = keep(1));
        out->children.push_back(step(n.body));
        break;
      }
      case StmtKind::kStore: {
        const auto& n = static_cast<const StoreNode&>(*s);
        out->in[0] = value(n.index);
        out->in[1] = value(n.value);
        if ((out->masked = bool(n.mask))) out->in[2] = value(n.mask);
        out->memory = memory_of_.at(n.buffer.get());
        break;
      }
      case StmtKind::kPrefetch:
        break;
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const LetStmtNode&>(*s);
        out->in[0] = value(n.value);
        bind(n.var, out->var = keep(n.var->dtype.lanes));
        out->children.push_back(step(n.body));
        break;
      }
      case StmtKind::kIf: {
        const auto& n = static_cast<const IfNode&>(*s);
        out->in[0] = value(n.condition);
        out->children.push_back(step(n.then_case));
        if (n.else_case) out->children.push_back(step(n.else_case));
        break;
      }
      case StmtKind::kSeq:
        for (const auto& child : static_cast<const SeqNode&>(*s).stmts) out->children.push_back(step(child));
        break;
      case StmtKind::kAllocate: {
        const auto& n = static_cast<const AllocateNode&>(*s);
        out->memory = add_memory(n.buffer, nullptr);
        out->children.push_back(step(n.body));
        break;
      }
    }
    code_.temporaries = std::max(code_.temporaries, next_temporary_);
    return out;
  }

 private:
  Slot temporary(int lanes) {
    Slot slot = next_temporary_;
    next_temporary_ += static_cast<uint32_t>(lanes);
    code_.temporaries = std::max(code_.temporaries, next_temporary_);
    return slot;
  }

  Slot value(const PrimExpr& e) {
    if (e->kind == ExprKind::kVar) return variables_.at(e.get());
    if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
    Slot slot = compute(e);
    done_[e.get()] = slot;
    order_.push_back(e.get());
    return slot;
  }

  // What is computed inside a branch or under a let's binding is not there for the code after it.
  template <class F>
  void scoped(const F& inner) {
    size_t mark = order_.size();
    inner();
    for (; order_.size() > mark; order_.pop_back()) done_.erase(order_.back());
  }

  Slot compute(const PrimExpr& e) {
    if (e->kind == ExprKind::kIntImm || e->kind == ExprKind::kFloatImm) {
      Slot slot = keep(1);
      Lane& lane = code_.constants[slot & ~kKept];
      if (auto* i = as<IntImmNode>(e))
        lane.i = i->value;
      else
        lane.f = static_cast<const FloatImmNode&>(*e).value;
      return slot;
    }
    if (e->kind == ExprKind::kLet) {
      const auto& n = static_cast<const LetNode&>(*e);
      bind(n.var, value(n.value));
      Slot slot = 0;
      scoped([&] { slot = value(n.body); });
      return slot;
    }
    Instruction i;
    i.node = e.get();
    if (auto* call = as<CallNode>(e); call && call->op == Intrinsic::k_if_then_else) {
      i.in[0] = value(call->args[0]);
      for (int side = 0; side < 2; ++side) {
        Program code;
        Program* outer = std::exchange(target_, &code);
        scoped([&] { i.in[1 + side] = value(call->args[1 + side]); });
        target_ = outer;
        i.branch[side] = static_cast<int>(code_.branches.size());
        code_.branches.push_back(std::move(code));
      }
    } else if (auto* s = as<ShuffleNode>(e)) {
      for (const auto& v : s->vectors) i.more.push_back(value(v));
    } else if (auto* l = as<LoadNode>(e)) {
      i.in[0] = value(l->index);
      if (l->mask) i.in[1] = value(l->mask);
      i.memory = memory_of_.at(l->buffer.get());
    } else {
      int k = 0;
      for_each_child(e, [&](const PrimExpr& child) { i.in[k++] = value(child); });
    }
    i.to = temporary(e->dtype.lanes);
    target_->push_back(i);
    return i.to;
  }

  Code& code_;
  Program* target_ = nullptr;
  uint32_t next_temporary_ = 0;
  std::unordered_map<const ExprNode*, Slot> variables_, done_;
  std::vector<const ExprNode*> order_;
  std::unordered_map<const BufferNode*, int> memory_of_;
};

double float_call(Intrinsic op, DataType type, double x, Lane y, double z) {
  switch (op) {
    case Intrinsic::k_fma:
      return float_fma(type, x, y.f, z);
    case Intrinsic::k_exp:
      return std::exp(x);
    case Intrinsic::k_log:
      return std::log(x);
    case Intrinsic::k_sqrt:
      return std::sqrt(x);
    case Intrinsic::k_rsqrt:
      return 1 / std::sqrt(x);
    case Intrinsic::k_tanh:
      return std::tanh(x);
    case Intrinsic::k_erf:
      return std::erf(x);
    case Intrinsic::k_sigmoid:
      return 1 / (1 + std::exp(-x));
    case Intrinsic::k_pow:
      return std::pow(x, y.f);
    case Intrinsic::k_floor:
      return std::floor(x);
    case Intrinsic::k_ceil:
      return std::ceil(x);
    case Intrinsic::k_round:
      return std::nearbyint(x);
    case Intrinsic::k_trunc:
      return std::trunc(x);
    case Intrinsic::k_fabs:
      return std::fabs(x);
    case Intrinsic::k_sin:
      return std::sin(x);
    case Intrinsic::k_cos:
      return std::cos(x);
    case Intrinsic::k_tan:
      return std::tan(x);
    case Intrinsic::k_asin:
      return std::asin(x);
    case Intrinsic::k_acos:
      return std::acos(x);
    case Intrinsic::k_atan:
      return std::atan(x);
    case Intrinsic::k_sinh:
      return std::sinh(x);
    case Intrinsic::k_cosh:
      return std::cosh(x);
    case Intrinsic::k_asinh:
      return std::asinh(x);
    case Intrinsic::k_acosh:
      return std::acosh(x);
    case Intrinsic::k_atanh:
      return std::atanh(x);
    case Intrinsic::k_exp2:
      return std::exp2(x);
    case Intrinsic::k_log2:
      return std::log2(x);
    case Intrinsic::k_log10:
      return std::log10(x);
    case Intrinsic::k_fmod:
      return std::fmod(x, y.f);
    case Intrinsic::k_copysign:
      return std::copysign(x, y.f);
    case Intrinsic::k_ldexp_int:
      return std::ldexp(x, static_cast<int>(std::clamp<int64_t>(y.i, -4000, 4000)));
    case Intrinsic::k_isnan:
    case Intrinsic::k_isinf:
    case Intrinsic::k_isfinite:
    case Intrinsic::k_popcount:
    case Intrinsic::k_clz:
    case Intrinsic::k_reduce_add:
    case Intrinsic::k_reduce_max:
    case Intrinsic::k_reduce_min:
    case Intrinsic::k_if_then_else:
    case Intrinsic::k_dot4:
      break;
  }
  TW_ICHECK(false, intrinsic_name(op));
  return 0;
}

class Machine {
 public:
  explicit Machine(Code& code) : code_(code), kept_(code.constants), temporaries_(code.temporaries) {}
  std::string error;

  Lane* at(Slot slot) { return slot & kKept ? &kept_[slot & ~kKept] : &temporaries_[slot]; }

  bool run(const Step& s) {
    if (!run(s.code)) return false;
    switch (s.node->kind) {
      case StmtKind::kFor: {
        const int64_t first = at(s.in[0])->i, count = at(s.in[1])->i;
        for (int64_t i = 0; i < count; ++i) {
          at(s.var)->i = first + i;
          if (!run(*s.children[0])) return false;
        }
        return true;
      }
      case StmtKind::kStore:
        return store(s);
      case StmtKind::kPrefetch:
        return true;
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const LetStmtNode&>(*s.node);
        std::copy_n(at(s.in[0]), n.var->dtype.lanes, at(s.var));
        return run(*s.children[0]);
      }
      case StmtKind::kIf:
        if (at(s.in[0])->i) return run(*s.children[0]);
        return s.children.size() < 2 || run(*s.children[1]);
      case StmtKind::kSeq:
        for (const auto& child : s.children)
          if (!run(*child)) return false;
        return true;
      case StmtKind::kAllocate: {
        Memory& m = code_.memories[s.memory];
        Lane poison{};
        if (m.buffer->dtype.is_float())
          poison.f = std::numeric_limits<double>::quiet_NaN();
        else
          poison.i = wrap_integer(m.buffer->dtype, -1);
        if (m.buffer->scope == Scope::kRegister)
          std::fill_n(at(m.first), m.buffer->size * m.buffer->dtype.lanes, poison);
        std::fill(m.own.begin(), m.own.end(), std::byte{0xff});
        m.data = m.own.data();
        return run(*s.children[0]);
      }
    }
    return true;
  }

 private:
  bool fail(std::string what) {
    error = std::move(what);
    return false;
  }

  bool inside(const Memory& m, int64_t index, const char* verb) {
    if (index >= 0 && (index < m.buffer->size || m.buffer->size == kUnknownSize)) return true;
    return fail(format("{} {}[{}], which has {} elements", verb, m.buffer->name, index, m.buffer->size));
  }

  bool store(const Step& s) {
    const Memory& m = code_.memories[s.memory];
    const auto& n = static_cast<const StoreNode&>(*s.node);
    const Lane *index = at(s.in[0]), *value = at(s.in[1]), *mask = s.masked ? at(s.in[2]) : nullptr;
    if (m.buffer->scope == Scope::kRegister) {
      if (!inside(m, index->i, "writes")) return false;
      const int lanes = m.buffer->dtype.lanes;
      std::copy_n(value, lanes, at(m.first) + index->i * lanes);
      return true;
    }
    for (int l = 0; l < n.index->dtype.lanes; ++l) {
      if (mask && !mask[l].i) continue;
      if (!inside(m, index[l].i, "writes")) return false;
      write_lane(m.data, m.buffer->dtype.element(), index[l].i, value[l]);
    }
    return true;
  }

  bool run(const Program& code) {
    for (const Instruction& i : code)
      if (!run(i)) return false;
    return true;
  }

  bool run(const Instruction& i) {
    const DataType type = i.node->dtype;
    const int lanes = type.lanes;
    Lane* to = at(i.to);
    const Lane* a = at(i.in[0]);
    switch (i.node->kind) {
#define TW_KIND(name) case ExprKind::k##name:
      TW_TIR_BINARY(TW_KIND)
#undef TW_KIND
      return binary_lanes(i, to, a, at(i.in[1]));
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kVar:
      case ExprKind::kLet:
      case ExprKind::kRead:  // never verified
        return true;         // have slots, not instructions
      case ExprKind::kNot:
        for (int l = 0; l < lanes; ++l) to[l].i = !a[l].i;
        return true;
      case ExprKind::kSelect:
        for (int l = 0; l < lanes; ++l) to[l] = a[l].i ? at(i.in[1])[l] : at(i.in[2])[l];
        return true;
      case ExprKind::kCast: {
        const DataType from = static_cast<const CastNode&>(*i.node).value->dtype;
        for (int l = 0; l < lanes; ++l) {
          if (type.is_float())
            to[l].f = from.is_float() ? round_float(type, a[l].f) : integer_to_float(from, type, a[l].i);
          else
            to[l].i = from.is_float() ? float_to_integer(type, a[l].f) : wrap_integer(type, a[l].i);
        }
        return true;
      }
      case ExprKind::kReinterpret: {
        const DataType from = static_cast<const ReinterpretNode&>(*i.node).value->dtype;
        bytes_.resize(from.bytes() + 8);
        for (int l = 0; l < from.lanes; ++l) write_lane(bytes_.data(), from.element(), l, a[l]);
        for (int l = 0; l < lanes; ++l) to[l] = read_lane(bytes_.data(), type.element(), l);
        return true;
      }
      case ExprKind::kLoad:
        return load(i, to, a);
      case ExprKind::kRamp: {
        const int64_t stride = static_cast<const RampNode&>(*i.node).stride;
        for (int l = 0; l < lanes; ++l)
          to[l].i = wrap_integer(type, static_cast<int64_t>(static_cast<uint64_t>(a->i) +
                                                            static_cast<uint64_t>(stride) * static_cast<uint64_t>(l)));
        return true;
      }
      case ExprKind::kBroadcast:
        std::fill_n(to, lanes, *a);
        return true;
      case ExprKind::kShuffle: {
        const auto& n = static_cast<const ShuffleNode&>(*i.node);
        for (int l = 0; l < lanes; ++l) {
          int lane = n.indices[l];
          size_t v = 0;
          while (lane >= n.vectors[v]->dtype.lanes) lane -= n.vectors[v++]->dtype.lanes;
          to[l] = at(i.more[v])[lane];
        }
        return true;
      }
      case ExprKind::kCall:
        return call(i, to, a);
    }
    return true;
  }

  bool binary_lanes(const Instruction& i, Lane* to, const Lane* a, const Lane* b) {
    const ExprKind kind = i.node->kind;
    const DataType type = static_cast<const BinaryNode&>(*i.node).a->dtype;
    for (int l = 0; l < type.lanes; ++l) {
      if (!type.is_float()) {
        if (!integer_binary(kind, type, a[l].i, b[l].i, &to[l].i))
          return fail(format("computes {} of {} and {}, which is undefined", kind_name(kind), a[l].i, b[l].i));
      } else if (is_comparison(kind)) {
        to[l].i = float_comparison(kind, a[l].f, b[l].f);
      } else {
        to[l].f = float_arithmetic(kind, type, a[l].f, b[l].f);
      }
    }
    return true;
  }

  bool load(const Instruction& i, Lane* to, const Lane* index) {
    const auto& n = static_cast<const LoadNode&>(*i.node);
    const Memory& m = code_.memories[i.memory];
    if (m.buffer->scope == Scope::kRegister) {
      if (!inside(m, index->i, "reads")) return false;
      const int lanes = m.buffer->dtype.lanes;
      std::copy_n(at(m.first) + index->i * lanes, lanes, to);
      return true;
    }
    const Lane* mask = n.mask ? at(i.in[1]) : nullptr;
    for (int l = 0; l < n.dtype.lanes; ++l) {
      to[l] = Lane{};
      if (mask && !mask[l].i) continue;
      if (!inside(m, index[l].i, "reads")) return false;
      to[l] = read_lane(m.data, m.buffer->dtype.element(), index[l].i);
    }
    return true;
  }

  bool call(const Instruction& i, Lane* to, const Lane* a) {
    const auto& n = static_cast<const CallNode&>(*i.node);
    const DataType type = n.args[0]->dtype;
    switch (n.op) {
      case Intrinsic::k_if_then_else: {
        const int side = a->i ? 0 : 1;
        if (!run(code_.branches[i.branch[side]])) return false;
        std::copy_n(at(i.in[1 + side]), n.dtype.lanes, to);
        return true;
      }
      case Intrinsic::k_reduce_add:
        *to = reduce(ExprKind::kAdd, type, a);
        return true;
      case Intrinsic::k_reduce_max:
        *to = reduce(ExprKind::kMax, type, a);
        return true;
      case Intrinsic::k_reduce_min:
        *to = reduce(ExprKind::kMin, type, a);
        return true;
      case Intrinsic::k_isnan:
        for (int l = 0; l < type.lanes; ++l) to[l].i = std::isnan(a[l].f);
        return true;
      case Intrinsic::k_isinf:
        for (int l = 0; l < type.lanes; ++l) to[l].i = std::isinf(a[l].f);
        return true;
      case Intrinsic::k_isfinite:
        for (int l = 0; l < type.lanes; ++l) to[l].i = std::isfinite(a[l].f);
        return true;
      case Intrinsic::k_popcount:
      case Intrinsic::k_clz:
        for (int l = 0; l < type.lanes; ++l) {
          uint64_t bits = static_cast<uint64_t>(a[l].i) & (~uint64_t{0} >> (64 - type.bits));
          if (n.op == Intrinsic::k_popcount)
            to[l].i = __builtin_popcountll(bits);
          else
            to[l].i = bits ? __builtin_clzll(bits) - (64 - type.bits) : type.bits;
          to[l].i = wrap_integer(type, to[l].i);
        }
        return true;
      case Intrinsic::k_dot4:
        for (int l = 0; l < type.lanes; ++l) {
          const int64_t x = at(i.in[1])[l].i, w = at(i.in[2])[l].i;
          int64_t sum = a[l].i;
          for (int shift = 0; shift < 32; shift += 8)
            sum += static_cast<int64_t>(static_cast<uint8_t>(x >> shift)) * static_cast<int8_t>(w >> shift);
          to[l].i = wrap_integer(type, sum);
        }
        return true;
      default:
        break;
    }
    const Lane zero{};
    for (int l = 0; l < type.lanes; ++l) {
      Lane y = n.args.size() > 1 ? at(i.in[1])[l] : zero, z = n.args.size() > 2 ? at(i.in[2])[l] : zero;
      to[l].f = round_float(type, float_call(n.op, type, a[l].f, y, z.f));
    }
    return true;
  }

  Lane reduce(ExprKind kind, DataType type, const Lane* lanes) {
    reduced_.assign(lanes, lanes + type.lanes);
    auto combine = [&](Lane x, Lane y) {
      Lane out{};
      if (type.is_float())
        out.f = float_arithmetic(kind, type, x.f, y.f);
      else
        integer_binary(kind, type.element(), x.i, y.i, &out.i);
      return out;
    };
    size_t n = reduced_.size();
    for (; n % 2 == 0; n /= 2)
      for (size_t l = 0; l < n / 2; ++l) reduced_[l] = combine(reduced_[l], reduced_[l + n / 2]);
    for (size_t l = 1; l < n; ++l) reduced_[0] = combine(reduced_[0], reduced_[l]);
    return reduced_[0];
  }

  Code& code_;
  std::vector<Lane> kept_, temporaries_, reduced_;
  std::vector<std::byte> bytes_;
};
}  // namespace

Status interpret(const PrimFunc& function, std::span<void* const> buffers, int64_t tid, int64_t nthreads) {
  TW_TRY_STATUS(verify(function));
  const std::string where = format("kernel {}", function.name);
  if (buffers.size() != function.params.size())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("{} buffers given, {} taken", buffers.size(), function.params.size()), where);
  Code code;
  Compiler compiler(code);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i] && function.params[i]->size != 0)
      return Diagnostic(ErrorCode::kInvalidArgument, format("no memory for {}", function.params[i]->name), where);
    compiler.add_memory(function.params[i], buffers[i]);
  }
  if (function.tid) {
    for (auto [var, value] : {std::pair(function.tid, tid), std::pair(function.nthreads, nthreads)}) {
      Slot slot = compiler.keep(1);
      code.constants[slot & ~kKept].i = value;
      compiler.bind(var, slot);
    }
  } else if (tid != 0) {
    return Ok{};  // runs whole on thread 0
  }
  code.body = compiler.step(function.body);
  Machine machine(code);
  if (!machine.run(*code.body)) return Diagnostic(ErrorCode::kInvalidArgument, machine.error, where);
  return Ok{};
}

}  // namespace tilewright::tir
