// SPDX-License-Identifier: Apache-2.0
// Everything in one program: compile an ONNX model, load the library it became, run it on ones.
//   ./compile_and_run model.onnx model.so [NAME=1x3x224x224]...
#include <algorithm>
#include <iostream>

#include "tilewright/compiler.h"
#include "tilewright/runtime.h"

int main(int argc, char** argv) try {
  if (argc < 3) throw std::invalid_argument("usage: compile_and_run model.onnx model.so [NAME=SHAPE]...");
  tilewright::CompileOptions options;
  options.shapes.assign(argv + 3, argv + argc);
  tilewright::compile(argv[1], argv[2], options);
  tilewright::Model model(argv[2]);
  tilewright::Executor executor(model);
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    auto values = executor.input<float>(i);
    std::fill(values.begin(), values.end(), 1.0f);
  }
  executor.run();
  std::cout << model.outputs()[0].name << ": " << executor.output<float>(0)[0] << "\n";
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 2;
}
