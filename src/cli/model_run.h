// SPDX-License-Identifier: Apache-2.0
// What `run` and `bench` share: options, loading a model with its inputs, timing, describing outputs.
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
  std::vector<std::string> shapes;  // "x=1x37", of a model that has several
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

// The model, after its plug-ins. Whatever is no library yet (objects, LLVM IR, packages) is linked first, by the
// compiler or the system's. Throws tilewright::Error for what the runtime refuses.
Result<Model> open_model(const ModelOptions& options);

// "x=1x37" for sizes that a VM program leaves open, or that pick a variant. Errors: InvalidArgument, UnknownInput,
// ShapeMismatch (the input does not take it).
Status apply_shapes(const std::vector<std::string>& texts, std::vector<inputs::InputInfo>* inputs);

// A loaded model with its inputs set.
struct ModelRun {
  Model model;
  Executor executor;
  double load_ms = 0;  // opening, checking and mapping the artifact, making the executor
};
// Throws tilewright::Error for what the runtime refuses.
Result<std::unique_ptr<ModelRun>> start(const ModelOptions& options);
Result<std::unique_ptr<ModelRun>> start(const ModelOptions& options, const Model& model, double load_ms);

// The outputs as they stand, copied.
Result<inputs::NamedTensors> outputs_of(const ModelRun& run);

// "4x16", or [4,16] in JSON.
std::string json_shape(const std::vector<int64_t>& shape);
std::string milliseconds(double ms);  // "1.234 ms", "12.3 us"
std::string byte_count(uint64_t bytes);
// The profile as a page for a browser (profile_page.h), written to options.html; measures the machine first.
Status write_profile_page(const ModelOptions& options, const ModelRun& run, const Profile& profile);
Status write_text(const std::string& path, const std::string& text);

}  // namespace tilewright::cli
