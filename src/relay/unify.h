// SPDX-License-Identifier: Apache-2.0
// Unification of types: unknowns are distinct IncompleteType nodes; solving binds them to types, which may contain
// unknowns again.
#pragma once
#include <string>
#include <unordered_map>
#include <utility>

#include "ir/type.h"

namespace tilewright::relay {

class Unifier {
 public:
  Type fresh();
  // The type with a fresh unknown for each gap.
  Type opened(const Type& t);
  // Instantiates a polymorphic function type with fresh unknowns for its type variables.
  Type instantiated(const Type& t);
  // The type with what its unknowns are bound to.
  Type resolved(const Type& t) const;
  // Unifies two types; returns why they differ, or an empty string.
  std::string unify(const Type& left, const Type& right);

 private:
  bool occurs(const Type& hole, const Type& t) const;
  std::string meet(const Type& left, const Type& right, int depth);

  // includes the unknown itself: it keeps the key's address alive
  std::unordered_map<const TypeNode*, std::pair<Type, Type>> bound_;
};

}  // namespace tilewright::relay
