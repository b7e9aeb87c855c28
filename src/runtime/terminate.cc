// SPDX-License-Identifier: Apache-2.0
// Replaces the C++ library's handler for uncaught exceptions, which
// prints their type and pulls a demangler of 54 KB into the runtime
// library. No exception leaves the C interface, so it is never called.
#include <cstdlib>

namespace __gnu_cxx {
void __verbose_terminate_handler() { std::abort(); }  // NOLINT(bugprone-reserved-identifier): the library names it
}  // namespace __gnu_cxx
