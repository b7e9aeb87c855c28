// SPDX-License-Identifier: Apache-2.0
// What the files of tilewright._core share: errors as exceptions, and values of the C interface as Python objects.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <vector>

#include "base/result.h"
#include "tilewright/c_api.h"

namespace tilewright::python {

namespace nb = nanobind;

[[noreturn]] void raise(const Diagnostic& d);
template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}
// Raises the error that the C interface reported last; a Python exception that passed through it is restored unchanged.
void check(int32_t status);

using AnyArray = nb::ndarray<nb::device::cpu>;
using ReadArray = nb::ndarray<nb::device::cpu, nb::ro>;

// A DLTensor over an array, with the storage for its shape.
struct TensorView {
  explicit TensorView(const ReadArray& array);
  TensorView(const TensorView&) = delete;
  std::vector<int64_t> shape, strides;
  DLTensor tensor{};
};

// The arguments of a call: values borrowed from Python objects, and whatever must live until the call returns.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    for (Py_buffer& b : buffers_) PyBuffer_Release(&b);
  }
  tw_value value(nb::handle object);
  // The last tensor's array.
  const ReadArray& array() const { return arrays_.back(); }

 private:
  std::deque<ReadArray> arrays_;
  std::deque<TensorView> views_;
  std::deque<std::vector<tw_value>> lists_;
  std::deque<nb::object> objects_;
  std::deque<Py_buffer> buffers_;  // memory of bytearrays and of mapped files
};

// The Python object for a value. `owned`: takes over
// the value's references; otherwise acquires its own.
nb::object to_python(const tw_value& value, bool owned);
// A tensor as a numpy array: a copy, or a view kept alive by
// `owner`; dtypes that numpy lacks become unsigned integers.
nb::object to_numpy(const DLTensor& tensor, nb::handle owner);
nb::object copy_to_numpy(const DLTensor& tensor);

void bind_functions(nb::module_& m);  // Function, Module, the table of global functions
void bind_session(nb::module_& m);    // Session
void bind_passes(nb::module_& m);     // passes, PassInstrument
void bind_compiler(nb::module_& m);   // IRModule, Expr, import
void bind_build(nb::module_& m);      // Built, build
void bind_torch(nb::module_& m);      // import of PyTorch's graphs
void bind_tune(nb::module_& m);       // tasks, searches, measurements, records

}  // namespace tilewright::python
