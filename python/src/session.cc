// SPDX-License-Identifier: Apache-2.0
// A loaded library with its own memory and threads, on top of the C interface.
#include <memory>

#include "handles.h"

namespace tilewright::python {
namespace {

template <class Info>
Info filled(int32_t (*get)(const tw_module*, Info*), const tw_module* module) {
  Info info{};
  info.size = sizeof info;
  check(get(module, &info));
  return info;
}

class Session {
 public:
  Session(const std::string& path, int threads, const std::string& weights) {
    const tw_module_options given{sizeof given, 0, weights.empty() ? nullptr : weights.c_str()};
    tw_module* module = nullptr;
    int32_t status = 0;
    {
      nb::gil_scoped_release release;
      status = tw_module_load(path.c_str(), &given, &module);
    }
    check(status);
    module_ = ModuleHandle(module);
    tw_executor_options options{sizeof options, threads, -1};
    tw_executor* executor = nullptr;
    check(tw_executor_create(module, &options, &executor));
    executor_.reset(executor);
  }
  void set_input(uint64_t index, const ReadArray& value) {
    TensorView view(value);
    check(tw_executor_set_input_at(executor_.get(), index, &view.tensor));
  }
  void run() {
    int32_t status = 0;
    {
      nb::gil_scoped_release release;
      status = tw_executor_run(executor_.get());
    }
    check(status);
  }
  // Runs once on the caller's memory: compact tensors, one per input and output.
  void run_on(nb::list inputs, nb::list outputs) {
    std::vector<ReadArray> arrays;
    arrays.reserve(inputs.size() + outputs.size());
    auto bind = [&](nb::list list, int32_t (*call)(tw_executor*, uint64_t, const DLTensor*)) {
      for (size_t i = 0; i < list.size(); ++i) {
        TensorView view(arrays.emplace_back(nb::cast<ReadArray>(list[i])));
        check(call(executor_.get(), i, &view.tensor));
      }
    };
    bind(std::move(inputs), tw_executor_bind_input_at);
    bind(std::move(outputs), tw_executor_bind_output_at);
    run();
  }
  // Copied, so that the array outlives the next run.
  nb::object output(uint64_t index) {
    DLTensor t{};
    check(tw_executor_get_output(executor_.get(), index, &t));
    return copy_to_numpy(t);
  }
  int threads() const { return tw_executor_num_threads(executor_.get()); }
  template <class Get>
  nb::list tensors(Get get, uint64_t count) const {
    nb::list out;
    for (uint64_t i = 0; i < count; ++i) {
      tw_tensor_info t{};
      t.size = sizeof t;
      check(get(module_.get(), i, &t));
      nb::list dims;
      for (int32_t d = 0; d < t.ndim; ++d) dims.append(t.shape[d]);
      out.append(nb::make_tuple(t.name, t.dtype_name, nb::tuple(dims)));
    }
    return out;
  }
  nb::list variants() const {
    nb::list out;
    for (uint64_t v = 0; v < tw_module_num_variants(module_.get()); ++v)
      out.append(nb::make_tuple(
          tensors([v](auto* m, uint64_t i, tw_tensor_info* t) { return tw_module_get_variant_input_info(m, v, i, t); },
                  info().num_inputs),
          tensors([v](auto* m, uint64_t i, tw_tensor_info* t) { return tw_module_get_variant_output_info(m, v, i, t); },
                  info().num_outputs)));
    return out;
  }
  tw_module_info info() const { return filled(tw_module_get_info, module_.get()); }
  nb::dict metadata() const {
    nb::dict out;
    for (uint64_t i = 0; i < info().num_metadata; ++i) {
      const char *key = nullptr, *value = nullptr;
      check(tw_module_get_metadata_at(module_.get(), i, &key, &value));
      out[key] = value;
    }
    return out;
  }
  nb::object profile(uint64_t repeats, const std::string& form) {
    tw_profile* raw = nullptr;
    int32_t status = 0;
    {
      nb::gil_scoped_release release;
      status = tw_executor_profile(executor_.get(), repeats, &raw);
    }
    check(status);
    std::unique_ptr<tw_profile, void (*)(tw_profile*)> owner(raw, tw_profile_free);
    const char* text = nullptr;
    check(tw_profile_text(raw, form.c_str(), &text));
    return nb::str(text);
  }

 private:
  struct Free {
    void operator()(tw_executor* e) const { tw_executor_free(e); }
  };
  ModuleHandle module_;
  std::unique_ptr<tw_executor, Free> executor_;
};

}  // namespace

void bind_session(nb::module_& m) {
  nb::class_<Session>(m, "Session", "A loaded library with memory and threads of its own")
      .def(nb::init<const std::string&, int, const std::string&>(), nb::arg("path"), nb::arg("threads") = 0,
           nb::arg("weights") = "")
      .def("set_input", &Session::set_input)
      .def("run", &Session::run)
      .def("run_on", &Session::run_on)
      .def("output", &Session::output)
      .def("profile", &Session::profile)
      .def_prop_ro("threads", &Session::threads)
      .def_prop_ro("inputs",
                   [](const Session& self) { return self.tensors(tw_module_get_input_info, self.info().num_inputs); })
      .def_prop_ro("outputs",
                   [](const Session& self) { return self.tensors(tw_module_get_output_info, self.info().num_outputs); })
      .def_prop_ro("variants", &Session::variants)
      .def_prop_ro("metadata", &Session::metadata)
      .def_prop_ro("target", [](const Session& self) { return std::string(self.info().target); });
}

}  // namespace tilewright::python
