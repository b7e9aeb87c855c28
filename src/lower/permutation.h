// SPDX-License-Identifier: Apache-2.0
// Groups that move the elements of an input and then compute with each: what a chain of transposes and reshapes does
// to places.
#pragma once
#include <optional>

#include "lower/group.h"
#include "topi/transpose.h"

namespace tilewright::lower {

// The transposes of a group's own input and the reshapes between them (`op` is "transpose"), or its one change of
// layout ("layout_transform"), that everything after them reads at its own index; null: the group is something else.
Anchor find_moves(const relay::FunctionNode& function);

// Where the moves of `anchor` take the elements of `in`; nothing where a reshape cuts what a transpose put together
// unevenly.
std::optional<topi::Permutation> permutation_of(const Anchor& anchor, const topi::View& in, const topi::View& out);

// The same where parts that lie side by side in both tensors are one dimension: for copies whose results do not depend
// on their index. Rows that end less often fill more vectors.
topi::Permutation with_longest_parts(const topi::Permutation& permutation);

}  // namespace tilewright::lower
