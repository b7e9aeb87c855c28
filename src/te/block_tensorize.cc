// SPDX-License-Identifier: Apache-2.0
// blockize and tensorize of block schedules: a loop nest that does what an intrinsic's description says becomes the
// intrinsic's code.
#include <functional>
#include <map>
#include <optional>

#include "base/format.h"
#include "te/block_parts.h"
#include "te/block_schedule.h"
#include "tir/structural.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using tir::BlockNode;
using tir::ForNode;
using tir::Stmt;

// A nest of loops around one assignment, whose axes are expressed by the loops.
struct Nest {
  std::vector<const ForNode*> loops;
  std::vector<PrimExpr> index;
  tir::Array target;
  PrimExpr value;
};

// A block that only groups: no axes and nothing of its own.
const BlockNode* grouping(const Stmt& s) {
  const auto* n = tir::as<BlockNode>(s);
  return n && n->axes.empty() && !n->predicate && !n->init && n->memory.empty() ? n : nullptr;
}

Result<Nest> nest_of(const Stmt& s, const std::string& where) {
  auto wrong = [&](const char* what, const char* hint) {
    return Diagnostic(ErrorCode::kInvalidArgument, what, where, hint);
  };
  Nest out;
  Stmt at = s;
  tir::Substitution axes;
  for (;;) {
    if (const BlockNode* group = grouping(at)) {
      at = group->body;
    } else if (const auto* loop = tir::as<ForNode>(at)) {
      if (tir::as_const_int(loop->min) != 0 || !tir::as_const_int(loop->extent) ||
          loop->for_kind != tir::ForKind::kSerial)
        return wrong("a loop does not run serially from 0 to a constant",
                     "split by constants, and annotate afterwards");
      out.loops.push_back(loop);
      at = loop->body;
    } else {
      break;
    }
  }
  if (const auto* block = tir::as<BlockNode>(at)) {
    if (block->init) return wrong("a reduction starts in it", "decompose_reduction at a loop around it first");
    if (block->predicate) return wrong("a condition guards it", "split by factors that divide the loop");
    for (const tir::BlockAxis& a : block->axes) axes[a.var.get()] = a.value;
    at = block->body;
  }
  const auto* write = tir::as<tir::WriteNode>(at);
  if (!write) return wrong("its loops contain more than one assignment", "take a loop around one block");
  out.target = tir::Array(tir::array_of(write->target));
  for (const PrimExpr& i : write->indices) out.index.push_back(tir::substitute(i, axes));
  out.value = tir::substitute(write->value, axes);
  return out;
}

// The reads of an expression in order, each replaced by a variable.
PrimExpr without_reads(const PrimExpr& e, std::vector<PrimExpr>* reads, std::vector<PrimExpr>* names) {
  size_t count = 0;
  return tir::mutate(e, [&](PrimExpr part) -> PrimExpr {
    if (part->kind != tir::ExprKind::kRead) return part;
    reads->push_back(part);
    if (count == names->size()) names->push_back(tir::make_var(format("read{}", count), part->dtype));
    return (*names)[count++];
  });
}

// Where an array of the description lies: the first element of the piece, in the schedule's array.
struct Piece {
  tir::Array array;
  std::vector<PrimExpr> begin;
};

class Matching {
 public:
  Matching(const Nest& description, const Nest& nest) : description_(description), nest_(nest) {}

