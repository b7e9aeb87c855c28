// SPDX-License-Identifier: Apache-2.0
// C and C++ source from external code generators: compiled into the library, whose model calls its functions by the
// classic packed convention (runtime/linked_functions.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright::driver {

// The type key of such a module. Its bytes are the classic stack's: code, form, vector<string> functions,
// vector<string> constants.
inline constexpr const char* kCSourceKey = "c";

struct CSource {
  std::string code;
  std::string form;                    // file extension: c, cc, cpp
  std::vector<std::string> functions;  // functions that the library exports from it
  std::vector<std::string> constants;  // constants for its __init_<function>
};
std::string write_c_source(const CSource& source);
// Errors: InvalidArgument (damaged, or a form other than C).
Result<CSource> read_c_source(std::string_view bytes);

// The source with classic headers (dlpack/dlpack.h, tvm/runtime/c_runtime_api.h, c_backend_api.h, packed_func.h)
// inlined, so that it compiles on its own.
std::string with_classic_headers(const std::string& code);

// Compiles to an object with the system's C compiler for its default machine; source that is not valid C is tried as
// C++, as the classic stack's users expect. Error: LinkFailed, with the compiler's output.
Result<std::string> compile_c_source(const CSource& source);

// Files of the shared libraries that the source names, a line `#pragma comment(lib, "NAME")` for each, where the
// system's C compiler finds them. Error: LinkFailed, naming a library that it does not find.
Result<std::vector<std::string>> libraries_of(const CSource& source);

// The machine of an object file ("x86-64"), or "no ELF machine".
std::string object_machine(std::string_view object);

}  // namespace tilewright::driver
