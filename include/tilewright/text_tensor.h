/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor that may hold texts, which DLPack knows nothing of. */
#ifndef TILEWRIGHT_TEXT_TENSOR_H_
#define TILEWRIGHT_TEXT_TENSOR_H_

#include <stdint.h>

#include "tilewright/dlpack.h"

typedef struct tw_text_tensor {
  DLTensor tensor;              /* its data is null where there are texts; shape and ndim hold */
  const char* const* texts;     /* as many as the shape says, or null for numbers */
  const uint64_t* text_lengths; /* bytes of each: they may hold zeros */
} tw_text_tensor;

#endif /* TILEWRIGHT_TEXT_TENSOR_H_ */
