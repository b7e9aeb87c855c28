// SPDX-License-Identifier: Apache-2.0
// Files that are no library yet: objects, archives, LLVM IR and tar packages of them, linked by the system's compiler
// and loaded.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/module.h"

namespace tilewright::runtime {

// `form` is "o", "a", "tar", "ll" or "bc". The compiler is $CXX, $CC, or the first of g++, gcc, clang++, clang, c++,
// cc; LLVM IR takes the function runtime.module.link_ir (the compiler's, where it is there) or clang. A package that
// holds a library gives that one. Errors: FileNotFound, LinkFailed (with what the compiler said), and the loader's.
Result<std::shared_ptr<Module>> load_linked(const std::string& path, const std::string& form);

// The modules that `module` imports as C source with the classic symbol __tvm_dev_mblob: a length of eight bytes, then
// the import tree. Compiled and linked with a library that has none in its plan, it is found when that is loaded.
Result<std::string> pack_imports_to_c(const std::shared_ptr<Module>& module);
// The same of an import tree.
std::string imports_to_c(std::string_view tree);

// Runs a program (found on the path) to its end, no shell in between; `folder` is for what it says. Error: LinkFailed,
// with that.
Status run_program(const std::vector<std::string>& command, const std::string& folder);

// Runs the system's C compiler ($CC, or the first of gcc, clang, cc) to its end; `folder` is for what it says. Error:
// LinkFailed, with that.
Status run_c_compiler(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace tilewright::runtime
