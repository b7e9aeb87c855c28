// SPDX-License-Identifier: Apache-2.0
#include "driver/quantize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "base/near_match.h"
#include "driver/loaded_build.h"

namespace tilewright::driver {
namespace {

double decibels(double signal, double noise) {
  return noise <= 0 ? HUGE_VAL : signal <= 0 ? -HUGE_VAL : 10 * std::log10(signal / noise);
}

// Runs a model on all samples.
class Runs {
 public:
  static Result<Runs> create(const std::string& model, const QuantizeOptions& options) {
    auto owner = std::make_shared<const std::string>(model);
    const Built built = TW_TRY(build_onnx(onnx::SharedBytes{std::as_bytes(std::span(*owner)), owner}, options.build));
    runtime::ExecutorOptions run;
    run.threads = options.threads;
    return Runs(TW_TRY(runtime::Executor::create(TW_TRY(load_build(built)), run)));
  }
  // Visits each sample's outputs.
  template <class F>
  Status over(const inputs::Samples& samples, const Progress& progress, const char* stage, F&& visit) {
    std::vector<inputs::InputInfo> infos;
    for (const auto& t : executor_->plan().inputs) infos.push_back({t.name, t.dtype, t.shape});
    return samples.for_each(infos, [&](double done, const std::vector<Tensor>& sample) -> Status {
      if (progress) progress(stage, done);
      return visit(TW_TRY(run_once(*executor_, sample)));
    });
  }

