// SPDX-License-Identifier: Apache-2.0
// The marks around regions for external code generators, and the regions that they delimit.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

inline constexpr const char* kCompilerBegin = "annotation.compiler_begin";
inline constexpr const char* kCompilerEnd = "annotation.compiler_end";
inline constexpr const char* kDefaultCompiler = "default";

Expr make_mark(const char* mark, Expr value, const std::string& compiler);
const std::string& compiler_of_mark(const Expr& mark);

// The regions of a function's body, delimited by begin and end marks: adjacent operators without a mark between them
// share a region. Operators marked "default" are in none.
class CompilerRegions {
 public:
  explicit CompilerRegions(const Expr& body);
  size_t count() const { return compilers_.size(); }
  // The region of an operator inside it, of a begin that leads into it or of an end; -1: none.
  std::ptrdiff_t of(const Expr& e) const;
  const std::string& compiler(size_t region) const { return compilers_[region]; }
  // The body's expressions in post order.
  const std::vector<Expr>& order() const { return order_; }
  // Operands; a composite function counts as part of its call.
  static std::vector<Expr> operands(const Expr& e);

 private:
  std::vector<Expr> order_;
  std::unordered_map<const ExprNode*, size_t> region_;
  std::vector<std::string> compilers_;
};

}  // namespace tilewright::relay
