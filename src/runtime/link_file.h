// SPDX-License-Identifier: Apache-2.0
// Files that need linking first: objects, archives, LLVM IR, and tar packages of them are linked by the system's
// compiler and loaded.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/module.h"

namespace tilewright::runtime {

// `form` is "o", "a", "tar", "ll" or "bc". The compiler is $CXX, $CC, or the first of g++, gcc, clang++, clang, c++,
// cc; LLVM IR is compiled by the function runtime.module.link_ir (registered by the compiler, if present) or clang. A
// package that contains a library loads that. Errors: FileNotFound, LinkFailed (with the compiler's output), and the
// loader's.
Result<std::shared_ptr<Module>> load_linked(const std::string& path, const std::string& form);

// C source that defines the classic symbol __tvm_dev_mblob: eight bytes of length, then the import tree of `module`.
// Linked into a library without imports in its plan, it is found when the library is loaded.
Result<std::string> pack_imports_to_c(const std::shared_ptr<Module>& module);
// The same for an import tree.
std::string imports_to_c(std::string_view tree);

// Runs a program found on the path, without a shell, and waits; `folder` is for its output. Error: LinkFailed, with the
// output.
Status run_program(const std::vector<std::string>& command, const std::string& folder);

// Runs the system's C compiler ($CC, or the first of gcc, clang, cc) and waits; `folder` is for its output. Error:
// LinkFailed, with the output.
Status run_c_compiler(const std::vector<std::string>& arguments, const std::string& folder);
// The first line that it prints, of up to 4,000 characters.
Result<std::string> ask_c_compiler(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace tilewright::runtime
