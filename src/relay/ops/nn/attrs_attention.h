// SPDX-License-Identifier: Apache-2.0
// Attributes of fused attention (ours).
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// nn.attention(query, key, value [, mask]): softmax(scale * query key^T + mask) value for every batch and head.
// Operands have rank 4; a layout names their axes: B batch, H heads, S sequence, D size of a head. Query, key and value
// may hold more heads than are used; the used ones start at *_head. mask broadcasts against (B, H, queries, keys).
struct AttentionAttrs : Attrs<AttentionAttrs> {
  static constexpr const char* kName = "relay.attrs.AttentionAttrs";
  std::string query_layout = "BHSD", key_layout = "BHSD", value_layout = "BHSD", out_layout = "BHSD";
  int64_t num_heads = 1, group = 1;
  int64_t query_head = 0, key_head = 0, value_head = 0;
  double scale = 1;
  template <class V>
  void fields(V& v) {
    v("query_layout", query_layout);
    v("key_layout", key_layout);
    v("value_layout", value_layout);
    v("out_layout", out_layout);
    v("num_heads", num_heads, "heads of the query and the result");
    v("group", group, "heads of the query for each head of key and value");
    v("query_head", query_head, "the query's first head");
    v("key_head", key_head);
    v("value_head", value_head);
    v("scale", scale, "of the scores before the mask");
  }
};

}  // namespace tilewright::relay
