// SPDX-License-Identifier: Apache-2.0
// All attribute structs of the built-in operators. Names, fields and defaults are the classic stack's; additional
// fields are marked "ours". An empty out_dtype means "as the input".
#pragma once
#include "relay/ops/image/attrs_image.h"
#include "relay/ops/image/attrs_vision.h"
#include "relay/ops/nn/attrs_nn.h"
#include "relay/ops/nn/attrs_recurrent.h"
#include "relay/ops/nn/attrs_sparse.h"
#include "relay/ops/tensor/attrs_indexing.h"
#include "relay/ops/tensor/attrs_matrices.h"
#include "relay/ops/tensor/attrs_reduce.h"
#include "relay/ops/tensor/attrs_transform.h"
