// SPDX-License-Identifier: Apache-2.0
// Where the time of a model with free sizes goes, at one of its sizes.
//   tilewright compile model.onnx --bound none -o model.so && ./vm_profile model.so 8
#include <cstdio>
#include <cstdlib>

#include "tilewright/vm.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s model.so SIZE\n", argv[0]);
    return 1;
  }
  try {
    tilewright::VmOptions options;
    options.always_compile = true;
    tilewright::VirtualMachine vm(argv[1], options);
    for (const tilewright::TensorInfo& input : vm.inputs()) {
      std::vector<int64_t> shape = input.shape;
      std::size_t count = 1;
      for (int64_t& d : shape) count *= static_cast<std::size_t>(d = d < 0 ? std::atoll(argv[2]) : d);
      vm.set_input(input.name, std::vector<float>(count, 1.0f), shape);
    }
    vm.run();  // compiles
    std::printf("%s", vm.profile().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
