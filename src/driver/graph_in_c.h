// SPDX-License-Identifier: Apache-2.0
// Models for the graph executor of the C runtime (crt/): each kernel is a packed function of whole tensors, and the
// graph JSON says in which order they are called.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/ahead_of_time.h"
#include "lower/lower.h"

namespace tilewright::driver {

struct GraphInC {
  bool link_params = false;  // weights are constants of the code instead of a file
};

lower::MemoryOptions memory_of(const GraphInC& options, const Target& target);
// Names the kernels as the classic stack does: tvmgen_<model>_fused_<operators>.
void name_packed_functions(const std::string& model, lower::Lowered* lowered);

// The C file with the packed functions and the system library's table. Error: UnsupportedModel for what the C runtime
// has no executor for: several shapes or processors, other devices, imported modules.
Result<std::string> graph_in_c_source(const Built& built);
// The kernels: a C file, or, for other targets, an object.
// Further errors: CannotWrite, LinkFailed.
Result<std::string> graph_in_c_kernels(const Built& built);
// Files by path in a Model Library Format: codegen/host/{src,lib}.
// Further error: InvalidArgument (one of several models has its weights in the code: storages have numbers, not names).
// `alone`: the system library is this model's; otherwise its functions are for system_lib_of.
Result<Files> graph_in_c_files(const Built& built, bool alone = true);
// The file of the system library of several models.
Files system_lib_of(const std::vector<const Built*>& models);

}  // namespace tilewright::driver
