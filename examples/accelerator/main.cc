// SPDX-License-Identifier: Apache-2.0
// A model with parts on a device of one's own: compiled, exported, loaded, its functions found by name, run by the
// graph executor, and compared with the same model on the processor alone.
//   ./accelerator model.onnx folder [NAME=1x3x224x224]...
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "codegen.h"
#include "module.h"
#include "tilewright/runtime.h"

namespace {

std::vector<float> values(size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = std::sin(0.37f * static_cast<float>(i));
  return out;
}

std::vector<std::vector<float>> run(const std::string& path) {
  tilewright::Model model(path);
  tilewright::Executor executor(model);
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    auto input = executor.input<float>(i);
    const std::vector<float> x = values(input.size());
    std::copy(x.begin(), x.end(), input.begin());
  }
  executor.run();
  std::vector<std::vector<float>> out;
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    auto y = executor.output<float>(i);
    out.emplace_back(y.begin(), y.end());
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::invalid_argument("usage: accelerator model.onnx folder [NAME=SHAPE]...");
  const std::string folder = argv[2], plain = folder + "/on_cpu.so", mixed = folder + "/on_device.so";
  tilewright::CompileOptions options;
  options.shapes.assign(argv + 3, argv + argc);
  tilewright::compile(argv[1], plain, options);
  options.external.push_back(accelerator::codegen());
  tilewright::compile(argv[1], mixed, options);

  // A library whose imports nobody can load is refused, by the name of what is missing.
  try {
    tilewright::Module::load(mixed);
    throw std::runtime_error("the library loaded without its loader");
  } catch (const tilewright::Error& e) {
    if (e.code() != 507) throw;
    std::printf("without its loader: %s\n", e.what());
  }
  accelerator::register_loader();

  tilewright::Module library = tilewright::Module::load(mixed);
  for (const tilewright::Module& module : library.imported_modules())
    std::printf("imports a module of type %s\n", module.type_key().c_str());

  // A function of the device by its name, as anyone may call it: too few tensors are an error, not a crash.
  const std::string graph = library["get_graph_json"]().string();
  const size_t at = graph.find("\"tvmgen_");
  if (at == std::string::npos) throw std::runtime_error("no step of the graph runs on the device");
  const std::string symbol = graph.substr(at + 1, graph.find('"', at + 1) - at - 1);
  tilewright::Function function = library.get_function(symbol, /*query_imports=*/true);
  if (!function) throw std::runtime_error("'" + symbol + "' is not found by its name");
  std::printf("found %s\n", symbol.c_str());
  try {
    function(1);
    throw std::runtime_error("a wrong call was accepted");
  } catch (const tilewright::Error& e) {
    std::printf("a wrong call: %s\n", e.what());
  }

  const auto expected = run(plain), given = run(mixed);
  for (size_t o = 0; o < expected.size(); ++o)
    for (size_t i = 0; i < expected[o].size(); ++i)
      if (!(std::abs(expected[o][i] - given[o][i]) <= 1e-4f + 1e-4f * std::abs(expected[o][i])))
        throw std::runtime_error("output " + std::to_string(o) + " differs at " + std::to_string(i) + ": " +
                                 std::to_string(given[o][i]) + " instead of " + std::to_string(expected[o][i]));
  std::printf("the device and the processor agree: %zu outputs, first value %g\n", expected.size(),
              static_cast<double>(given[0][0]));
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
