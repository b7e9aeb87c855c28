// SPDX-License-Identifier: Apache-2.0
// Shared by `run` and `bench`: options, loading a model with inputs, timing, describing outputs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "inputs/input_spec.h"
#include "inputs/npy.h"
#include "tilewright/runtime.h"

namespace CLI {
class App;
}

namespace tilewright::cli {

struct ModelOptions {
  std::string model;
  std::vector<std::string> inputs;
  std::vector<std::string> shapes;  // "x=1x37", for models with several shapes
  int threads = 0;
  uint64_t seed = 0;
  bool json = false;
  std::string trace, html;
  std::vector<std::string> plugins;
};
void add_model_options(CLI::App& verb, ModelOptions* options);

double now_ms();
uint64_t peak_rss_bytes();

struct Timing {
  int runs = 0;
  double min = 0, median = 0, p90 = 0, mean = 0, deviation = 0;  // milliseconds
};
Timing summarize(std::vector<double> ms);

// Loads plug-ins, then the model. Files that are not libraries yet (objects, LLVM IR, packages) are linked first, by
// the compiler or the system's. Throws tilewright::Error for errors of the runtime.
Result<Model> open_model(const ModelOptions& options);

// Applies "x=1x37": sizes that a VM program leaves open, or that select a variant. Errors: InvalidArgument,
// UnknownInput, ShapeMismatch (the input does not accept it).
Status apply_shapes(const std::vector<std::string>& texts, std::vector<inputs::InputInfo>* inputs);

// A loaded model with its inputs set.
struct ModelRun {
  Model model;
  Executor executor;
  double load_ms = 0;  // opening, checking and mapping the artifact, creating the executor
};
// Throws tilewright::Error for errors of the runtime.
Result<std::unique_ptr<ModelRun>> start(const ModelOptions& options);
Result<std::unique_ptr<ModelRun>> start(const ModelOptions& options, const Model& model, double load_ms);

// Copies of the current outputs.
Result<inputs::NamedTensors> outputs_of(const ModelRun& run);

// "4x16", or [4,16] in JSON.
std::string json_shape(const std::vector<int64_t>& shape);
std::string milliseconds(double ms);  // "1.234 ms", "12.3 us"
std::string byte_count(uint64_t bytes);
// Writes the profile as an HTML page (profile_page.h) to options.html; measures the machine's peaks first.
Status write_profile_page(const ModelOptions& options, const ModelRun& run, const Profile& profile);
Status write_text(const std::string& path, const std::string& text);

}  // namespace tilewright::cli
