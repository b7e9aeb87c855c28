// SPDX-License-Identifier: Apache-2.0
// The command line: parses the verb, runs it, and converts errors to one line and an exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/exit_code.h"
#include "base/format.h"
#include "base/near_match.h"
#include "base/usage.h"
#include "cli/verbs.h"
#include "tilewright/runtime.h"

namespace tilewright::cli {
namespace {

int report(const std::string& text, int error_number) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", text.c_str());
  return exit_code(static_cast<ErrorCode>(error_number));
}

int report(const Diagnostic& d) { return report(d.str(), static_cast<int>(d.code)); }

int run(int argc, char** argv) {
  const bool on_device = argc > 2 && std::string_view(argv[1]) == "micro" && std::string_view(argv[2]) == "run";
  if (argc > 1 && !on_device && is_compiler_verb(argv[1])) {
    auto code = call_compiler(argc, argv);
    return code.ok() ? *code : report(code.error());
  }
  if (argc > 1 && is_session_verb(argv[1])) return report(become_session_program(argv));
  const std::vector<std::string> verbs = all_verbs();
  if (argc > 1 && argv[1][0] != '-' && std::count(verbs.begin(), verbs.end(), argv[1]) == 0)
    return report({ErrorCode::kInvalidArgument,
                   format("there is no verb '{}'", argv[1]),
                   {},
                   did_you_mean(argv[1], verbs, "'tilewright --help' lists them")});
  CLI::App app("Tilewright compiles neural networks to native code and runs them.", "tilewright");
  app.set_version_flag("--version", std::string("tilewright ") + tw_version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer(std::string(kCompilerVerbsHelp) +
             "\n"
             "Examples:\n"
             "  tilewright compile model.onnx -o model.so\n"
             "  tilewright run model.so --input @photo.jpg,preset=imagenet --top 5\n"
             "  tilewright bench model.so --threads 2\n"
             "\n"
             "'tilewright VERB --help' explains each verb. Results go to standard output, errors to standard error.\n"
             "Exit codes: 0 success, 1 wrong usage, 2 bad input or model, 3 verification failed, 4 build failed,\n"
             "70 a bug in Tilewright, 130 interrupted.");
  Action action;
  add_run_verb(app, &action);
  add_bench_verb(app, &action);
  if (on_device) add_micro_verb(app, &action);
  if (argc == 1) {
    std::fprintf(stderr, "%s", app.help().c_str());
    return 1;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return report(usage_error(app, e.what(), argc, argv));
  }
  auto code = action();
  return code.ok() ? *code : report(code.error());
}

}  // namespace

int command_line(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& e) {
    return report(e.what(), e.code());
  } catch (const std::bad_alloc&) {
    return report({ErrorCode::kLimitExceeded, "out of memory", {}, "free memory or raise the limit"});
  } catch (const std::exception& e) {
    return report({ErrorCode::kInternal, e.what(), {}, "please report this with the model and the command"});
  }
}

}  // namespace tilewright::cli
