// SPDX-License-Identifier: Apache-2.0
// The C++ library's own handler prints the type of an uncaught exception, for which it brings a demangler of 54 KB into
// the runtime library. Nothing thrown leaves the C interface, so the handler is never reached; this one takes its
// place.
#include <cstdlib>

namespace __gnu_cxx {
void __verbose_terminate_handler() { std::abort(); }  // NOLINT(bugprone-reserved-identifier): the library names it
}  // namespace __gnu_cxx
