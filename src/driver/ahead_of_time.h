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
  bool packed = false;                                  // a packed function in place of structs
  std::vector<lower::MemoryPool> workspace, constants;  // that the program brings; empty: the model's own static memory
  int64_t workspace_alignment = 16, constant_alignment = 16;  // bytes; powers of two
  bool tensors_in_pools = false;  // the program asks where the inputs and outputs lie in its pools
  std::string algorithm = "greedy_by_size";
  lower::PoolPlanner planner;  // of the workspace, in the algorithm's place
};

// How the memory is planned. Errors: InvalidArgument for options that exclude each other, and alignments that are none.
Result<lower::MemoryOptions> memory_of(const AheadOfTime& options, const Target& target);

// Where the memory pools of a build ended up: name, bytes, whether it holds weights.
struct PoolUse {
  std::string name;
  int64_t bytes = 0;
  bool constant = false;
};
Result<std::vector<PoolUse>> pools_of(const Built& built);

// How a program calls the model. Errors: InvalidArgument (names that are one in C, pools that the target does not
// take).
Result<codegen::CInterface> ahead_of_time_interface(const Built& built);

// The C file: everything of the target c, of others what calls the object. Error: UnsupportedModel.
Result<std::string> ahead_of_time_source(const Built& built);

// Files by their places in a Model Library Format: codegen/host/{src,include,lib}. Errors also: CannotWrite,
// LinkFailed.
using Files = std::vector<std::pair<std::string, std::string>>;
Result<Files> ahead_of_time_files(const Built& built);

}  // namespace tilewright::driver
