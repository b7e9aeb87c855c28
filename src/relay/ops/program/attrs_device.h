// SPDX-License-Identifier: Apache-2.0
// Attributes of operators that say on which device a value lives, or which compiler takes it.
#pragma once
#include <string>

#include "ir/attrs.h"

namespace tilewright::relay {

// on_device: device_type in DLPack's numbering (1: the CPU).
struct OnDeviceAttrs : Attrs<OnDeviceAttrs> {
  static constexpr const char* kName = "relay.attrs.OnDeviceAttrs";
  int64_t device_type = 1, device_id = 0;
  std::string target, host, memory_scope;
  bool constrain_result = false, constrain_body = true;
  template <class V>
  void fields(V& v) {
    v("device_type", device_type, "1: the processor");
    v("device_id", device_id);
    v("target", target, "what kernels there are compiled for");
    v("host", host, "that target's host");
    v("memory_scope", memory_scope, "a kind of memory of the device");
    v("constrain_result", constrain_result, "the result, too, stays on the device");
    v("constrain_body", constrain_body, "the operand is computed on the device");
  }
};

struct DeviceCopyAttrs : Attrs<DeviceCopyAttrs> {
  static constexpr const char* kName = "relay.attrs.DeviceCopyAttrs";
  int64_t src_dev_type = 1, src_dev_id = 0, dst_dev_type = 1, dst_dev_id = 0;
  std::string src_target, src_host, src_memory_scope, dst_target, dst_host, dst_memory_scope;
  template <class V>
  void fields(V& v) {
    v("src_dev_type", src_dev_type);
    v("src_dev_id", src_dev_id);
    v("src_target", src_target);
    v("src_host", src_host);
    v("src_memory_scope", src_memory_scope);
    v("dst_dev_type", dst_dev_type);
    v("dst_dev_id", dst_dev_id);
    v("dst_target", dst_target);
    v("dst_host", dst_host);
    v("dst_memory_scope", dst_memory_scope);
  }
};

// annotation.compiler_begin, annotation.compiler_end.
struct CompilerAttrs : Attrs<CompilerAttrs> {
  static constexpr const char* kName = "relay.attrs.CompilerAttrs";
  std::string compiler;
  template <class V>
  void fields(V& v) {
    v("compiler", compiler, "the external code generator's name; default: none");
  }
};

}  // namespace tilewright::relay
