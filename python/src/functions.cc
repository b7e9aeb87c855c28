// SPDX-License-Identifier: Apache-2.0
// Functions and modules in both directions: called from Python, and implemented in Python.
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "handles.h"

namespace tilewright::python {
namespace {

// The exception raised by a Python function, kept until its caller, possibly behind C++ frames, can re-raise it. `text`
// is the message given to the C interface, by which a later error is recognised as a different one.
struct Pending {
  PyObject* exception = nullptr;
  std::string text;
  void set(PyObject* owned, std::string message) {
    PyObject* old = std::exchange(exception, owned);
    text = std::move(message);
    Py_XDECREF(old);
  }
};
thread_local Pending pending;

// Reports the current Python exception as the thread's last error.
int32_t report_exception() {
  nb::python_error error;  // fetches it
  std::string message = std::string(Py_TYPE(error.value().ptr())->tp_name) + ": " + nb::str(error.value()).c_str();
  int code = 101;
  std::string hint;
  if (nb::hasattr(error.value(), "code") && nb::hasattr(error.value(), "hint") &&
      PyLong_Check(error.value().attr("code").ptr())) {
    code = nb::cast<int>(error.value().attr("code"));
    hint = nb::str(error.value().attr("hint")).c_str();
    message = nb::str(error.value()).c_str();
    size_t at = message.find("]: "), end = message.find("\n  hint: ");
    if (at != std::string::npos) message = message.substr(at + 3, end == std::string::npos ? end : end - at - 3);
  }
  code = tw_set_last_error(code, message.c_str(), nullptr, hint.c_str());
  nb::object exception = nb::borrow(error.value());
  if (nb::object trace = error.traceback(); trace.is_valid() && !trace.is_none())
    PyException_SetTraceback(exception.ptr(), trace.ptr());
  pending.set(exception.release().ptr(), tw_last_error_message());
  return code;
}

template <class F>
int32_t with_python(F body) {
  nb::gil_scoped_acquire gil;
  try {
    body();
    return 0;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  }
  return report_exception();
}

// Converts a Python object to a result: strings are copied, references acquired.
void fill(nb::handle object, tw_value* out) {
  if ((PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) && !is_device(object)) {
    check(tw_value_set_array(out, static_cast<uint64_t>(nb::len(object))));
    size_t i = 0;
    for (nb::handle item : object) fill(item, &out->as.array[i++]);
    return;
  }
  Borrowed borrowed;
  tw_value v = borrowed.value(object);
  switch (v.kind) {
    case TW_STR:
      return check(tw_value_set_str(out, v.as.str, v.size));
    case TW_BYTES:
      return check(tw_value_set_bytes(out, v.as.bytes, v.size));
    case TW_FUNCTION:
      tw_function_retain(v.as.function);
      break;
    case TW_MODULE:
      tw_module_retain(v.as.module);
      break;
    case TW_TENSOR: {  // keeps the array alive
      if (static_cast<int32_t>(v.as.tensor->device.device_type) >= kFirstRemoteDevice)
        throw nb::type_error("a tensor of another process cannot be a result here: return its numpy()");
      struct Kept {
        DLManagedTensor managed;
        std::vector<int64_t> shape, strides;
        ReadArray array;
      };
      auto* kept = new Kept{{},
                            {v.as.tensor->shape, v.as.tensor->shape + v.as.tensor->ndim},
                            {v.as.tensor->strides, v.as.tensor->strides + v.as.tensor->ndim},
                            borrowed.array()};
      kept->managed.dl_tensor = *v.as.tensor;
      kept->managed.dl_tensor.shape = kept->shape.data();
      kept->managed.dl_tensor.strides = kept->strides.data();
      kept->managed.manager_ctx = kept;
      kept->managed.deleter = [](DLManagedTensor* self) {
        auto* k = static_cast<Kept*>(self->manager_ctx);
        if (!Py_IsInitialized()) return;  // freed with the interpreter
        nb::gil_scoped_acquire gil;
        delete k;
      };
      v.kind = TW_NDARRAY;
      v.as.ndarray = &kept->managed;
      break;
    }
    default:
      break;
  }
  *out = v;
}

// A function that is written in Python; `functions_of_python` has its handle.
struct PythonFunction {
  PyObject* callable = nullptr;
  tw_function* function = nullptr;
};
std::unordered_set<const tw_function*>& functions_of_python() {  // guarded by Python's lock
  static auto* functions = new std::unordered_set<const tw_function*>();
  return *functions;
}
thread_local bool caller_is_python = false;

int32_t call_python(void* context, const tw_value* args, int32_t count, tw_value* result) {
  return with_python([&] {
    nb::list list;
    for (int32_t i = 0; i < count; ++i) list.append(to_python(args[i], false));
    const bool from_python = std::exchange(caller_is_python, false);  // for the calls that it makes
    nb::object returned =
        nb::steal(PyObject_CallObject(static_cast<PythonFunction*>(context)->callable, nb::tuple(list).ptr()));
    caller_is_python = from_python;
    if (!returned.is_valid()) throw nb::python_error();
    fill(returned, result);
  });
}

void free_object(void* object) {
  if (!Py_IsInitialized()) return;  // the interpreter and its objects no longer exist
  nb::gil_scoped_acquire gil;
  Py_DECREF(static_cast<PyObject*>(object));
}

void free_python(void* context) {
  auto* function = static_cast<PythonFunction*>(context);
  if (Py_IsInitialized()) {  // else its objects no longer exist
    nb::gil_scoped_acquire gil;
    functions_of_python().erase(function->function);
    Py_DECREF(function->callable);
  }
  delete function;
}

// Objects that travel as functions, by the function; guarded by Python's lock.
std::unordered_map<const tw_function*, PyObject*>& held_objects() {
  static auto* objects = new std::unordered_map<const tw_function*, PyObject*>();
  return *objects;
}

int32_t call_held(void*, const tw_value*, int32_t, tw_value*) {
  return tw_set_last_error(101, "an object of Python is no function", nullptr, "");
}

void free_held(void* context) {
  auto* function = static_cast<tw_function**>(context);
  if (Py_IsInitialized()) {
    nb::gil_scoped_acquire gil;
    auto entry = held_objects().extract(*function);
    if (!entry.empty()) Py_DECREF(entry.mapped());
  }
  delete function;
}

nb::object call(const FunctionHandle& function, nb::args args) {
  struct Restored {
    bool before = caller_is_python;
    ~Restored() { caller_is_python = before; }
  } restored;
  caller_is_python = functions_of_python().count(function.get()) != 0;
  Borrowed borrowed;
  std::vector<tw_value> values;
  for (nb::handle a : args) values.push_back(borrowed.value(a));
  tw_value result{};
  result.kind = TW_NULL;
  int32_t status = 0;
  {
    nb::gil_scoped_release release;
    status = tw_function_call(function.get(), values.data(), static_cast<int32_t>(values.size()), &result);
  }
  check(status);
  if (pending.exception) pending.set(nullptr, {});
  nb::object out = to_python(result, true);
  if (result.kind == TW_FUNCTION || result.kind == TW_MODULE || result.kind == TW_NDARRAY)
    result.kind = TW_NULL;  // passed on
  tw_value_free(&result);
  return out;
}

// Modules implemented in Python: an object with get_function(name) and optionally save().
int32_t python_get_function(void* self, const char* name, tw_function** out) {
  return with_python([&] {
    nb::object found = nb::borrow(static_cast<PyObject*>(self)).attr("get_function")(name);
    if (found.is_none()) return;
    *out = tw_function_retain(nb::isinstance<FunctionHandle>(found) ? nb::cast<FunctionHandle&>(found).get()
                                                                    : function_of(found).get());
  });
}
int32_t python_save(void* self, tw_value* out) {
  return with_python([&] { fill(nb::borrow(static_cast<PyObject*>(self)).attr("save")(), out); });
}

template <class F>
auto without_gil(F body) {
  nb::gil_scoped_release release;
  return body();
}

ModuleHandle adopt(int32_t status, tw_module* made) {
  check(status);
  return ModuleHandle(made);
}

}  // namespace

void check(int32_t status) {
  if (status == 0) return;
  if (pending.exception && pending.text == tw_last_error_message()) {
    PyObject* exception = std::exchange(pending.exception, nullptr);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
    Py_DECREF(exception);
    throw nb::python_error();
  }
  tw_error_info info{};
  info.size = sizeof info;
  tw_last_error(&info);
  raise(Diagnostic(static_cast<ErrorCode>(info.code), info.message, info.where, info.hint));
}

FunctionHandle function_of(nb::handle callable) {
  auto* made = new PythonFunction{callable.ptr(), nullptr};
  check(tw_function_create(call_python, made, free_python, &made->function));
  callable.inc_ref();
  functions_of_python().insert(made->function);
  return FunctionHandle(made->function);
}

bool between_scripts() { return caller_is_python; }

FunctionHandle held(nb::handle object) {
  auto* context = new tw_function*(nullptr);
  check(tw_function_create(call_held, context, free_held, context));
  held_objects()[*context] = nb::borrow(object).release().ptr();
  return FunctionHandle(*context);
}

nb::object held_object(const tw_function* function) {
  auto it = held_objects().find(function);
  return it == held_objects().end() ? nb::object() : nb::borrow(it->second);
}

void bind_functions(nb::module_& m) {
  bind_values(m);
  nb::class_<FunctionHandle>(m, "Function", "A function of the runtime, wherever it is written")
      .def("__call__", call)
      .def_prop_ro("handle", [](const FunctionHandle& self) { return reinterpret_cast<uintptr_t>(self.get()); });
  nb::class_<ModuleHandle>(m, "ModuleHandle", "A module of the runtime")
      .def_prop_ro("type_key", [](const ModuleHandle& self) { return std::string(tw_module_type_key(self.get())); })
      .def("get_function",
           [](const ModuleHandle& self, const std::string& name, bool query_imports) -> nb::object {
             tw_function* out = nullptr;
             check(without_gil([&] { return tw_module_get_function(self.get(), name.c_str(), query_imports, &out); }));
             return out ? nb::cast(FunctionHandle(out)) : nb::none();
           })
      .def("import_module", [](const ModuleHandle& self,
                               const ModuleHandle& other) { check(tw_module_import(self.get(), other.get())); })
      .def_prop_ro("imports",
                   [](const ModuleHandle& self) {
                     std::vector<ModuleHandle> out;
                     for (uint64_t i = 0; i < tw_module_num_imports(self.get()); ++i) {
                       tw_module* one = nullptr;
                       check(tw_module_get_import(self.get(), i, &one));
                       out.emplace_back(one);
                     }
                     return out;
                   })
      .def("save",
           [](const ModuleHandle& self) {
             tw_value out{};
             check(without_gil([&] { return tw_module_save(self.get(), &out); }));
             nb::object bytes = to_python(out, true);
             tw_value_free(&out);
             return bytes;
           })
      .def("__eq__",
           [](const ModuleHandle& a, nb::handle b) {
             return nb::isinstance<ModuleHandle>(b) && nb::cast<ModuleHandle&>(b).get() == a.get();
           })
      .def("__hash__", [](const ModuleHandle& self) { return reinterpret_cast<intptr_t>(self.get()); });
  m.def("convert_function", [](nb::object callable) { return function_of(callable); });
  m.def("register_func", [](const std::string& name, nb::object function, bool override_existing) {
    FunctionHandle handle =
        nb::isinstance<FunctionHandle>(function) ? nb::cast<FunctionHandle&>(function) : function_of(function);
    check(without_gil([&] { return tw_function_register(name.c_str(), handle.get(), override_existing); }));
  });
  m.def("get_global_func", [](const std::string& name) -> nb::object {
    tw_function* out = nullptr;
    check(tw_function_get_global(name.c_str(), &out));
    return out ? nb::cast(FunctionHandle(out)) : nb::none();
  });
  m.def("remove_global_func",
        [](const std::string& name) { check(without_gil([&] { return tw_function_remove_global(name.c_str()); })); });
  m.def("list_global_func_names", [] {
    tw_value out{};
    check(tw_function_list_globals(&out));
    nb::list names;
    for (uint64_t i = 0; i < out.size; ++i) names.append(nb::str(out.as.array[i].as.str));
    tw_value_free(&out);
    return names;
  });
  m.def("create_module", [](const std::string& type_key, nb::object kind) {
    tw_module_class c{};
    c.size = sizeof c;
    c.type_key = type_key.c_str();
    c.get_function = python_get_function;
    c.save = nb::hasattr(kind, "save") ? python_save : nullptr;
    c.free_context = free_object;
    tw_module* out = nullptr;
    check(tw_module_create(&c, kind.ptr(), &out));
    kind.inc_ref();
    return ModuleHandle(out);
  });
  m.def("load_module_file", [](const std::string& path, const std::string& form) {
    tw_module* out = nullptr;
    int32_t status = without_gil([&] { return tw_module_load_file(path.c_str(), form.c_str(), &out); });
    return adopt(status, out);
  });
  m.def("load_module_binary", [](const std::string& type_key, nb::bytes data) {
    tw_module* out = nullptr;
    int32_t status =
        without_gil([&] { return tw_module_load_binary(type_key.c_str(), data.c_str(), data.size(), &out); });
    return adopt(status, out);
  });
}

}  // namespace tilewright::python
