// SPDX-License-Identifier: Apache-2.0
#include "driver/left_out.h"

#include <string>
#include <vector>

#include "base/format.h"

namespace tilewright::driver {

Result<Built> naming_left_out_passes(const BuildOptions& options,
                                     const std::function<Result<Built>(const BuildOptions&)>& build) {
  Result<Built> made = build(options);
  if (made.ok() || options.disabled_passes.empty() || made.error().code == ErrorCode::kUnknownPass) return made;
  // Nobody watches the builds that only find out what is missing.
  BuildOptions quiet = options;
  quiet.progress = {};
  quiet.instruments.clear();
  quiet.dump_ir.clear();
  quiet.disabled_passes.clear();
  if (!build(quiet).ok()) return made;
  std::vector<std::string> needed;
  for (const std::string& pass : options.disabled_passes) {  // those that can be left out are
    quiet.disabled_passes.push_back(pass);
    if (build(quiet).ok()) continue;
    quiet.disabled_passes.pop_back();
    needed.push_back(pass);
  }
  std::string names;
  for (const std::string& pass : needed) names += format("{}{}", names.empty() ? "" : ", ", pass);
  Diagnostic error = std::move(made).error();
  error.hint = format("the model needs {} that {} left out: {}", needed.size() == 1 ? "the pass" : "passes",
                      needed.size() == 1 ? "is" : "are", names);
  // No defect of the compiler's: a later stage met what a pass would have replaced.
  if (error.code == ErrorCode::kInternal || error.code == ErrorCode::kVerifyFailed)
    error =
        Diagnostic(ErrorCode::kInvalidArgument, format("the model cannot be built without {}", names), {}, error.hint);
  return error;
}

}  // namespace tilewright::driver
