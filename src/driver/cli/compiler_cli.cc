// SPDX-License-Identifier: Apache-2.0
// The compiler library's entry for verbs that the runtime alone cannot perform, called by the `tilewright` program.
#include <CLI/CLI.hpp>
#include <new>

#include "base/usage.h"
#include "driver/cli/commands.h"

extern "C" __attribute__((visibility("default"))) int tw_compiler_main(int argc, const char* const* argv) {
  using namespace tilewright;
  using namespace tilewright::driver;
  CLI::App app("Compile neural networks to native code", "tilewright");
  app.require_subcommand(1);
  Command chosen;
  auto add = [&](Command (*make)(CLI::App*), const char* name) {
    Command command = make(&app);
    app.get_subcommand(name)->callback([&chosen, command] { chosen = command; });
  };
  add(add_compile, "compile");
  add(add_verify, "verify");
  add(add_inspect, "inspect");
  add(add_ops, "ops");
  add(add_passes, "passes");
  add(add_targets, "targets");
  add(add_calibrate, "calibrate");
  add(add_tune, "tune");
  add(add_serve_trials, kServeTrialsVerb);
  add(add_quantize, "quantize");
  add(add_micro, "micro");
  try {
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::Success& e) {  // --help
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return fail(usage_error(app, e.what(), argc, argv));
  } catch (const std::bad_alloc&) {
    return fail(Diagnostic(ErrorCode::kLimitExceeded, "out of memory", {}, "free memory or raise the limit"));
  } catch (const std::exception& e) {
    return fail(Diagnostic(ErrorCode::kInternal, e.what()));
  }
}