  // Errors: a sentence on what differs.
  std::optional<std::string> run() {
    if (description_.loops.size() != nest_.loops.size())
      return format("the intrinsic has {} loops, and there are {}", description_.loops.size(), nest_.loops.size());
    for (size_t i = 0; i < nest_.loops.size(); ++i) {
      const ForNode &theirs = *description_.loops[i], &ours = *nest_.loops[i];
      if (tir::as_const_int(theirs.extent) != tir::as_const_int(ours.extent))
        return format("the loop '{}' has {} iterations, and the intrinsic's {}", variable_name(ours.var),
                      *tir::as_const_int(ours.extent), *tir::as_const_int(theirs.extent));
      loops_[theirs.var.get()] = tir::cast(theirs.var->dtype, ours.var);
    }
    std::vector<PrimExpr> theirs, ours, names;
    const PrimExpr a = without_reads(description_.value, &theirs, &names),
                   b = without_reads(nest_.value, &ours, &names);
    bool same = theirs.size() == ours.size();
    for (size_t i = 0; same && i < ours.size(); ++i) same = theirs[i]->dtype == ours[i]->dtype;
    if (!same || !tir::structural_equal(tir::substitute(a, loops_), b, false))
      return std::string("the intrinsic computes another expression");
    if (auto wrong = bind(description_.target, description_.index, nest_.target, nest_.index)) return wrong;
    for (size_t i = 0; i < ours.size(); ++i) {
      const auto& from = static_cast<const tir::ReadNode&>(*theirs[i]);
      const auto& to = static_cast<const tir::ReadNode&>(*ours[i]);
      const auto *array = tir::array_of(from.source), *place = tir::array_of(to.source);
      if (!array || !place) return std::string("it reads what is no array");
      if (auto wrong = bind(tir::Array(array), from.indices, tir::Array(place), to.indices)) return wrong;
    }
    // What is written must be what is read or apart from it, in both.
    for (const auto& [array, piece] : pieces_)
      if (array != description_.target.get() && piece.array == nest_.target)
        return format("it also reads '{}', which the intrinsic writes as another array", piece.array->name);
    return std::nullopt;
  }
  const std::map<const tir::ArrayNode*, Piece>& pieces() const { return pieces_; }

 private:
  std::optional<std::string> bind(const tir::Array& array, const std::vector<PrimExpr>& theirs, const tir::Array& place,
                                  const std::vector<PrimExpr>& ours) {
    if (array->dtype != place->dtype || theirs.size() > ours.size())
      return format("'{}' is {} of {} dimensions, and the intrinsic's '{}' {} of {}", place->name, place->dtype.str(),
                    ours.size(), array->name, array->dtype.str(), theirs.size());
    const Scopes scopes;
    Piece piece{place, {}};
    const size_t leading = ours.size() - theirs.size();
    for (size_t d = 0; d < ours.size(); ++d) {
      PrimExpr begin = ours[d];
      if (d >= leading) begin = begin - tir::cast(begin->dtype, tir::substitute(theirs[d - leading], loops_));
      begin = scopes.simplify(begin);
      for (const ForNode* l : nest_.loops)
        if (tir::uses(begin, l->var.get()))
          return format("dimension {} of '{}' does not follow the loops as the intrinsic's '{}' does", d, place->name,
                        array->name);
      piece.begin.push_back(begin);
    }
    auto [known, fresh] = pieces_.try_emplace(array.get(), piece);
    bool same = fresh || known->second.array == place;
    for (size_t d = 0; same && !fresh && d < piece.begin.size(); ++d)
      same = scopes.proves(tir::eq(known->second.begin[d], piece.begin[d]));
    if (!same) return format("the intrinsic's '{}' would be two pieces of memory", array->name);
    return std::nullopt;
  }

  const Nest &description_, &nest_;
  tir::Substitution loops_;
  std::map<const tir::ArrayNode*, Piece> pieces_;
};

// The code with its arrays, which are parameters, at the pieces of the schedule's.
class PlacedCode {
 public:
  PlacedCode(const std::map<const tir::ArrayNode*, Piece>& pieces, std::function<std::string(const std::string&)> name)
      : pieces_(pieces), name_(std::move(name)) {}

  Stmt run(const Stmt& s) {
    Stmt out = tir::mutate(
        s,
        [&](PrimExpr e) -> PrimExpr {
          const auto* read = e->kind == tir::ExprKind::kRead ? static_cast<const tir::ReadNode*>(e.get()) : nullptr;
          const Piece* piece = read ? piece_of(read->source) : nullptr;
          return piece ? tir::read(piece->array, moved(*piece, read->indices)) : e;
        },
        [&](Stmt part) -> Stmt {
          if (const auto* write = tir::as<tir::WriteNode>(part))
            if (const Piece* piece = piece_of(write->target))
              return tir::write(piece->array, moved(*piece, write->indices), write->value);
          if (const auto* block = tir::as<BlockNode>(part))
            return grouping(part) ? block->body
                                  : make_node<BlockNode>(name_(block->name), block->axes, block->predicate, block->init,
                                                         block->body, block->memory, block->annotations);
          return part;
        });
    return out;
  }

