// SPDX-License-Identifier: Apache-2.0
// The CLI verbs that need the compiler. Each adds its options to the program and returns its action.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "driver/build.h"

namespace CLI {
class App;
}

namespace tilewright::driver {

// Prints the diagnostic to stderr; returns its exit code.
int fail(const Diagnostic& diagnostic);

// Options common to all compiling verbs.
struct CompileFlags {
  std::string model, target = "llvm", math, dump_ir, params;
  int opt_level = 3, jobs = 0;
  std::vector<std::string> shapes, bounds, constants, required, disabled, config, plugins;
  bool quiet = false, no_kernel_cache = false;
  void add_to(CLI::App* app);
  void add_model_to(CLI::App* app);      // only the options for the model and the target
  Result<BuildOptions> options() const;  // parses the shapes and the config
};
// "name=1x3x224x224" as the shape of an input. A list in braces, "name=1x3x48x{160,320}", makes a variant of the model
// for each entry; all lists have the same length, and the n-th variant takes the n-th entry of each. Error:
// InvalidArgument.
Status add_shapes(const std::vector<std::string>& texts, BuildOptions* options);
// "name=1,3,640,640" -> name and the values' text. Error: InvalidArgument.
Result<std::pair<std::string, std::string>> parse_constant(const std::string& text);

// A status line on a terminal; nothing if output is piped.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine() { clear(); }
  Progress callback();
  void clear();

 private:
  bool active_;
};

using Command = std::function<int()>;
Command add_compile(CLI::App* app);
Command add_verify(CLI::App* app);
Command add_inspect(CLI::App* app);
Command add_ops(CLI::App* app);
Command add_passes(CLI::App* app);
Command add_targets(CLI::App* app);
Command add_calibrate(CLI::App* app);
Command add_tune(CLI::App* app);
// The process in which `tune` measures.
inline constexpr const char* kServeTrialsVerb = "serve-trials";
Command add_serve_trials(CLI::App* app);
Command add_quantize(CLI::App* app);
Command add_micro(CLI::App* app);

}  // namespace tilewright::driver
