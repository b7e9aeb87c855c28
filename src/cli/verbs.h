// SPDX-License-Identifier: Apache-2.0
// The verbs of the tilewright program. `run` and `bench` need the runtime only; the others live in the compiler
// library.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace tilewright::cli {

// What a parsed command line does: an exit code, or an error to print.
using Action = std::function<Result<int>()>;

// Each adds a subcommand and stores its action when it is chosen.
void add_run_verb(CLI::App& app, Action* action);
void add_bench_verb(CLI::App& app, Action* action);
void add_micro_verb(CLI::App& app, Action* action);  // `micro run`; the compiler has its other verbs

// Whether the compiler library serves the verb, and the call into it. Errors: FileNotFound (no such library here).
bool is_compiler_verb(const std::string& verb);
// Whether the small program of sessions serves the verb; becoming it. Error: FileNotFound (it is not there).
bool is_session_verb(const std::string& verb);
Diagnostic become_session_program(char** argv);
std::vector<std::string> all_verbs();
Result<int> call_compiler(int argc, const char* const* argv);
// A function of that library, for `user` (a verb). Errors: LinkFailed.
Result<void*> compiler_symbol(const char* name, const std::string& user);
extern const char* const kCompilerVerbsHelp;
std::string own_folder();  // the program's, with a slash

}  // namespace tilewright::cli
