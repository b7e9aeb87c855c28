// SPDX-License-Identifier: Apache-2.0
// Python's PassContext as the compiler takes it.
#pragma once
#include "bind.h"
#include "ir/pass.h"
#include "relay/expr.h"

namespace tilewright::python {

// Values of a config by key. Raises TypeError for a value of no accepted type.
std::map<std::string, ConfigValue> config_of(nb::dict config);

// `bridge` has should_run(mod, name, level), before(mod, name, level) and after(mod, name, level); the instrument knows
// the module because every pass is wrapped so that it says what it made.
struct Instrumented {
  std::vector<std::shared_ptr<PassInstrument>> instruments;
  std::vector<Pass<relay::Module>> passes;
};
Instrumented instrument_passes(const relay::Module& module, nb::object bridge);

}  // namespace tilewright::python
