// SPDX-License-Identifier: Apache-2.0
#include "tir/interpret.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "tir/interpreter_code.h"
#include "tir/memory.h"
#include "tir/scalar.h"
#include "tir/verify.h"

namespace tilewright::tir {
namespace interpreter {
namespace {

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
      case StmtKind::kCallExtern:
        return fail(format("calls {}, which only code does", static_cast<const CallExternNode&>(*s.node).name));
      case StmtKind::kWrite:
      case StmtKind::kBlock:
        return true;  // rejected by the verifier
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const LetStmtNode&>(*s.node);
        std::copy_n(at(s.in[0]), n.var->dtype.lanes, at(s.var));
        return run(*s.children[0]);
      }
      case StmtKind::kIf:
        if (at(s.in[0])->i) return run(*s.children[0]);
        return s.children.size() < 2 || run(*s.children[1]);
      case StmtKind::kWhile:
        while (at(s.in[0])->i)
          if (!run(*s.children[0]) || !run(s.code)) return false;
        return true;
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
      case ExprKind::kRead:  // rejected by the verifier
        return true;         // these have slots, not instructions
      case ExprKind::kExtern:
        return fail(format("calls {}, which only code does", static_cast<const ExternNode&>(*i.node).name));
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
      case Intrinsic::k_dot2:
        for (int l = 0; l < type.lanes; ++l) {
          const int64_t x = at(i.in[1])[l].i, w = at(i.in[2])[l].i;
          int64_t sum = a[l].i;
          for (int shift : {0, 16})
            sum += int64_t{static_cast<int16_t>(x >> shift)} * int64_t{static_cast<int16_t>(w >> shift)};
          to[l].i = wrap_integer(type, sum);
        }
        return true;
      case Intrinsic::k_dot2_bfloat16:
        for (int l = 0; l < type.lanes; ++l) {
          const auto x = static_cast<uint32_t>(at(i.in[1])[l].i), w = static_cast<uint32_t>(at(i.in[2])[l].i);
          auto number = [](uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); };
          const double high = number(x & 0xffff0000U) * number(w & 0xffff0000U),
                       low = number(x << 16) * number(w << 16);
          to[l].f = static_cast<float>(a[l].f + high + low);
        }
        return true;
      case Intrinsic::k_even_bytes:
      case Intrinsic::k_odd_bytes:
        for (int l = 0; l < type.lanes; ++l) {
          const int64_t x = a[l].i, w = at(i.in[1])[l].i >> (n.op == Intrinsic::k_odd_bytes ? 8 : 0);
          const auto half = [&](int shift) {
            return int64_t{static_cast<uint16_t>((x >> shift) + static_cast<int8_t>(w >> shift))};
          };
          to[l].i = wrap_integer(type, half(0) | half(16) << 16);
        }
        return true;
      case Intrinsic::k_low_halves:
      case Intrinsic::k_high_halves:
        for (int l = 0; l < type.lanes; ++l) {
          const int shift = n.op == Intrinsic::k_high_halves ? 16 : 0;
          const auto half = [&](int64_t word) { return int64_t{static_cast<uint16_t>(word >> shift)}; };
          to[l].i = wrap_integer(type, half(a[l].i) | half(at(i.in[1])[l].i) << 16);
        }
        return true;
      case Intrinsic::k_ldexp_int:
        for (int l = 0; l < type.lanes; ++l) {
          const auto exponent = static_cast<int>(std::clamp<int64_t>(at(i.in[1])[l].i, -4000, 4000));
          to[l].f = round_float(type, std::ldexp(a[l].f, exponent));
        }
        return true;
      default:
        break;
    }
    for (int l = 0; l < type.lanes; ++l) {
      const double y = n.args.size() > 1 ? at(i.in[1])[l].f : 0, z = n.args.size() > 2 ? at(i.in[2])[l].f : 0;
      to[l].f = round_float(type, float_call(n.op, type, a[l].f, y, z));
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
}  // namespace interpreter

Status interpret(const PrimFunc& function, std::span<void* const> buffers, int64_t tid, int64_t nthreads) {
  TW_TRY_STATUS(verify(function));
  const std::string where = format("kernel {}", function.name);
  if (buffers.size() != function.params.size())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("{} buffers given, {} taken", buffers.size(), function.params.size()), where);
  using interpreter::Slot;
  interpreter::Code code;
  interpreter::Compiler compiler(code);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i] && function.params[i]->size != 0)
      return Diagnostic(ErrorCode::kInvalidArgument, format("no memory for {}", function.params[i]->name), where);
    compiler.add_memory(function.params[i], buffers[i]);
  }
  if (function.tid) {
    for (auto [var, value] : {std::pair(function.tid, tid), std::pair(function.nthreads, nthreads)}) {
      Slot slot = compiler.keep(1);
      code.constants[slot & ~interpreter::kKept].i = value;
      compiler.bind(var, slot);
    }
  } else if (tid != 0) {
    return Ok{};  // runs entirely on thread 0
  }
  code.body = compiler.step(function.body);
  interpreter::Machine machine(code);
  if (!machine.run(*code.body)) return Diagnostic(ErrorCode::kInvalidArgument, machine.error, where);
  return Ok{};
}

}  // namespace tilewright::tir
