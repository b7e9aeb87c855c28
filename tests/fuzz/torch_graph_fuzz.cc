// SPDX-License-Identifier: Apache-2.0
// fuzz-room: frontend
// fuzz-seeds: tests/data/torch/graphs
// Reading and importing the JSON of an exported program gives a module or a diagnostic, whatever the text is; never an
// internal error. A program of damaged text is imported as a VM program, too, where nodes wait.
#include "frontend/torch/import.h"
#include "frontend/torch/read_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  auto program = torch::read_program({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) {
    if (program.error().str().empty() || program.error().code == ErrorCode::kInternal) __builtin_trap();
    return 0;
  }
  for (const auto programs : {torch::Programs::kRefused, torch::Programs::kWhereNeeded}) {
    torch::ImportOptions options;
    options.programs = programs;
    auto module = torch::import_torch(*program, options);
    if (!module.ok() && (module.error().str().empty() || module.error().code == ErrorCode::kInternal)) __builtin_trap();
  }
  return 0;
}
