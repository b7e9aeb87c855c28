// SPDX-License-Identifier: Apache-2.0
// The classic stack's interface of a model that was compiled ahead of time: a header with a struct for the inputs, one
// for the outputs and one for the pools of memory, and the function that takes them; or the function of packed values.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/formats/plan.h"
#include "base/result.h"
#include "base/tensor.h"

namespace tilewright::codegen {

// A part of the arena.
struct CPool {
  std::string name;
  uint64_t begin = 0, bytes = 0;
  std::string member = {};  // of the struct, filled in by name_interface
};
// Weights that the program brings in its memory: plan.params[first] is at byte `second`.
struct CConstantPool {
  std::string name;
  uint64_t bytes = 0;
  std::vector<std::pair<size_t, uint64_t>> params;
  std::string member = {};
};

struct CInterface {
  std::string module;         // the model's name
  bool packed = false;        // arrays of values that are tensors, in place of structs
  bool own_workspace = true;  // the only pool is static memory of the file; else the caller brings the pools
  std::vector<CPool> pools;   // not empty
  std::vector<CConstantPool> constants;
  std::vector<uint64_t> input_offsets, output_offsets;  // in the arena; both empty: they are the caller's memory
  uint64_t alignment = 16;                              // of every pool

  // Filled in by name_interface.
  std::string prefix, macro;                 // "tvmgen_net", "TVMGEN_NET"
  std::string header;                        // "tvmgen_net.h"
  std::vector<std::string> inputs, outputs;  // members of the structs

  bool tensors_in_pools() const { return !input_offsets.empty() || !output_offsets.empty(); }
};

// Error: InvalidArgument when two tensors or pools have one name in C.
Status name_interface(const plan::Plan& plan, CInterface* interface);

// The header; null `weight`: without the data of constant pools.
std::string c_interface_header(const plan::Plan& plan, const CInterface& interface,
                               const std::function<Tensor(size_t)>& weight);

// What the function computes: `compute(inputs, outputs, pools, constants)` is a statement of C over their addresses.
struct CAddresses {
  std::vector<std::string> inputs, outputs, pools, constants;
};
// The workspace if it is the file's own, and the functions of the interface.
std::string c_interface_functions(const CInterface& interface,
                                  const std::function<std::string(const CAddresses&)>& compute);

// The file for a model whose kernels are an object that has `int32_t <prefix>_compute(inputs, outputs, pools)`.
std::string c_interface_of_object(const plan::Plan& plan, const CInterface& interface);
std::string object_entry_name(const CInterface& interface);

}  // namespace tilewright::codegen