 private:
  explicit Runs(std::unique_ptr<runtime::Executor> executor) : executor_(std::move(executor)) {}
  std::unique_ptr<runtime::Executor> executor_;
};

// Collects ranges and means from the samples.
Status take_ranges(onnx::Quantizer& quantizer, size_t outputs, const inputs::Samples& samples,
                   const QuantizeOptions& options) {
  Runs runs = TW_TRY(Runs::create(TW_TRY(onnx::write_model(quantizer.observing())), options));
  const auto& names = quantizer.observed();
  std::vector<ValueStatistics> statistics(names.size());
  std::vector<ChannelMeans> means(quantizer.layers().size());
  std::vector<size_t> operands;  // index of each layer's operand among the values
  for (size_t l = 0; l < means.size(); ++l)
    operands.push_back(
        static_cast<size_t>(std::lower_bound(names.begin(), names.end(), quantizer.operand(l)) - names.begin()));
  TW_TRY_STATUS(runs.over(samples, options.build.progress, "ranges", [&](const std::vector<Tensor>& values) -> Status {
    for (size_t i = 0; i < names.size(); ++i)
      if (!statistics[i].see_extremes(values.at(outputs + i)))
        return Diagnostic(ErrorCode::kInvalidArgument,
                          format("the value '{}' is not finite for one of the samples", names[i]), {},
                          "look at the samples and at how they are prepared (--picture)");
    for (size_t l = 0; l < means.size(); ++l) {
      const Tensor& x = values.at(outputs + operands[l]);
      means[l].see(x, quantizer.layers()[l].op == "Conv" ? 1 : x.shape().size() - 1);
    }
    return Ok{};
  }));
  if (options.method != CalibrationMethod::kMinMax)
    TW_TRY_STATUS(
        runs.over(samples, options.build.progress, "histograms", [&](const std::vector<Tensor>& values) -> Status {
          for (size_t i = 0; i < names.size(); ++i) statistics[i].see_histogram(values.at(outputs + i));
          return Ok{};
        }));
  std::map<std::string, onnx::ValueRange> ranges;
  for (size_t i = 0; i < names.size(); ++i) ranges[names[i]] = statistics[i].range(options.method, options.percentile);
  quantizer.set_ranges(std::move(ranges));
  for (size_t l = 0; l < means.size(); ++l) quantizer.set_operand_means(l, means[l].means());
  return Ok{};
}

// Sums of a study's results over the samples.
struct Sums {
  struct Layer {
    double signal = 0, own = 0, so_far = 0;
  };
  struct Output {
    double signal = 0, noise = 0;
    int64_t rows = 0, same = 0;
  };
  std::vector<Layer> layers;
  std::vector<Output> outputs;
  size_t samples = 0;
};

void add_output(const Tensor& exact, const Tensor& bytes, Sums::Output* sums) {
  if (!exact.dtype().is_float()) return;
  const int64_t width = exact.rank() > 0 ? exact.shape().back() : 1;
  for (int64_t row = 0; width > 0 && row < exact.size() / width; ++row) {
    int64_t largest[2] = {0, 0};
    for (int64_t i = 0; i < width; ++i) {
      const double a = exact.at_double(row * width + i), b = bytes.at_double(row * width + i);
      sums->signal += a * a, sums->noise += (a - b) * (a - b);
      if (a > exact.at_double(row * width + largest[0])) largest[0] = i;
      if (b > bytes.at_double(row * width + largest[1])) largest[1] = i;
    }
    ++sums->rows, sums->same += largest[0] == largest[1];
  }
}

Result<Sums> study(const onnx::Quantizer& quantizer, const std::set<size_t>& kept, size_t outputs,
                   const inputs::Samples& samples, const QuantizeOptions& options) {
  Runs runs = TW_TRY(Runs::create(TW_TRY(onnx::write_model(quantizer.study(kept))), options));
  Sums sums;
  sums.layers.resize(quantizer.layers().size());
  sums.outputs.resize(outputs);
  TW_TRY_STATUS(runs.over(samples, options.build.progress, "compare", [&](const std::vector<Tensor>& values) -> Status {
    ++sums.samples;
    for (size_t o = 0; o < outputs; ++o) add_output(values.at(o), values.at(outputs + o), &sums.outputs[o]);
    size_t at = 2 * outputs;
    for (size_t l = 0; l < sums.layers.size(); ++l) {
      if (kept.count(l)) continue;
      sums.layers[l].signal += values.at(at++).at_double(0);
      sums.layers[l].own += values.at(at++).at_double(0);
      sums.layers[l].so_far += values.at(at++).at_double(0);
    }
    return Ok{};
  }));
  return sums;
}

Result<std::set<size_t>> named_layers(const onnx::Quantizer& quantizer, const std::vector<std::string>& names) {
  std::set<size_t> out;
  std::vector<std::string> known;
  for (const auto& l : quantizer.layers()) known.push_back(l.label);
  for (const std::string& name : names) {
    bool found = false;
    for (size_t l = 0; l < known.size(); ++l)
      if (known[l] == name) out.insert(l), found = true;
    if (!found)
      return Diagnostic(ErrorCode::kInvalidArgument, format("no layer that could be in 8 bits is named '{}'", name), {},
                        did_you_mean(name, known, "the table that `tilewright quantize` prints names them"));
  }
  return out;
}

double worst_output(const Sums& sums) {
  double worst = HUGE_VAL;
  for (const auto& o : sums.outputs)
    if (o.signal > 0) worst = std::min(worst, decibels(o.signal, o.noise));
  return worst;
}

}  // namespace

Result<QuantizeReport> quantize_onnx(const std::string& path, const inputs::Samples& samples,
                                     const QuantizeOptions& given) {
  QuantizeOptions options = given;
  options.build.keep_modules = false;
  const onnx::Model model = TW_TRY(onnx::read_model(path));
  auto quantizer = TW_TRY(onnx::Quantizer::create(model));
  quantizer.set_per_channel(options.per_channel);
  std::set<size_t> kept = TW_TRY(named_layers(quantizer, options.keep));
  // Free sizes are taken from the samples.
  std::vector<inputs::InputInfo> infos;
  for (const auto& i : model.graph.inputs) {
    const bool weight = std::any_of(model.graph.initializers.begin(), model.graph.initializers.end(),
                                    [&](const auto& t) { return t.name == i.name; });
    if (weight || !i.type.shape || !i.type.elem || options.build.shapes.count(i.name)) continue;
    inputs::InputInfo info{i.name, *i.type.elem, {}};
    for (const auto& d : *i.type.shape) info.shape.push_back(d.value.value_or(inputs::kFreeSize));
    infos.push_back(std::move(info));
  }
  TW_TRY_STATUS(samples.fill_free_sizes(&infos));
  for (const auto& info : infos) options.build.shapes[info.name] = info.shape;

  const size_t outputs = model.graph.outputs.size(), count = quantizer.layers().size();
  TW_TRY_STATUS(take_ranges(quantizer, outputs, samples, options));

  QuantizeReport report;
  for (size_t l = 0; l < count; ++l) {
    const auto& layer = quantizer.layers()[l];
    const double ratio = quantizer.weight_accuracy(l);
    report.layers.push_back({layer.label, layer.op, decibels(ratio, 1), 0, 0, kept.count(l) ? "asked for" : ""});
  }
  Sums sums = TW_TRY(study(quantizer, kept, outputs, samples, options));
  auto record = [&] {
    for (size_t l = 0; l < count; ++l) {
      const auto& s = sums.layers[l];
      if (kept.count(l) || s.signal <= 0) continue;
      report.layers[l].own = decibels(s.signal, s.own), report.layers[l].so_far = decibels(s.signal, s.so_far);
    }
  };
  auto keep = [&](size_t l, std::string why) {
    kept.insert(l);
    report.layers[l].kept = std::move(why);
  };
  record();
  const size_t asked = kept.size();
  for (size_t l = 0; l < count; ++l)
    if (!kept.count(l) && sums.layers[l].signal > 0 && report.layers[l].own < options.layer_decibels)
      keep(l, "its own result suffers");
  if (kept.size() > asked) sums = TW_TRY(study(quantizer, kept, outputs, samples, options)), record();
  // Returns a quarter of the remaining layers to float32, worst first, until the outputs are accurate enough.
  while (worst_output(sums) < options.output_decibels && kept.size() < count) {
    std::vector<size_t> left;
    for (size_t l = 0; l < count; ++l)
      if (!kept.count(l)) left.push_back(l);
    std::stable_sort(left.begin(), left.end(),
                     [&](size_t a, size_t b) { return report.layers[a].own < report.layers[b].own; });
    left.resize((left.size() + 3) / 4);
    for (size_t l : left) keep(l, "the outputs suffer");
    sums = TW_TRY(study(quantizer, kept, outputs, samples, options));
    record();
  }
  for (size_t o = 0; o < outputs; ++o) {
    const auto& s = sums.outputs[o];
    report.outputs.push_back({model.graph.outputs[o].name, decibels(s.signal, s.noise),
                              s.rows ? static_cast<double>(s.same) / static_cast<double>(s.rows) : -1});
  }
  report.samples = sums.samples;
  report.model = TW_TRY(onnx::write_model(quantizer.quantized(kept)));
  return report;
}

}  // namespace tilewright::driver