 private:
  const Piece* piece_of(const Ref<Node>& array) const {
    const auto found = pieces_.find(tir::array_of(array));
    return found == pieces_.end() ? nullptr : &found->second;
  }
  static std::vector<PrimExpr> moved(const Piece& piece, const std::vector<PrimExpr>& indices) {
    std::vector<PrimExpr> out = piece.begin;
    for (size_t d = 0; d < indices.size(); ++d) {
      PrimExpr& at = out[out.size() - indices.size() + d];
      at = at + tir::cast(at->dtype, indices[d]);
    }
    return out;
  }

  const std::map<const tir::ArrayNode*, Piece>& pieces_;
  std::function<std::string(const std::string&)> name_;
};

}  // namespace

Result<std::string> BlockSchedule::blockize(const PrimExpr& loop) {
  const Site site = TW_TRY(site_of(loop));
  const auto inside = blocks_in(site.stmt());
  if (inside.size() != 1)
    return refused(format("loop {}", variable_name(loop)), format("{} blocks are in it", inside.size()),
                   "take a loop around one block");
  // Its parts are computed as one from here on.
  trusted_.erase(inside[0].block->name);
  const std::string name = fresh_name(inside[0].block->name + "_o");
  replace(site.stmt(), make_node<BlockNode>(name, std::vector<tir::BlockAxis>(), PrimExpr(), Stmt(), site.stmt(),
                                            std::vector<Ref<Node>>()));
  return name;
}

Status BlockSchedule::tensorize(const Stmt& nest, const std::string& where, const TensorCode& by) {
  const Nest ours = TW_TRY(nest_of(nest, where));
  const Nest theirs = TW_TRY(nest_of(by.description.body, format("the description of '{}'", by.name)));
  auto mismatch = [&](std::string what) {
    return refused(where, format("it is not what '{}' does: {}", by.name, what),
                   "split and reorder the loops as the intrinsic's description has them");
  };
  if (by.description.params.size() != by.code.params.size())
    return refused(format("intrinsic {}", by.name), "its description and its code have different parameters");
  Matching matching(theirs, ours);
  if (auto what = matching.run()) return mismatch(*what);
  std::map<const tir::ArrayNode*, Piece> pieces;
  for (size_t i = 0; i < by.code.params.size(); ++i) {
    const tir::Array &described = by.description.params[i].array, &used = by.code.params[i].array;
    if (!described || !used || !used->strides.empty() || !described->strides.empty() ||
        described->shape.size() != used->shape.size() || described->dtype != used->dtype)
      return refused(format("intrinsic {}", by.name),
                     format("parameter {} is no array without strides, or not the same in description and code", i),
                     "declare buffers by shape and dtype alone");
    const auto found = matching.pieces().find(described.get());
    if (found != matching.pieces().end())
      pieces[used.get()] = found->second;
    else if (reads_array(by.code.body, used.get()) || writes_array(by.code.body, used.get()))
      return mismatch(format("its description does not use '{}'", described->name));
  }
  PlacedCode placed(pieces, [&](const std::string& name) { return fresh_name(name); });
  const std::string name = fresh_name(by.name);
  for (const PlacedBlock& b : blocks_in(nest)) trusted_.erase(b.block->name);
  replace(nest, make_node<BlockNode>(name, std::vector<tir::BlockAxis>(), PrimExpr(), Stmt(), placed.run(by.code.body),
                                     std::vector<Ref<Node>>()));
  tidy();
  return Ok{};
}

Status BlockSchedule::tensorize(const PrimExpr& loop, const TensorCode& by) {
  const Site site = TW_TRY(site_of(loop));
  return tensorize(site.stmt(), format("loop {}", variable_name(loop)), by);
}

Status BlockSchedule::tensorize(const std::string& block, const TensorCode& by) {
  const Site site = TW_TRY(site_of(block));
  return tensorize(site.stmt(), format("block {}", block), by);
}

}  // namespace tilewright::te
