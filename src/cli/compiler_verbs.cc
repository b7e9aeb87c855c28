// SPDX-License-Identifier: Apache-2.0
// Verbs that need the compiler, whose library is loaded only for them: `run` starts without it.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iterator>

#include "base/format.h"
#include "cli/interrupt.h"
#include "cli/verbs.h"
#include "runtime/vm/compiler_hook.h"

namespace tilewright::cli {

using runtime::vm::kCompilerLibrary;

const char* const kCompilerVerbsHelp = R"(  compile                     Compile an ONNX model to a shared library
  verify                      Compare a compiled model with the reference, layer by layer
  inspect                     Show what is in a model, an artifact or a parameter file
  ops                         List the operators and what supports them
  passes                      List the passes and pipelines
  targets                     List the targets and what this machine has
  calibrate                   Measure this machine, for the choice of kernels
  tune                        Measure the kernels a model could have
  rpc-server                  Let clients with a token run models on this machine
  rpc-tracker                 Know the devices of a group, and give each request one
  token                       Show the token of sessions, or derive one
  quantize                    Write a float32 ONNX model in 8 bits, calibrated on samples
  micro                       Make programs for devices of models, build and run them
)";

namespace {

constexpr const char* kCompilerVerbs[] = {"compile", "verify",    "inspect", "ops",      "passes",
                                          "targets", "calibrate", "tune",    "quantize", "micro"};
constexpr const char* kServeTrials = "serve-trials";  // internal: started by `tune`
// Served by a small separate program, which can be deployed to devices on its own.
constexpr const char* kSessionVerbs[] = {"rpc-server", "rpc-tracker", "token"};

}  // namespace

std::string own_folder() {
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  std::string text(path, n > 0 ? static_cast<size_t>(n) : 0);
  return text.substr(0, text.rfind('/') + 1);
}

bool is_compiler_verb(const std::string& verb) {
  for (const char* known : kCompilerVerbs)
    if (verb == known) return true;
  return verb == kServeTrials;
}

std::vector<std::string> all_verbs() {
  std::vector<std::string> verbs(std::begin(kCompilerVerbs), std::end(kCompilerVerbs));
  verbs.insert(verbs.end(), std::begin(kSessionVerbs), std::end(kSessionVerbs));
  verbs.insert(verbs.end(), {"run", "bench"});
  return verbs;
}

bool is_session_verb(const std::string& verb) {
  return std::find(std::begin(kSessionVerbs), std::end(kSessionVerbs), verb) != std::end(kSessionVerbs);
}

Diagnostic become_session_program(char** argv) {
  const std::string beside = own_folder() + "tilewright-rpc";
  execv(beside.c_str(), argv);
  execvp("tilewright-rpc", argv);
  return {ErrorCode::kFileNotFound,
          format("'{}' needs the program tilewright-rpc, which is not installed here", argv[1]), beside,
          "put it beside this one"};
}

Result<void*> library_symbol(const char* file, const char* name, std::string* why) {
  // Beside the program (a build folder), then in an installation's lib, then on the system's search path.
  for (const std::string& place : {own_folder() + file, own_folder() + "../lib/" + file,
                                   own_folder() + "../lib/x86_64-linux-gnu/" + file, std::string(file)}) {
    if (place.find('/') != std::string::npos && access(place.c_str(), R_OK) != 0) continue;
    void* library = dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
      const char* error = dlerror();
      *why = error ? error : "";
      continue;
    }
    // The library stays loaded until the process ends.
    if (void* clean = dlsym(library, "tw_compiler_remove_work_folders"))
      clean_up_when_interrupted(reinterpret_cast<void (*)()>(clean));
    void* entry = dlsym(library, name);
    if (!entry)
      return Diagnostic(ErrorCode::kLinkFailed, format("the library has no '{}'", name), place,
                        "install matching versions");
    return entry;
  }
  return static_cast<void*>(nullptr);
}

Result<void*> compiler_symbol(const char* name, const std::string& user) {
  std::string why;
  if (void* entry = TW_TRY(library_symbol(kCompilerLibrary, name, &why))) return entry;
  return Diagnostic(ErrorCode::kLinkFailed,
                    format("'{}' needs the compiler, which is not installed here: {}", user, why), {},
                    format("put {} beside the program or into ../lib", kCompilerLibrary));
}

Result<int> call_compiler(int argc, const char* const* argv) {
  using Main = int (*)(int, const char* const*);
  return reinterpret_cast<Main>(TW_TRY(compiler_symbol("tw_compiler_main", argv[1])))(argc, argv);
}

}  // namespace tilewright::cli
