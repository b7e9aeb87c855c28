// SPDX-License-Identifier: Apache-2.0
#include "runtime/link_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/formats/seal.h"
#include "base/plugin.h"
#include "base/work_folder.h"

extern char** environ;

namespace tilewright::runtime {
namespace {

// (IR or bitcode, library to write): registered by the compiler if it is loaded; otherwise clang is used.
constexpr const char* kLinkIr = "runtime.module.link_ir";

// The file of a program's output, in its folder.
constexpr const char* kSaid = "/said";

// Without <filesystem> and streams, which would double the runtime's size.
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  DIR* open = opendir(folder.c_str());
  if (!open) return names;
  while (const dirent* entry = readdir(open))
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..")
      names.emplace_back(entry->d_name);
  closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_plain_file(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// The first bytes of a file.
std::string start_of(const std::string& path, size_t most) {
  std::string text(most, '\0');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t n = read(file, text.data(), most);
  close(file);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::string first_found(std::initializer_list<const char*> programs) {
  const char* path = std::getenv("PATH");
  for (const char* program : programs) {
    std::string_view rest = path ? path : "/usr/bin:/bin";
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(':'), rest.size());
      std::string candidate = std::string(rest.substr(0, end)) + "/" + program;
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return {};
}

Result<std::string> compiler_for(const std::string& form) {
  if (form == "ll" || form == "bc") {
    std::string clang = first_found({"clang", "clang++", "clang-19", "clang-18", "clang-17", "clang-16"});
    if (!clang.empty()) return clang;
    return Diagnostic(ErrorCode::kLinkFailed, "LLVM IR is compiled by clang, and none was found on the path", {},
                      "install clang, or export a library (.so)");
  }
  for (const char* variable : {"CXX", "CC"})
    if (const char* set = std::getenv(variable); set && *set) return std::string(set);
  std::string found = first_found({"g++", "gcc", "clang++", "clang", "c++", "cc"});
  if (!found.empty()) return found;
  return Diagnostic(ErrorCode::kLinkFailed, "no C or C++ compiler was found on the path to link with", {},
                    "install one or set CXX, or export a library (.so)");
}

// The library linked from `path`, which messages name: the temporary folder is removed, and the mapping outlives the
// file.
Result<std::shared_ptr<Module>> load_named(const std::string& file, const std::string& path) {
  LoadOptions options;
  options.home = path;
  auto library = LibraryModule::load(file, options);
  if (library.ok()) return std::shared_ptr<Module>(std::move(*library));
  Diagnostic problem = std::move(library).error();
  problem.where = path;
  return problem;
}

}  // namespace

Status run_program(const std::vector<std::string>& command, const std::string& folder) {
  const std::string said = folder + kSaid;
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Diagnostic(ErrorCode::kLinkFailed, format("'{}' cannot be started: {}", command[0], std::strerror(failed)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok{};
  std::string text = start_of(said, 2000);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ';');
  return Diagnostic(ErrorCode::kLinkFailed,
                    format("'{}' failed: {}", command[0], text.empty() ? "it said nothing" : text));
}

Status run_c_compiler(const std::vector<std::string>& arguments, const std::string& folder) {
  const char* set = std::getenv("CC");
  const std::string compiler = set && *set ? std::string(set) : first_found({"gcc", "clang", "cc"});
  if (compiler.empty())
    return Diagnostic(ErrorCode::kLinkFailed, "no C compiler was found on the path", {}, "install one or set CC");
  std::vector<std::string> command = {compiler};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_program(command, folder);
}

Result<std::string> ask_c_compiler(const std::vector<std::string>& arguments, const std::string& folder) {
  TW_TRY_STATUS(run_c_compiler(arguments, folder));
  const std::string answer = start_of(folder + kSaid, 4000);
  return answer.substr(0, answer.find('\n'));
}

Result<std::shared_ptr<Module>> load_linked(const std::string& path, const std::string& form) {
  const std::string file = absolute_path(path);
  if (file.empty() || !is_plain_file(file))
    return Diagnostic(ErrorCode::kFileNotFound, "there is no such file", path, "check the path");
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-link"));
  const std::string& folder = place.path();
  std::vector<std::string> objects = {file};
  if (form == "tar") {
    Status unpacked = run_program({"tar", "-xf", file, "-C", folder}, folder);
    if (!unpacked.ok()) return std::move(unpacked).error().at(path);
    objects.clear();
    std::string library;
    for (const std::string& name : entries_of(folder)) {
      const std::string member = folder + "/" + name;
      if (!is_plain_file(member)) continue;
      if (name.ends_with(".so")) library = member;
      for (const char* end : {".o", ".a", ".c", ".cc", ".cpp"})
        if (name.ends_with(end)) objects.push_back(member);
    }
    if (!library.empty()) return load_named(library, path);
    if (objects.empty() && is_plain_file(folder + "/metadata.json"))
      return Diagnostic(ErrorCode::kBadArtifact, "a Model Library Format is for programs of devices, not to be loaded",
                        path, "tilewright micro create makes a program of it");
    if (objects.empty())
      return Diagnostic(ErrorCode::kBadArtifact, "the package holds neither a library nor objects", path);
  }
  for (const std::string& object : objects)
    if (Status whole = check_object_seals(object); !whole.ok()) {
      Diagnostic problem = std::move(whole).error();
      problem.where = path;
      return problem;
    }
  FunctionRef compiler = form == "ll" || form == "bc" ? find_global(kLinkIr) : FunctionRef();
  if (compiler) {
    const Value arguments[] = {Value::string(file), Value::string(folder + "/lib.so")};
    const tw_value raw[] = {arguments[0].get(), arguments[1].get()};
    TW_TRY(call(compiler.get(), raw));
    return load_named(folder + "/lib.so", path);
  }
  std::vector<std::string> command = {TW_TRY(compiler_for(form)), "-shared", "-fPIC", "-o", folder + "/lib.so"};
  for (const std::string& object : objects) {
    const bool archive = object.ends_with(".a");
    if (archive) command.push_back("-Wl,--whole-archive");
    command.push_back(object);
    if (archive) command.push_back("-Wl,--no-whole-archive");
  }
  command.push_back("-lm");
  Status linked = run_program(command, folder);
  if (!linked.ok()) return std::move(linked).error().at(path);
  return load_named(folder + "/lib.so", path);
}

Result<std::string> pack_imports_to_c(const std::shared_ptr<Module>& module) {
  const std::string tree = TW_TRY(save_import_tree(module));
  if (tree.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "the module imports nothing", {}, "import a module first");
  return imports_to_c(tree);
}

std::string imports_to_c(std::string_view tree) {
  std::string out = format(
      "/* The modules that a library imports. */\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\nextern const unsigned "
      "char {0}[];\n"
      "const unsigned char __attribute__((visibility(\"default\"))) {0}[{1}] = {{\n  ",
      kImportsSymbol, tree.size() + 8);
  for (int i = 0; i < 8; ++i) out += format("0x{:02x},", static_cast<unsigned>(tree.size() >> (8 * i) & 0xff));
  for (size_t i = 0; i < tree.size(); ++i)
    out += format("{}0x{:02x},", i % 20 == 0 ? "\n  " : "", static_cast<unsigned>(static_cast<unsigned char>(tree[i])));
  return out + "\n};\n#ifdef __cplusplus\n}\n#endif\n";
}

}  // namespace tilewright::runtime
