// SPDX-License-Identifier: Apache-2.0
// Functions that return a number: it is stored where the caller finds it, and what would follow is not run.
#include "base/format.h"
#include "te/kernels.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using tir::Stmt;

bool returns_itself(const Stmt& s) {
  const auto* call = tir::as<tir::CallExternNode>(s);
  return call && call->name == tir::kReturn;
}
bool returns(const Stmt& s) {
  bool found = false;
  tir::for_each_stmt(s, [&](const Stmt& part) { found = found || returns_itself(part); });
  return found;
}

class Returning {
 public:
  explicit Returning(const Stmt& body) {
    tir::for_each_stmt(body, [&](const Stmt& s) {
      if (returns_itself(s) && !place) {
        const tir::PrimExpr value = static_cast<const tir::CallExternNode&>(*s).args[0].value;
        place = tir::make_array("returned", value->dtype, {tir::make_int(1, kInt32)});
      }
    });
  }

  // `s` and then `rest`, which the branches that do not return run.
  Stmt of(const Stmt& s, const Stmt& rest) {
    if (returns_itself(s)) {
      const tir::PrimExpr value = static_cast<const tir::CallExternNode&>(*s).args[0].value;
      if (value->dtype != place->dtype) problem = "it returns values of two dtypes";
      return problem.empty() ? tir::write(place, {tir::make_int(0, kInt32)}, value) : s;
    }
    if (!returns(s)) return tir::seq({s, rest});
    if (const auto* n = tir::as<tir::SeqNode>(s)) {
      Stmt out = rest;
      for (size_t i = n->stmts.size(); i-- > 0;) out = of(n->stmts[i], out);
      return out;
    }
    if (const auto* n = tir::as<tir::IfNode>(s))
      return tir::make_if(n->condition, of(n->then_case, rest), of(n->else_case ? n->else_case : tir::seq({}), rest));
    if (const auto* n = tir::as<tir::LetStmtNode>(s)) return tir::let_stmt(n->var, n->value, of(n->body, rest));
    if (const auto* n = tir::as<tir::BlockNode>(s); n && n->axes.empty() && !n->predicate && !n->init)
      return make_node<tir::BlockNode>(n->name, n->axes, n->predicate, n->init, of(n->body, rest), n->memory,
                                       n->annotations);
    problem = "it returns out of a loop";
    return s;
  }

  tir::Array place;  // null: nothing returns
  std::string problem;
};

}  // namespace

Result<tir::BlockFunction> with_result(const tir::BlockFunction& f, bool* has_result) {
  Returning returning(f.body);
  *has_result = static_cast<bool>(returning.place);
  if (!*has_result) return f;
  const DataType t = returning.place->dtype;
  if (t.lanes != 1 || t.is_bool() || !(t.is_integral() || t == kFloat32 || t == kFloat64) || t.bits < 8)
    returning.problem = format("it returns a value of {}", t.str());
  tir::BlockFunction out = f;
  if (returning.problem.empty()) out.body = returning.of(f.body, tir::seq({}));
  if (!returning.problem.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, returning.problem, format("function {}", f.name),
                      "store the value in memory, or return an integer, float32 or float64 at the end or in a branch");
  out.params.push_back({returning.place, {}});
  return out;
}

}  // namespace tilewright::te
