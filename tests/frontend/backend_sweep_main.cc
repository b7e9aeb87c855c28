// SPDX-License-Identifier: Apache-2.0
// Imports and interprets test folders in the ONNX backend layout: backend_sweep [-v] FOLDER...
// Prints a line for each folder that does not pass, and the counts. Stock tolerances: rtol 1e-3, atol 1e-7.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/format.h"
#include "frontend/onnx/backend_case.h"
#include "relay/interpreter.h"

using namespace tilewright;

namespace {

std::string compare(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype()) return format("dtype {} instead of {}", got.dtype().str(), want.dtype().str());
  if (got.shape() != want.shape())
    return format("shape {} instead of {}", shape_str(got.shape()), shape_str(want.shape()));
  if (want.dtype().is_string()) return got.string_values() == want.string_values() ? "" : "other strings";
  double worst = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    if (!want.dtype().is_float()) {
      if (got.at_int(i) != want.at_int(i))
        return format("element {} is {} instead of {}", i, got.at_int(i), want.at_int(i));
      continue;
    }
    double g = got.at_double(i), w = want.at_double(i);
    if (std::isnan(g) && std::isnan(w)) continue;
    if (g == w) continue;
    double over = std::abs(g - w) - (1e-7 + 1e-3 * std::abs(w));
    if (!(over <= 0)) worst = std::max(worst, std::isnan(over) ? INFINITY : std::abs(g - w));
  }
  return worst > 0 ? format("largest error {}", worst) : "";
}

std::string run_case(const std::string& folder, int* constants_used) {
  auto loaded = onnx::load_backend_case(folder);
  if (!loaded) return loaded.error().str();
  for (const auto& set : loaded->sets) {
    std::vector<std::string> constants;
    auto module = onnx::import_backend_case(*loaded, set, &constants);
    if (!module) return module.error().str();
    *constants_used += static_cast<int>(constants.size());
    const auto& names = std::get<std::vector<std::string>>(module->main_function()->attrs.at("input_names"));
    std::map<std::string, relay::Value> inputs;
    for (const auto& v : set.inputs)
      if (std::find(names.begin(), names.end(), v.name) != names.end()) inputs[v.name] = relay::value_from(v.tensor);
    auto results = relay::interpret(*module, inputs);
    if (!results) return "evaluation: " + results.error().str();
    // A sequence is as many outputs.
    std::vector<Tensor> expected;
    for (const auto& v : set.outputs) {
      if (v.is_sequence)
        expected.insert(expected.end(), v.sequence.begin(), v.sequence.end());
      else
        expected.push_back(v.tensor);
    }
    if (results->size() != expected.size()) return format("{} outputs instead of {}", results->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      std::string difference = compare(relay::to_tensor((*results)[i]), expected[i]);
      if (!difference.empty()) return format("output {}: {}", i, difference);
    }
  }
  return loaded->sets.empty() ? "no data" : "";
}

}  // namespace

int main(int argc, char** argv) {
  int passed = 0, failed = 0, with_constants = 0;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "-v")) {
      verbose = true;
      continue;
    }
    int constants = 0;
    std::string why;
    try {
      why = run_case(argv[i], &constants);
    } catch (const std::exception& e) {
      why = std::string("EXCEPTION ") + e.what();
    }
    const char* name = std::strrchr(argv[i], '/') ? std::strrchr(argv[i], '/') + 1 : argv[i];
    if (why.empty()) {
      ++passed;
      with_constants += constants > 0;
      if (verbose) std::printf("passed %s\n", name);
    } else {
      ++failed;
      std::printf("failed %s: %s\n", name, why.c_str());
    }
    std::fflush(stdout);
  }
  std::printf("%d passed (%d of them with inputs as constants), %d failed\n", passed, with_constants, failed);
  return failed != 0;
}
