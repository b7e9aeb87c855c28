// SPDX-License-Identifier: Apache-2.0
// Converts Python's PassContext for the compiler.
#pragma once
#include "bind.h"
#include "ir/pass.h"
#include "relay/expr.h"

namespace tilewright::python {

// Config values by key. Raises TypeError for unsupported value types.
std::map<std::string, ConfigValue> config_of(nb::dict config);

// `bridge` has should_run(mod, name, level), before(mod, name, level) and after(mod, name, level). To have the module
// at hand for the instrument, every pass is wrapped so that it records its result.
struct Instrumented {
  std::vector<std::shared_ptr<PassInstrument>> instruments;
  std::vector<Pass<relay::Module>> passes;
};
Instrumented instrument_passes(const relay::Module& module, nb::object bridge);

}  // namespace tilewright::python
