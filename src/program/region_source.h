// SPDX-License-Identifier: Apache-2.0
// The source of a region: its module as text, then its constants, each once in the program whatever number of regions
// reads it.
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
  // What the regions' pieces are of (Program::shared).
  std::string take_shared() { return std::move(shared_); }

 private:
  std::string shared_;
  std::map<std::pair<const void*, std::string>, std::pair<uint64_t, uint64_t>> stored_;  // by bytes, dtype and shape
  std::vector<Tensor> constants_;  // keeps the bytes that stored_ goes by
};

// The module again; its constants are views of the source, which `owner` keeps. Errors: BadArtifact, those of the text.
Result<relay::Module> read_region(std::string_view source, const std::shared_ptr<const void>& owner);

}  // namespace tilewright::program
