// SPDX-License-Identifier: Apache-2.0
// The functions of a library that are called with tensors of their own (base/formats/function_table.h). They check
// their arguments, run their kernels on the library's thread team, and share its working memory; a call that finds the
// team busy runs on the caller's thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/formats/function_table.h"
#include "runtime/artifact.h"
#include "runtime/function.h"

namespace tilewright::runtime {

// The name by which the first function is found, too.
inline constexpr const char* kEntryFunction = "__tvm_main__";

class LibraryFunctions {
 public:
  // What the artifact's plan says; none: an empty list. Errors: BadArtifact.
  static Result<std::shared_ptr<const LibraryFunctions>> of(const std::shared_ptr<const Artifact>& artifact);
  bool empty() const { return functions_.empty(); }
  std::vector<std::string> names() const;
  // Empty where there is none by that name. Calls report InvalidArgument, ShapeMismatch, DtypeMismatch (an argument),
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
