// SPDX-License-Identifier: Apache-2.0
// Types and functions that classic scripts expect: List, Option, Tree, and their maps and folds.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// The source as Relay text.
std::string_view prelude_text();
// The module with the prelude's types and functions; its own definitions of those names take precedence. Texts that
// begin with the prelude's can call its functions by name.
Result<Module> with_prelude(const Module& module);

// Lists of tensors of one dtype ("tensor arrays"): a data type of tensors and functions to make, read, write, unstack,
// scatter, split, concatenate, stack and gather lists of them, under the classic names.
struct TensorArrays {
  DataType dtype;
  // For tensors of this shape, -1 for unknown sizes (names end in "_float32_2_any"); without it, for any rank up to 6
  // ("_float32").
  std::optional<std::vector<int64_t>> shape;
  // 1: lists hold one tensor, whose stack has a first axis of size 1 (names end in "_float32_batch1_2_any").
  std::optional<int64_t> batch_dim;
  // Known operand shapes: scatter's indices (its own
  // function), split's value and lengths (split is redefined).
  std::optional<std::vector<int64_t>> indices_shape, value_shape, lengths_shape;
};
// The module with the prelude and these functions; its own definitions take precedence.
Result<Module> with_tensor_arrays(const Module& module, const TensorArrays& of);

}  // namespace tilewright::relay
