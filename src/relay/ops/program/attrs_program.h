// SPDX-License-Identifier: Apache-2.0
// Attributes of operators that exist only in programs (docs/vm.md).
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// onnx.node. `node` is the serialised node for the importer; the other fields describe it to program/ and to readers.
struct OnnxNodeAttrs : Attrs<OnnxNodeAttrs> {
  static constexpr const char* kName = "relay.attrs.OnnxNodeAttrs";
  std::string op, domain, node;
  int64_t version = 1, outputs = 1;
  std::vector<int64_t> operands;
  std::vector<std::string> settings;
  template <class V>
  void fields(V& v) {
    v("op", op, "the node's operator");
    v("domain", domain, "of its operator set; empty for the standard one");
    v("version", version, "of its operator set");
    v("outputs", outputs, "a tuple where there are more than one");
    v("operands", operands, "which of its inputs the operands are: others are left out");
    v("settings", settings, "its attributes as name=value; the value only of integers and short texts");
    v("node", node, "the serialised node in base64");
  }
};

// vm.host: a function of the runtime (runtime/vm/host_functions.h).
struct HostAttrs : Attrs<HostAttrs> {
  static constexpr const char* kName = "relay.attrs.HostAttrs";
  std::string function;
  std::vector<std::string> settings;
  template <class V>
  void fields(V& v) {
    v("function", function, "its name");
    v("settings", settings, "name=value");
  }
};

}  // namespace tilewright::relay
