// SPDX-License-Identifier: Apache-2.0
// The types and functions every classic script may count on: List, Option, Tree, and what maps and folds over them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// As Relay text.
std::string_view prelude_text();
// The module with the prelude's types and functions; what it defines itself under one of those names stays. Calls of
// prelude functions by name work in texts that begin with the prelude's.
Result<Module> with_prelude(const Module& module);

// Lists of tensors of one dtype ("tensor arrays"): a data type of tensors and functions to make, read, write, unstack,
// scatter, split, concatenate, stack and gather lists of them, under the classic names.
struct TensorArrays {
  DataType dtype;
  // Of tensors of this shape, -1 for sizes that are not known (names end in "_float32_2_any"); none: of any rank up to
  // 6 ("_float32").
  std::optional<std::vector<int64_t>> shape;
  // 1: lists hold one tensor, whose stack has a first axis of size 1 (names end in "_float32_batch1_2_any").
  std::optional<int64_t> batch_dim;
  // Known shapes of operands: scatter's indices (a function of its own), split's value and lengths (split written
  // anew).
  std::optional<std::vector<int64_t>> indices_shape, value_shape, lengths_shape;
};
// The module with the prelude and the functions of such arrays; what it defines itself stays.
Result<Module> with_tensor_arrays(const Module& module, const TensorArrays& of);

}  // namespace tilewright::relay
