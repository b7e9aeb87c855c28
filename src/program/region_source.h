// SPDX-License-Identifier: Apache-2.0
// A region's source: its module as text and its constants,
// each stored once per program even if several regions use it.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "relay/expr.h"
#include "runtime/vm/program.h"

namespace tilewright::program {

class RegionWriter {
 public:
  runtime::vm::Region write(const char* format, const relay::Expr& function);
  // The shared constants that pieces of regions refer to (Program::shared).
  std::string take_shared() { return std::move(shared_); }

 private:
  std::string shared_;
  std::map<std::pair<const void*, std::string>, std::pair<uint64_t, uint64_t>> stored_;  // by bytes, dtype and shape
  std::vector<Tensor> constants_;  // keeps the bytes alive that stored_ refers to
};

// Parses the module; its constants are views of the source, kept alive by `owner`. Errors: BadArtifact, those of the
// text.
Result<relay::Module> read_region(std::string_view source, const std::shared_ptr<const void>& owner);

}  // namespace tilewright::program
