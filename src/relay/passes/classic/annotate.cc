// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/annotate.h"

#include "relay/text.h"

namespace tilewright::relay {

Result<Module> annotate_spans(const Module& module, PassContext&) {
  ModuleText text = print_module(module);
  ParseOptions options;
  options.origin = "GeneratedSource";
  options.spans = true;
  return parse_module(text.text, text.constants, options);
}

Result<Module> annotate_memory_scope(const Module& module, PassContext&) { return module; }

}  // namespace tilewright::relay
