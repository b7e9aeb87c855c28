// SPDX-License-Identifier: Apache-2.0
// The families of built-in operators, by folder. Each is one file that
// defines `std::vector<OpDef> <family>_ops()`; long lists of facts have
// files of their own, which define `void <facts>(const FactsOf&)`.
#pragma once
// clang-format off
#define TW_OP_FAMILIES(X) \
  /* tensor */ \
  X(broadcast) X(composed_arithmetic) X(composed_indexing) X(composed_like) X(composed_random) X(create) \
  X(dynamic) X(eigenvalues) X(einsum) X(elementwise) X(index) X(layout) X(reduce) X(slice) \
  X(matrices) X(sort) X(transform) \
  /* nn */ \
  X(attention) X(batch_blocks) X(block_dense) X(composed_winograd) X(conv) X(dense) X(norm) \
  X(pad) X(pool) X(recurrent) X(sparse) \
  /* image */ \
  X(composed_image) X(composed_vision) X(image) X(vision) \
  /* quantize */ \
  X(composed_quantize) X(qnn) \
  /* training */ \
  X(composed_training) \
  /* program */ \
  X(device) X(memory) X(program)

#define TW_OP_FACTS(X) \
  X(dynamic_facts) X(nn_gradients) X(tensor_gradients) \
  X(image_layouts) X(nn_layouts) X(quantize_layouts) X(tensor_layouts)
// clang-format on
