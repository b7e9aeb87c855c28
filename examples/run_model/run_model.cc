// SPDX-License-Identifier: Apache-2.0
// A compiled model from C++: fill its inputs with ones, run it, print the first values of each output.
//   ./run_model_cc model.so
#include <algorithm>
#include <iostream>

#include "tilewright/runtime.h"

int main(int argc, char** argv) try {
  if (argc != 2) throw std::invalid_argument("usage: run_model_cc model.so");
  tilewright::Model model(argv[1]);
  tilewright::Executor executor(model);
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    std::cout << "input  " << model.inputs()[i].name << ": " << model.inputs()[i].dtype << ", "
              << model.inputs()[i].bytes << " bytes\n";
    auto values = executor.input<float>(i);
    std::fill(values.begin(), values.end(), 1.0f);
  }
  executor.run();
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    std::cout << "output " << model.outputs()[i].name << ":";
    auto values = executor.output<float>(i);
    for (size_t k = 0; k < std::min<size_t>(values.size(), 5); ++k) std::cout << " " << values[k];
    std::cout << "\n";
  }
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 2;
}
