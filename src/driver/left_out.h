// SPDX-License-Identifier: Apache-2.0
// Errors of builds with passes that the caller left out, some of which the model cannot do without.
#pragma once
#include <functional>

#include "driver/build.h"

namespace tilewright::driver {

// build(options). Where that fails and passes were left out, it is built again with those, and if that succeeds, the
// error names the passes that are needed: for instance the only one that replaces an operator without a kernel.
Result<Built> naming_left_out_passes(const BuildOptions& options,
                                     const std::function<Result<Built>(const BuildOptions&)>& build);

}  // namespace tilewright::driver
