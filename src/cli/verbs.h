// SPDX-License-Identifier: Apache-2.0
// The verbs of the tilewright program. `run` and `bench` only
// need the runtime; the others are in the compiler library.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace tilewright::cli {

// All of the program: parses the verb, runs it, prints an error as one line. Returns the exit code.
int command_line(int argc, char** argv);

// The action of a parsed command line: returns an exit code, or an error to print.
using Action = std::function<Result<int>()>;

// Each adds a subcommand, which sets `action` when it is used.
void add_run_verb(CLI::App& app, Action* action);
void add_bench_verb(CLI::App& app, Action* action);
void add_micro_verb(CLI::App& app, Action* action);  // `micro run`; other micro verbs are the compiler's

// Whether the compiler library implements the verb, and the call into it. Errors: FileNotFound (no such library).
bool is_compiler_verb(const std::string& verb);
// Whether the RPC program implements the verb; exec of that program. Error: FileNotFound.
bool is_session_verb(const std::string& verb);
Diagnostic become_session_program(char** argv);
std::vector<std::string> all_verbs();
Result<int> call_compiler(int argc, const char* const* argv);
// Looks up a function of that library for `user` (a verb). Errors: LinkFailed.
Result<void*> compiler_symbol(const char* name, const std::string& user);
// A function of one of the project's libraries, which stays open; null, and why, where it is not installed. Errors:
// LinkFailed (no such function: another version).
Result<void*> library_symbol(const char* file, const char* name, std::string* why);
extern const char* const kCompilerVerbsHelp;
std::string own_folder();  // the program's folder, with a slash

}  // namespace tilewright::cli
