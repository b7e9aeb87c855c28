// SPDX-License-Identifier: Apache-2.0
// The families of built-in operators: each is one file of this folder that defines `std::vector<OpDef> <family>_ops()`.
#pragma once
// clang-format off
#define TW_OP_FAMILIES(X) \
  X(attention) \
  X(batch_blocks) \
  X(broadcast) \
  X(composed_arithmetic) \
  X(composed_image) \
  X(composed_indexing) \
  X(composed_like) \
  X(composed_quantize) \
  X(composed_random) \
  X(composed_training) \
  X(composed_vision) \
  X(composed_winograd) \
  X(create) \
  X(device) \
  X(dynamic) \
  X(einsum) \
  X(elementwise) \
  X(image) \
  X(index) \
  X(layout) \
  X(memory) \
  X(conv) \
  X(dense) \
  X(norm) \
  X(pool) \
  X(pad) \
  X(program) \
  X(qnn) \
  X(recurrent) \
  X(reduce) \
  X(sort) \
  X(sparse) \
  X(transform) \
  X(vision)
// clang-format on
