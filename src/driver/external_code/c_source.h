// SPDX-License-Identifier: Apache-2.0
// C and C++ source that external code generators make: it is compiled into the library, and its functions, in the
// classic packed convention, are those that the model calls (runtime/linked_functions.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright::driver {

// The type key of such a module. Its bytes, as the classic stack's: code, form, vector<string> functions,
// vector<string> constants.
inline constexpr const char* kCSourceKey = "c";

struct CSource {
  std::string code;
  std::string form;                    // the end of its file's name: c, cc, cpp
  std::vector<std::string> functions;  // that the library has from it
  std::vector<std::string> constants;  // that its __init_<function> wants
};
std::string write_c_source(const CSource& source);
// Errors: InvalidArgument (damaged; a form that is no C).
Result<CSource> read_c_source(std::string_view bytes);

// The source with the classic headers that it includes (dlpack/dlpack.h, tvm/runtime/c_runtime_api.h,
// c_backend_api.h, packed_func.h) put in their place, so that it compiles by itself anywhere.
std::string with_classic_headers(const std::string& code);

// An object file, by the system's C compiler for the machine it works for; what is no C is tried as C++, as the
// classic stack's users have it. Error: LinkFailed, with what the compiler said.
Result<std::string> compile_c_source(const CSource& source);

// "x86-64": the machine of an object file, or "no ELF machine".
std::string object_machine(std::string_view object);

}  // namespace tilewright::driver
