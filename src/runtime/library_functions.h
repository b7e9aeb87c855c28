// SPDX-License-Identifier: Apache-2.0
// Library functions that take their tensors as arguments (base/formats/function_table.h). They check arguments, run
// their kernels on the library's thread team and share its working memory; if the team is busy, a call runs on the
// caller's thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/formats/function_table.h"
#include "runtime/artifact.h"
#include "runtime/function.h"

namespace tilewright::runtime {

// The name under which the first function can be found as well.
inline constexpr const char* kEntryFunction = "__tvm_main__";

class LibraryFunctions {
 public:
  // From the artifact's plan; may be an empty list. Errors: BadArtifact.
  static Result<std::shared_ptr<const LibraryFunctions>> of(const std::shared_ptr<const Artifact>& artifact);
  bool empty() const { return functions_.empty(); }
  std::vector<std::string> names() const;
  // Empty if there is none of that name. Calls report InvalidArgument, ShapeMismatch, DtypeMismatch (an argument),
  // LimitExceeded (a size, memory).
  FunctionRef find(const std::string& name) const;

 private:
  struct Team;
  class Call;
  std::shared_ptr<const Artifact> artifact_;
  std::vector<std::shared_ptr<const plan::Function>> functions_;
  std::shared_ptr<Team> team_;
};

}  // namespace tilewright::runtime
