// SPDX-License-Identifier: Apache-2.0
#include "ir/object.h"

#include <vector>

namespace tilewright {

void Node::drop(const Node* node) {
  if (node->references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  thread_local std::vector<const Node*> waiting;
  thread_local bool draining = false;
  waiting.push_back(node);
  if (draining) return;
  draining = true;
  while (!waiting.empty()) {
    const Node* next = waiting.back();
    waiting.pop_back();
    delete next;
  }
  waiting.shrink_to_fit();
  draining = false;
}

}  // namespace tilewright
