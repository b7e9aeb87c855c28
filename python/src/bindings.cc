// SPDX-License-Identifier: Apache-2.0
// tilewright._core: the compiler and the runtime for Python, without logic of its own: converts arguments, makes calls,
// and raises diagnostics as tilewright.Error.
#include "loops.h"
#include "relay.h"

#include "base/advice.h"

namespace tilewright::python {
namespace {
PyObject* error_type = nullptr;
}  // namespace

// Names in messages may come from a damaged file and be invalid UTF-8.
static nb::object text_of(const std::string& bytes) {
  return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

void raise(const Diagnostic& d) {
  nb::object error = nb::borrow(error_type)(text_of(d.str()));
  error.attr("code") = static_cast<int>(d.code);
  error.attr("name") = error_name(d.code);
  error.attr("hint") = text_of(advice(d));
  PyErr_SetObject(error_type, error.ptr());
  throw nb::python_error();
}

}  // namespace tilewright::python

using namespace tilewright::python;

NB_MODULE(_core, m) {
  // No leak warnings: functions registered with C++ may form reference cycles with a script's variables, which stay
  // alive until the process ends.
  nb::set_leak_warnings(false);
  m.doc() = "The compiler and runtime of Tilewright";
  error_type = PyErr_NewException("tilewright.Error", PyExc_RuntimeError, nullptr);
  m.attr("Error") = nb::borrow(error_type);
  bind_functions(m);
  bind_session(m);
  bind_passes(m);
  bind_types(m);
  bind_expressions(m);
  bind_modules(m);
  bind_patterns(m);
  bind_vm(m);
  bind_compiler(m);
  bind_build(m);
  bind_loops(m);
  bind_statements(m);
  bind_schedules(m);
  bind_block_schedules(m);
  bind_torch(m);
  bind_tune(m);
}
