// SPDX-License-Identifier: Apache-2.0
// Relay's values as Python objects: an expression, type, dimension or pattern is a reference to the compiler's node,
// wrapped in the Python class of its kind, so that scripts access the compiler's own graph. Equality and hash of
// expressions are by node identity.
#pragma once
#include "compiler.h"
#include "ir/type.h"
#include "relay/expr.h"

namespace tilewright::python {

// An argument that may be None.
inline constexpr auto any = nb::arg().none();

nb::object wrap(const relay::Expr& e);  // None if null
nb::object wrap(const Type& type);
nb::object wrap(const Dim& dim);
nb::object wrap(const relay::Pattern& pattern);
nb::list wrap_all(const std::vector<relay::Expr>& list);
nb::list wrap_all(const std::vector<Type>& list);
std::vector<relay::Expr> exprs_of(nb::handle sequence);
std::vector<Type> types_of(nb::handle sequence);
Shape shape_of(nb::handle sequence);
Type type_of(nb::handle object);  // None: unknown

nb::object to_python(const AttrValue& value);
AttrValue attr_value_of(nb::handle object);
relay::DictAttrs dict_attrs_of(nb::handle mapping);
nb::dict to_python(const relay::DictAttrs& attrs);

// The module with all types inferred and constructors resolved to the module's own. Raises inference errors.
relay::Module completed(const relay::Module& module);

void bind_types(nb::module_& m);
void bind_expressions(nb::module_& m);
void bind_modules(nb::module_& m);
void bind_patterns(nb::module_& m);
void bind_vm(nb::module_& m);

}  // namespace tilewright::python
