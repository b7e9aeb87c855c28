// SPDX-License-Identifier: Apache-2.0
#include "driver/external_code/generators.h"

namespace tilewright::driver {

const ExternalCodegen* own_generator(const std::string& name) {
  static const ExternalCodegen kGenerators[] = {
      {"ccompiler", {}, {}, generate_c},
  };
  for (const ExternalCodegen& generator : kGenerators)
    if (generator.name == name) return &generator;
  return nullptr;
}

}  // namespace tilewright::driver
