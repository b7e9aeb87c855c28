// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/legalize_sub_bytes.h"

#include <unordered_map>

#include "tir/walk.h"

namespace tilewright::tir {
namespace {

bool shares_bytes(const BufferNode& b) { return b.dtype.bits < 8 && b.scope != Scope::kRegister; }

class ByteAccess {
 public:
  Buffer bytes_of(const Buffer& packed) {
    Buffer& out = bytes_[packed.get()];
    if (!out)
      out = make_buffer(
          packed->name, kUInt8,
          packed->size == kUnknownSize
              ? kUnknownSize
              : static_cast<int64_t>(packed->dtype.element().bytes_for(static_cast<uint64_t>(packed->size))),
          packed->scope, packed->alignment, packed->read_only, packed->streamed);
    return out;
  }

  PrimExpr load_of(const LoadNode& n) {
    const Place at = place(n.index, n.buffer->dtype);
    return as_element(binary(ExprKind::kShiftRight, load(bytes_of(n.buffer), at.byte, n.mask), at.shift),
                      n.buffer->dtype.element());
  }

  // Lanes may share bytes: all are computed first, then stored one after another.
  Stmt store_of(const StoreNode& n) {
    const int lanes = n.value->dtype.lanes;
    if (lanes == 1) return masked(n.mask, store_one(n.buffer, n.index, n.value));
    PrimExpr value = make_var("packed", n.value->dtype);
    std::vector<Stmt> stores;
    for (int i = 0; i < lanes; ++i)
      stores.push_back(masked(n.mask ? mask_lane(n.mask, i) : PrimExpr(),
                              store_one(n.buffer, shuffle({n.index}, {i}), shuffle({value}, {i}))));
    return let_stmt(value, n.value, seq(std::move(stores)));
  }

 private:
  struct Place {
    PrimExpr byte, shift;  // byte index, and the element's bit position in it
  };

  static Place place(PrimExpr index, DataType element) {
    if (!(index->dtype.element() == kInt64)) index = cast(kInt64, index);
    const PrimExpr bit = index * element.bits;
    return {binary(ExprKind::kShiftRight, bit, make_int(3)), cast(kUInt8, binary(ExprKind::kBitAnd, bit, make_int(7)))};
  }

  static PrimExpr as_element(const PrimExpr& byte, DataType element) {
    if (element.is_integral()) return cast(element, byte);
    return reinterpret(element, cast(DataType{TypeCode::kUInt, element.bits, 1}, byte));
  }

  static PrimExpr as_byte(PrimExpr element) {
    const DataType bits{TypeCode::kUInt, element->dtype.bits, 1};
    element = element->dtype.is_integral() ? cast(bits, element) : reinterpret(bits, element);
    return cast(kUInt8, element);
  }

  Stmt store_one(const Buffer& packed, const PrimExpr& index, const PrimExpr& value) {
    const Place at = place(index, packed->dtype);
    const Buffer bytes = bytes_of(packed);
    const PrimExpr ones = make_int((1 << packed->dtype.bits) - 1, kUInt8), all = make_int(255, kUInt8);
    const PrimExpr mine = binary(ExprKind::kShiftLeft, ones, at.shift);
    const PrimExpr kept = binary(ExprKind::kBitAnd, load(bytes, at.byte), binary(ExprKind::kBitXor, mine, all));
    return store(bytes, at.byte,
                 binary(ExprKind::kBitOr, kept, binary(ExprKind::kShiftLeft, as_byte(value), at.shift)));
  }

  // The mask of one lane as a scalar condition, folded where known, so that no store remains that never happens.
  static PrimExpr mask_lane(const PrimExpr& mask, int lane) {
    if (mask->dtype.lanes == 1 || !is_binary(mask->kind)) return shuffle({mask}, {lane});
    const auto& n = static_cast<const BinaryNode&>(*mask);
    return binary(mask->kind, mask_lane(n.a, lane), mask_lane(n.b, lane));
  }

  static Stmt masked(const PrimExpr& mask, Stmt s) { return mask ? make_if(mask, std::move(s)) : s; }

  std::unordered_map<const BufferNode*, Buffer> bytes_;
};

}  // namespace

PrimFunc legalize_sub_bytes(PrimFunc function) {
  ByteAccess access;
  function.body = mutate(
      function.body,
      [&](PrimExpr e) {
        const auto* n = e->kind == ExprKind::kLoad ? static_cast<const LoadNode*>(e.get()) : nullptr;
        return n && shares_bytes(*n->buffer) ? access.load_of(*n) : e;
      },
      [&](Stmt s) {
        if (const auto* n = as<StoreNode>(s); n && shares_bytes(*n->buffer)) return access.store_of(*n);
        if (const auto* n = as<AllocateNode>(s); n && shares_bytes(*n->buffer))
          return allocate(access.bytes_of(n->buffer), n->body);
        if (const auto* n = as<PrefetchNode>(s); n && shares_bytes(*n->buffer)) return seq({});
        return s;
      });
  for (Buffer& b : function.params)
    if (shares_bytes(*b)) b = access.bytes_of(b);
  return function;
}

}  // namespace tilewright::tir
