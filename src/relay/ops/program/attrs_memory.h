// SPDX-License-Identifier: Apache-2.0
// Attributes of explicit memory operators.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

struct AllocStorageAttrs : Attrs<AllocStorageAttrs> {
  static constexpr const char* kName = "relay.attrs.AllocStorageAttrs";
  DataType dtype = kFloat32;
  int64_t device_id = 0, device_type = 1;
  std::string target, host, memory_scope;
  template <class V>
  void fields(V& v) {
    v("dtype", dtype, "of what will lie there");
    v("device_id", device_id);
    v("device_type", device_type, "1: the processor");
    v("target", target, "what kernels there are compiled for");
    v("host", host, "that target's host");
    v("memory_scope", memory_scope, "a kind of memory of the device");
  }
};

struct AllocTensorAttrs : Attrs<AllocTensorAttrs> {
  static constexpr const char* kName = "relay.attrs.AllocTensorAttrs";
  DataType dtype = kFloat32;
  std::vector<int64_t> assert_shape;
  template <class V>
  void fields(V& v) {
    v("dtype", dtype);
    v("assert_shape", assert_shape, "the tensor's sizes");
  }
};

struct ReshapeTensorAttrs : Attrs<ReshapeTensorAttrs> {
  static constexpr const char* kName = "relay.attrs.ReshapeTensorAttrs";
  std::vector<int64_t> newshape;
  template <class V>
  void fields(V& v) {
    v("newshape", newshape);
  }
};

}  // namespace tilewright::relay
