// SPDX-License-Identifier: Apache-2.0
// fuzz-room: relay
// fuzz-seeds: tests/relay/passes
// A text that is read prints to a text of the same module; a module that verifies goes through the default pipeline, or
// is refused with a diagnostic: a failed internal check or an unsound result is a defect.
#include <algorithm>
#include <cstdio>

#include "relay/passes/default_pipeline.h"
#include "relay/text.h"
#include "relay/verifier.h"

using namespace tilewright;
using namespace tilewright::relay;

namespace {

[[noreturn]] void defect(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s\n%s\n", what, detail.c_str());
  __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  text = text.substr(0, text.find("// ----"));  // seeds are text tests: what follows is their expected module
  static const std::vector<Tensor> kConstants = {Tensor::zeros(kFloat32, {2, 2}), Tensor::zeros(kFloat32, {2}),
                                                 Tensor::zeros(kFloat32, {2, 1, 1}), Tensor::zeros(kInt64, {3})};
  // The body of the first function as an expression without definitions: nothing is required of it but an answer.
  ParseOptions open;
  open.open = true;
  (void)parse_expression(text.substr(std::min(text.size(), text.find('{') + 1)), kConstants, open);
  auto module = parse_module(text, kConstants);
  if (!module.ok()) return 0;
  // Modules with gaps in their types are printed, too, but reading that may fill a gap, or find that types do not fit.
  ModuleText printed = print_module(*module);
  if (!module->main_function() || !verify_module(*module).ok()) return 0;
  auto again = parse_module(printed.text, printed.constants);
  if (!again.ok()) defect("what was printed is not read", again.error().str() + "\n" + printed.text);
  if (print_module(*again).text != printed.text) defect("printing is not stable", printed.text);
  PassContext context;
  Target target;
  target.vector_bits = 256;
  auto result = optimize(*module, context, target);
  if (!result.ok() && (result.error().code == ErrorCode::kInternal || result.error().code == ErrorCode::kVerifyFailed))
    defect("a pass broke a sound module", result.error().str() + "\n" + printed.text);
  return 0;
}
