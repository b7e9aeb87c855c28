// SPDX-License-Identifier: Apache-2.0
// Tuning: tasks of a module, searches, measurements, and record choosers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <atomic>

#include "codegen/codegen.h"
#include "compiler.h"
#include "driver/build.h"
#include "driver/trial_module.h"
#include "driver/trial_server.h"
#include "relay.h"
#include "tune/measurer.h"
#include "tune/session.h"

namespace tilewright::python {
namespace {

using tune::Task;
using Tasks = std::shared_ptr<const std::vector<Task>>;

// One of the tasks extracted together, which it keeps alive.
struct OneTask {
  Tasks all;
  size_t at;
  const Task& operator*() const { return (*all)[at]; }
  const Task* operator->() const { return &(*all)[at]; }
};

// A branch's knobs with their values as JSON.
nb::list knobs_of(const tune::KnobSpace::Branch& branch) {
  nb::list out;
  for (const tune::Knob& knob : branch.knobs) {
    nb::list values;
    for (size_t i = 0; i < knob.values.size(); ++i) values.append(knob.value(i).dump());
    out.append(nb::make_tuple(knob.name, knob.kind, values));
  }
  return out;
}

nb::list extract(const relay::Module& module, const driver::BuildOptions& options) {
  const relay::Module whole = completed(module);
  auto tasks = [&]() -> Result<std::vector<Task>> {
    nb::gil_scoped_release release;
    const driver::Built built = TW_TRY(driver::optimize(whole, options));
    return tune::extract_tasks(built.optimized, built.target);
  }();
  const Tasks all = std::make_shared<const std::vector<Task>>(unwrap(std::move(tasks)));
  nb::list out;
  for (size_t i = 0; i < all->size(); ++i) out.append(OneTask{all, i});
  return out;
}

void bind_task(nb::module_& m) {
  nb::class_<OneTask>(m, "TuneTask", "What can be tuned in a model")
      .def_prop_ro("name", [](const OneTask& t) { return t->workload.name; })
      .def_prop_ro("args", [](const OneTask& t) { return t->workload.args.dump(); })
      .def_prop_ro("op", [](const OneTask& t) { return std::string(t->space.branches()[0].implementation->op); })
      .def_prop_ro("target", [](const OneTask& t) { return t->target; })
      .def_prop_ro("group", [](const OneTask& t) { return t->group; })
      .def_prop_ro("calls", [](const OneTask& t) { return t->calls; })
      .def_prop_ro("flops", [](const OneTask& t) { return t->flops; })
      .def_prop_ro("size", [](const OneTask& t) { return t->space.size(); })
      .def_prop_ro("branches",
                   [](const OneTask& t) {  // for each implementation: name, and (knob, kind, values as JSON)
                     nb::list out;
                     for (const auto& branch : t->space.branches())
                       out.append(nb::make_tuple(branch.implementation->name, knobs_of(branch)));
                     return out;
                   })
      .def_prop_ro("chosen", [](const OneTask& t) { return t->space.index_of(t->chosen); })
      .def_prop_ro("ranked", [](const OneTask& t) { return t->space.ranked(); })
      .def("legal", [](const OneTask& t, uint64_t index) { return t->space.get(index).has_value(); })
      .def("configuration",
           [](const OneTask& t, uint64_t index) -> nb::object {
             const auto c = t->space.get(index);
             return c ? nb::make_tuple(c->implementation->name, c->text) : nb::object(nb::none());
           })
      .def("entity", [](const OneTask& t, uint64_t index) { return t->space.entity(index).dump(); })
      .def("index_of_entity", [](const OneTask& t, const std::string& json) {
        return t->space.index_of_entity(nlohmann::json::parse(json, nullptr, false));
      });
  m.def("extract_tasks", extract, nb::arg("module"), nb::arg("options"));
}

void bind_search(nb::module_& m) {
  struct PySearch {
    std::shared_ptr<void> keeps;
    std::shared_ptr<tune::Search> search;
  };
  nb::class_<PySearch>(m, "TuneSearch", "Which configurations to try next")
      .def("propose", [](PySearch& s, size_t most) { return s.search->propose(most); })
      .def("learn", [](PySearch& s, uint64_t index, double cost) { s.search->learn(index, cost); });
  m.def("search_of_task", [](const OneTask& task, const std::string& name, uint64_t seed) {
    auto keeps = std::make_shared<OneTask>(task);
    return PySearch{keeps, std::shared_ptr<tune::Search>(
                               unwrap(tune::make_search(name, tune::search_space((*keeps)->space), seed)))};
  });
  // A search over knobs with these numbers of values, where all combinations are legal.
  m.def("search_of_knobs", [](const std::vector<size_t>& knobs, const std::string& name, uint64_t seed) {
    tune::SearchSpace space;
    space.branches = {knobs};
    return PySearch{nullptr, std::shared_ptr<tune::Search>(unwrap(tune::make_search(name, std::move(space), seed)))};
  });
}

tune::Batch batch_of(const Task& task, const std::vector<uint64_t>& indices, const tune::TimingOptions& timing) {
  tune::Batch batch{task.target, task.module, {}, timing, ""};
  for (uint64_t index : indices) {
    const auto c = task.space.get(index);
    batch.trials.push_back(c ? tune::Trial{c->implementation->name, c->text} : tune::Trial{"none", ""});
  }
  return batch;
}

// For each trial of a batch (a JSON line), built into FOLDER/trials.so: why it is invalid (or an empty string), the
// steps that copy its operands, its own step, its first output and number of outputs.
nb::list export_trials(const std::string& line, const std::string& folder) {
  auto built = [&]() -> Result<driver::BuiltTrials> {
    nb::gil_scoped_release release;
    tune::Batch batch = TW_TRY(tune::parse_batch(line));
    batch.folder = folder;
    return driver::build_trials(batch);
  }();
  nb::list out;
  for (const driver::TrialSteps& trial : unwrap(std::move(built)).trials)
    out.append(nb::make_tuple(trial.why, trial.operands, trial.kernel, trial.first_output, trial.outputs));
  return out;
}

void bind_measurer(nb::module_& m) {
  struct PyMeasurer {
    std::shared_ptr<std::atomic<bool>> raised = std::make_shared<std::atomic<bool>>(false);
    std::unique_ptr<tune::Measurer> measurer;
  };
  nb::class_<tune::TimingOptions>(m, "TimingOptions", "How trials are timed")
      .def(nb::init<>())
      .def_rw("threads", &tune::TimingOptions::threads)
      .def_rw("seconds", &tune::TimingOptions::seconds)
      .def_rw("repeat", &tune::TimingOptions::repeat)
      .def_rw("number", &tune::TimingOptions::number)
      .def_rw("min_repeat_ms", &tune::TimingOptions::min_repeat_ms)
      .def_rw("cooldown_seconds", &tune::TimingOptions::cooldown_seconds)
      .def_rw("flush_cache", &tune::TimingOptions::flush_cache)
      .def_rw("check", &tune::TimingOptions::check);
  nb::class_<PyMeasurer>(m, "Measurer", "Measures kernels in a process of its own")
      .def("measure", [](PyMeasurer& self, const OneTask& task, const std::vector<uint64_t>& indices,
                         const tune::TimingOptions& timing) {  // for each trial: costs, error number, message, seconds
        const tune::Batch batch = batch_of(*task, indices, timing);
        auto results = [&] {
          nb::gil_scoped_release release;
          return self.measurer->measure(batch);
        }();
        if (self.raised->exchange(false)) throw nb::python_error();
        nb::list out;
        for (const tune::TrialResult& r : unwrap(std::move(results)))
          out.append(nb::make_tuple(r.costs, static_cast<int>(r.error), r.message, r.seconds));
        return out;
      });
  m.def(
      "make_measurer",
      [](const std::vector<std::string>& command, double build_seconds, double run_seconds) {
        PyMeasurer out;
        auto interrupted = [raised = out.raised] {
          nb::gil_scoped_acquire gil;
          if (PyErr_CheckSignals() != 0) *raised = true;
          return raised->load();
        };
        out.measurer =
            std::make_unique<tune::Measurer>(command, tune::MeasureLimits{build_seconds, run_seconds}, interrupted);
        return out;
      },
      nb::arg("command"), nb::arg("build_seconds"), nb::arg("run_seconds"));
  m.def("trials_line", [](const OneTask& task, const std::vector<uint64_t>& indices) {
    return tune::to_line(batch_of(*task, indices, {}));
  });
  m.def("export_trials", export_trials, nb::arg("line"), nb::arg("folder"));
  // Builds the line's single trial as a Model Library Format; returns why it is invalid, or an empty string.
  m.def("export_trial_library", [](const std::string& line, const std::string& path) {
    nb::gil_scoped_release release;
    auto why = [&]() -> Result<std::string> {
      return driver::build_trial_library(TW_TRY(tune::parse_batch(line)), path);
    }();
    nb::gil_scoped_acquire acquire;
    return unwrap(std::move(why));
  });
  m.def("serve_trials", [](int channel) {
    nb::gil_scoped_release release;
    return driver::serve_trials(channel);
  });
}

}  // namespace

void bind_tune(nb::module_& m) {
  bind_task(m);
  bind_search(m);
  bind_measurer(m);
  using tune::RecordChooser;
  nb::class_<RecordChooser>(m, "RecordChooser", "Kernels by records")
      .def_prop_ro("used", [](const RecordChooser& c) { return c.use().used; })
      .def_prop_ro("untuned", [](const RecordChooser& c) { return c.use().untuned; })
      .def_prop_ro("line", [](const RecordChooser& c) { return c.use().line(); });
  // Takes records as lines of the classic log.
  m.def("record_chooser", [](const std::vector<std::string>& lines) {
    std::vector<tune::Record> records;
    for (const std::string& line : lines) records.push_back(unwrap(tune::parse_record(line, "a record")));
    return std::make_shared<RecordChooser>(std::move(records));
  });
  m.def("set_records", [](driver::BuildOptions& options, std::shared_ptr<RecordChooser> chooser) {
    options.chooser = std::move(chooser);
  });
}

}  // namespace tilewright::python
