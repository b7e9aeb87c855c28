// SPDX-License-Identifier: Apache-2.0
// Models for programs without the runtime, behind the classic stack's interface (codegen/source/c_interface.h).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "codegen/source/c_interface.h"
#include "ir/target.h"
#include "lower/memory_options.h"

namespace tilewright::driver {

struct Built;

struct AheadOfTime {
  bool packed = false;                                  // a packed function instead of structs
  std::vector<lower::MemoryPool> workspace, constants;  // provided by the program; empty: the model's own static memory
  int64_t workspace_alignment = 16, constant_alignment = 16;  // bytes; powers of two
  bool tensors_in_pools = false;                              // inputs and outputs lie in the program's pools
  std::string algorithm = "greedy_by_size";
  lower::PoolPlanner planner;  // plans the workspace instead of the algorithm
};

// Pools of a model that the runtime executes, which allocates them: their sizes are the limits of the plan.
struct RuntimePools {
  std::vector<lower::MemoryPool> workspace, constants;
  std::string algorithm = "greedy_by_size";
  lower::PoolPlanner planner;  // plans the workspace instead of the algorithm
};
// Error: InvalidArgument (a pool without a name).
Result<lower::MemoryOptions> memory_of(const RuntimePools& options);

// Memory planning options. Errors: InvalidArgument for conflicting options and invalid alignments.
Result<lower::MemoryOptions> memory_of(const AheadOfTime& options, const Target& target);

// A memory pool of the result: name, size, whether it holds weights.
struct PoolUse {
  std::string name;
  int64_t bytes = 0;
  bool constant = false;
};
// Errors: InvalidArgument (pools of constants that are too small).
Result<std::vector<PoolUse>> pools_of(const Built& built);

// The C interface of the model. Errors: InvalidArgument (names that are equal in C, pools that the target does not
// support).
Result<codegen::CInterface> ahead_of_time_interface(const Built& built);

// The C file: with the target c the whole model, otherwise only the wrapper of the object. Error: UnsupportedModel.
Result<std::string> ahead_of_time_source(const Built& built);

// Files by path in a Model Library Format: codegen/host/{src,include,lib}.
// Further errors: CannotWrite, LinkFailed.
using Files = std::vector<std::pair<std::string, std::string>>;
Result<Files> ahead_of_time_files(const Built& built);

}  // namespace tilewright::driver
