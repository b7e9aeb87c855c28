// SPDX-License-Identifier: Apache-2.0
// The classic stack's interface of an ahead-of-time compiled model: a header with structs for inputs, outputs and
// memory pools, and the function that takes them; or a function of packed values.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/formats/plan.h"
#include "base/result.h"
#include "base/tensor.h"

namespace tilewright::codegen {

// A pool: part of the arena.
struct CPool {
  std::string name;
  uint64_t begin = 0, bytes = 0;
  std::string member = {};  // name in the struct, set by name_interface
};
// A pool of weights in the program's memory: plan.params[first] lies at byte `second`.
struct CConstantPool {
  std::string name;
  uint64_t bytes = 0;
  std::vector<std::pair<size_t, uint64_t>> params;
  std::string member = {};
};

struct CInterface {
  std::string module;         // the model's name
  bool packed = false;        // a packed function instead of structs
  bool own_workspace = true;  // the only pool is static memory in the file; else the caller provides pools
  std::vector<CPool> pools;   // not empty
  std::vector<CConstantPool> constants;
  std::vector<uint64_t> input_offsets, output_offsets;  // in the arena; both empty: tensors are the caller's memory
  uint64_t alignment = 16;                              // of all pools

  // Set by name_interface.
  std::string prefix, macro;                 // "tvmgen_net", "TVMGEN_NET"
  std::string header;                        // "tvmgen_net.h"
  std::vector<std::string> inputs, outputs;  // member names in the structs

  bool tensors_in_pools() const { return !input_offsets.empty() || !output_offsets.empty(); }
};

// The pool that has a byte of the arena.
const CPool& pool_of(const CInterface& interface, uint64_t offset);

// Error: InvalidArgument if two tensors or pools would get the same C name.
Status name_interface(const plan::Plan& plan, CInterface* interface);

// The header; if `weight` is null, without the data of constant pools.
std::string c_interface_header(const plan::Plan& plan, const CInterface& interface,
                               const std::function<Tensor(size_t)>& weight);

// `compute(inputs, outputs, pools, constants)` returns the C statement that runs the model on these addresses.
struct CAddresses {
  std::vector<std::string> inputs, outputs, pools, constants;
};
// The interface's functions, and the workspace if it is part of the file.
std::string c_interface_functions(const plan::Plan& plan, const CInterface& interface,
                                  const std::function<std::string(const CAddresses&)>& compute);

// The file for a model whose kernels are in an object with `int32_t <prefix>_compute(inputs, outputs, pools)`.
std::string c_interface_of_object(const plan::Plan& plan, const CInterface& interface);
std::string object_entry_name(const CInterface& interface);

}  // namespace tilewright::codegen
