// SPDX-License-Identifier: Apache-2.0
// The device for the command line: its code generator for `tilewright compile --plugin`, its module for `run --plugin`.
#include "codegen.h"
#include "module.h"

extern "C" {

const tw_external_codegen* tw_compiler_plugin(uint64_t* count) {
  static const tilewright::ExternalCodegen unit = accelerator::codegen();
  static const tw_external_codegen list[] = {unit.as_c()};
  *count = 1;
  return list;
}

int32_t tw_runtime_plugin(void) {
  try {
    accelerator::register_loader();
    return 0;
  } catch (const tilewright::Error& e) {
    return e.code();
  }
}

}  // extern "C"
