// SPDX-License-Identifier: Apache-2.0
// tilewright._core: the compiler and the runtime for Python. No logic lives here: arguments are converted, calls made,
// diagnostics raised as tilewright.Error.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "driver/build.h"
#include "frontend/onnx/import.h"
#include "relay/passes/table.h"
#include "relay/text.h"
#include "runtime/executor.h"

namespace nb = nanobind;
using namespace tilewright;

namespace {

PyObject* error_type = nullptr;

[[noreturn]] void raise(const Diagnostic& d) {
  nb::object error = nb::borrow(error_type)(d.str());
  error.attr("code") = static_cast<int>(d.code);
  error.attr("name") = error_name(d.code);
  error.attr("hint") = d.hint;
  PyErr_SetObject(error_type, error.ptr());
  throw nb::python_error();
}
template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}

using Shapes = std::map<std::string, std::vector<int64_t>>;
using AnyArray = nb::ndarray<nb::device::cpu, nb::ro>;

DLTensor view_of(const AnyArray& a, std::vector<int64_t>* shape, std::vector<int64_t>* strides) {
  DLTensor t{};
  t.data = const_cast<void*>(a.data());
  t.device = {kDLCPU, 0};
  t.ndim = static_cast<int32_t>(a.ndim());
  t.dtype = {a.dtype().code, a.dtype().bits, a.dtype().lanes};
  for (size_t i = 0; i < a.ndim(); ++i) {
    shape->push_back(static_cast<int64_t>(a.shape(i)));
    strides->push_back(a.stride(i));
  }
  t.shape = shape->data();
  t.strides = strides->data();
  return t;
}

// A loaded model with memory and threads of its own.
class Session {
 public:
  Session(const std::string& path, int threads) {
    auto artifact = unwrap(runtime::Artifact::load(path));
    runtime::ExecutorOptions options;
    options.threads = threads;
    executor_ = unwrap(runtime::Executor::create(artifact, options));
  }
  void set_input(uint64_t index, const AnyArray& value) {
    std::vector<int64_t> shape, strides;
    DLTensor t = view_of(value, &shape, &strides);
    unwrap(executor_->set_input(index, &t));
  }
  void run() {
    nb::gil_scoped_release release;
    Status status = executor_->run();
    nb::gil_scoped_acquire acquire;
    unwrap(std::move(status));
  }
  // A copy, so that the array outlives the next run.
  nb::ndarray<nb::numpy> output(uint64_t index) { return copy(unwrap(executor_->output(index))); }
  nb::ndarray<nb::numpy> input(uint64_t index) { return copy(unwrap(executor_->input(index))); }
  void load_params(nb::bytes data) {
    unwrap(executor_->load_params(std::as_bytes(std::span(data.c_str(), data.size()))));
  }
  const plan::Plan& plan() const { return executor_->plan(); }
  int threads() const { return executor_->threads(); }

 private:
  static nb::ndarray<nb::numpy> copy(const DLTensor& t) {
    size_t count = 1;
    std::vector<size_t> shape;
    for (int i = 0; i < t.ndim; ++i) {
      shape.push_back(static_cast<size_t>(t.shape[i]));
      count *= shape.back();
    }
    size_t bytes = (count * t.dtype.bits * t.dtype.lanes + 7) / 8;
    auto* data = new char[bytes + 1];
    std::memcpy(data, static_cast<const char*>(t.data) + t.byte_offset, bytes);
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<char*>(p); });
    nb::dlpack::dtype dtype{t.dtype.code, t.dtype.bits, t.dtype.lanes};
    return nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, dtype);
  }
  std::unique_ptr<runtime::Executor> executor_;
};

std::vector<std::tuple<std::string, std::string, std::vector<int64_t>>> tensor_list(const std::vector<plan::TensorInfo>& list) {
  std::vector<std::tuple<std::string, std::string, std::vector<int64_t>>> out;
  for (const auto& t : list) out.emplace_back(t.name, t.dtype.str(), t.shape);
  return out;
}
nb::list infos(const std::vector<plan::TensorInfo>& list) {
  nb::list out;
  for (const auto& [name, dtype, shape] : tensor_list(list)) out.append(nb::make_tuple(name, dtype, nb::tuple(nb::cast(shape))));
  return out;
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The compiler and runtime of Tilewright";
  error_type = PyErr_NewException("tilewright.Error", PyExc_RuntimeError, nullptr);
  m.attr("Error") = nb::borrow(error_type);

  nb::class_<relay::Module>(m, "IRModule", "A graph module: functions by name, entry main")
      .def("astext", [](const relay::Module& self) { return relay::print_module(self).text; }, "The module as Relay text; constants are kept aside");

  nb::class_<driver::Built>(m, "Built", "Kernels, plan and weights of a compiled module")
      .def("export_library", [](const driver::Built& self, const std::string& path) {
        nb::gil_scoped_release release;
        Status status = driver::export_library(self, path);
        nb::gil_scoped_acquire acquire;
        unwrap(std::move(status));
      })
      .def_prop_ro("optimized", [](const driver::Built& self) { return self.optimized; })
      .def_prop_ro("target", [](const driver::Built& self) { return self.target.str(); })
      .def_prop_ro("inputs", [](const driver::Built& self) { return infos(self.lowered.plan.inputs); })
      .def_prop_ro("outputs", [](const driver::Built& self) { return infos(self.lowered.plan.outputs); });

  m.def("import_onnx_file", [](const std::string& path, const Shapes& shapes) {
    onnx::ImportOptions options;
    options.shapes = shapes;
    return unwrap(onnx::import_onnx(path, options));
  });
  m.def("import_onnx_bytes", [](nb::bytes data, const Shapes& shapes) {
    onnx::ImportOptions options;
    options.shapes = shapes;
    auto copy = std::make_shared<std::string>(data.c_str(), data.size());
    return unwrap(onnx::import_onnx(onnx::SharedBytes{std::as_bytes(std::span(*copy)), copy}, options));
  });
  m.def("build", [](const relay::Module& module, const std::string& target, int opt_level, const std::vector<std::string>& required,
                    const std::vector<std::string>& disabled, int jobs) {
    driver::BuildOptions options;
    options.target = target;
    options.opt_level = opt_level;
    options.required_passes = required;
    options.disabled_passes = disabled;
    options.jobs = jobs;
    auto result = [&] {
      nb::gil_scoped_release release;
      return driver::build(module, options);
    }();
    return unwrap(std::move(result));
  });
  m.def("pass_names", [] {
    std::vector<std::string> names;
    for (const auto& pass : relay::all_passes()) names.push_back(pass.info.name);
    return names;
  });

  nb::class_<Session>(m, "Session", "A loaded library with memory and threads of its own")
      .def(nb::init<const std::string&, int>(), nb::arg("path"), nb::arg("threads") = 0)
      .def("set_input", &Session::set_input)
      .def("run", &Session::run)
      .def("output", &Session::output)
      .def("input", &Session::input)
      .def("load_params", &Session::load_params)
      .def_prop_ro("threads", &Session::threads)
      .def_prop_ro("inputs", [](const Session& self) { return infos(self.plan().inputs); })
      .def_prop_ro("outputs", [](const Session& self) { return infos(self.plan().outputs); })
      .def_prop_ro("metadata", [](const Session& self) { return self.plan().metadata; })
      .def_prop_ro("target", [](const Session& self) { return self.plan().target; });
}
