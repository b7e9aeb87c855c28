// SPDX-License-Identifier: Apache-2.0
// Parser of expressions in the text form (tir/text.h), and their names.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tir/operators.h"
#include "tir/stmt.h"
#include "tir/tokens.h"
#include "tir/typing.h"

namespace tilewright::tir {

class ExprParser : protected TokenCursor {
 protected:
  using TokenCursor::TokenCursor;
  struct Named {  // one of the two is set
    PrimExpr variable;
    Buffer buffer;
  };

  void bind(const std::string& name, PrimExpr variable, Buffer buffer);
  PrimExpr bind_variable(const std::string& name, DataType type);
  void unbind_to(size_t mark);  // removes the bindings of order_ behind the mark
  PrimExpr expr(int precedence = 0);
  std::pair<PrimExpr, PrimExpr> subscript();  // index and mask
  template <class T, class... Args>
  [[gnu::noinline]] Ref<T> made(Args&&... args) {
    Ref<T> node = make_node<T>(std::forward<Args>(args)...);
    if (auto error = typing_error(*node); !error.empty()) fail(error);
    return node;
  }

  std::map<std::string, Named, std::less<>> names_;
  std::vector<std::string> order_;               // names in order of binding, for leaving scopes
  std::map<std::string_view, PrimExpr> shared_;  // %0, %1

 private:
  PrimExpr primary();
  [[noreturn]] void too_deep() const;
  PrimExpr combined(const OperatorRow& row, PrimExpr left, PrimExpr right);
  const OperatorRow* operator_here() const;
  PrimExpr leaf();
  PrimExpr named();
  PrimExpr literal(std::optional<DataType> type, bool negative);
  PrimExpr call();
  PrimExpr conversion_call(std::string_view name);
  PrimExpr let_call();
  PrimExpr lanes_call(std::string_view name);
  PrimExpr shuffle_call();
  PrimExpr extern_call();
  PrimExpr plain_call(std::string_view name);

  int depth_ = 0;
};

}  // namespace tilewright::tir
