// SPDX-License-Identifier: Apache-2.0
#include "frontend/lets.h"

namespace tilewright::frontend {

Type common_type(const Type& a, const Type& b) {
  if (type_equal(a, b)) return a;
  const auto *s = as_tensor(a), *t = as_tensor(b);
  if (!s || !t || s->dtype != t->dtype || s->shape.size() != t->shape.size()) return incomplete_type();
  Shape shape;
  for (size_t i = 0; i < s->shape.size(); ++i) shape.push_back(s->shape[i] == t->shape[i] ? s->shape[i] : Dim::any());
  return tensor_type(std::move(shape), s->dtype);
}

}  // namespace tilewright::frontend
