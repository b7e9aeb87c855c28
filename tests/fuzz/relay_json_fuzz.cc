// SPDX-License-Identifier: Apache-2.0
// fuzz-room: relay
// fuzz-seeds: tests/data/classic
// JSON that is read can be verified, printed and written again; what is written is read.
#include <cstdio>

#include "relay/classic/json.h"
#include "relay/text.h"
#include "relay/verifier.h"

using namespace tilewright;
using namespace tilewright::relay;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = load_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) return 0;
  (void)print_module(*module);
  if (!verify_module(*module).ok()) return 0;
  std::string text = save_json(*module);
  auto again = load_json(text);
  if (!again.ok() || !structural_equal(*again, *module)) {
    std::fprintf(stderr, "what was written is not read alike\n%s\n", again.ok() ? "" : again.error().str().c_str());
    __builtin_trap();
  }
  return 0;
}
