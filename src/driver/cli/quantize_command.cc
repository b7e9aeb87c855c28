// SPDX-License-Identifier: Apache-2.0
// tilewright quantize: converts a float32 ONNX model to 8 bits and reports each layer's accuracy.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/work_folder.h"
#include "driver/cli/commands.h"
#include "driver/quantize.h"

namespace tilewright::driver {
namespace {

struct QuantizeFlags {
  std::string model, folder, output, picture, method = "minmax", target = "llvm";
  std::vector<std::string> shapes, keep;
  QuantizeOptions quantize;
  size_t samples = 0;
  int jobs = 0;
  bool per_tensor = false, json = false, quiet = false;
};

std::string shown(double decibels) {
  return std::isinf(decibels) ? (decibels > 0 ? "exact" : "none") : format("{:.1f}", decibels);
}
nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

std::string size_of_file(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? "?" : format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void print_table(const QuantizeReport& report, const QuantizeFlags& flags) {
  size_t width = 5, in_bytes = 0;
  for (const auto& l : report.layers) width = std::max(width, std::min<size_t>(l.name.size(), 60));
  std::printf("%-*s  %-7s %8s %8s %8s  %s\n", static_cast<int>(width), "layer", "", "weights", "alone", "so far", "");
  for (const auto& l : report.layers) {
    in_bytes += l.kept.empty();
    const bool known = l.own != 0 || l.so_far != 0;
    std::printf("%-*s  %-7s %8s %8s %8s  %s\n", static_cast<int>(width), l.name.c_str(), l.op.c_str(),
                shown(l.weights).c_str(), known ? shown(l.own).c_str() : "-", known ? shown(l.so_far).c_str() : "-",
                l.kept.empty() ? "int8" : ("float32: " + l.kept).c_str());
  }
  std::printf(
      "signal over noise in dB, against float32: the weights, the layer alone in 8 bits, and in the quantized model\n");
  for (const auto& o : report.outputs)
    std::printf("output %s: %s dB%s\n", o.name.c_str(), shown(o.decibels).c_str(),
                o.same_largest < 0
                    ? ""
                    : format(", the largest element is the same for {:.1f}%", o.same_largest * 100).c_str());
  std::printf("%s: %zu of %zu layers in 8 bits, calibrated on %zu samples (%s); %s, was %s\n", flags.output.c_str(),
              in_bytes, report.layers.size(), report.samples, flags.method.c_str(), size_of_file(flags.output).c_str(),
              size_of_file(flags.model).c_str());
}

void print_json(const QuantizeReport& report, const QuantizeFlags& flags) {
  nlohmann::json j{{"output", flags.output}, {"samples", report.samples}, {"method", flags.method}};
  for (const auto& l : report.layers)
    j["layers"].push_back({{"name", l.name},
                           {"op", l.op},
                           {"int8", l.kept.empty()},
                           {"kept", l.kept},
                           {"weights_db", number(l.weights)},
                           {"alone_db", number(l.own)},
                           {"so_far_db", number(l.so_far)}});
  for (const auto& o : report.outputs)
    j["outputs"].push_back({{"name", o.name}, {"db", number(o.decibels)}, {"same_largest", o.same_largest}});
  std::printf("%s\n", j.dump(2).c_str());
}

Result<int> quantize(QuantizeFlags& flags) {
  if (flags.output.empty()) flags.output = std::filesystem::path(flags.model).stem().string() + "_int8.onnx";
  QuantizeOptions options = flags.quantize;
  CompileFlags compile;
  compile.target = flags.target, compile.shapes = flags.shapes, compile.jobs = flags.jobs;
  options.build = TW_TRY(compile.options());
  TW_TRY_STATUS(check_options(options.build));
  if (!options.build.more_shapes.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "--shape names several shapes", {}, "calibrate with one");
  options.method = flags.method == "minmax"    ? CalibrationMethod::kMinMax
                   : flags.method == "entropy" ? CalibrationMethod::kEntropy
                                               : CalibrationMethod::kPercentile;
  options.per_channel = !flags.per_tensor;
  options.keep = flags.keep;
  const auto samples = TW_TRY(inputs::Samples::open(flags.folder, flags.picture, flags.samples));
  ProgressLine line(flags.quiet || flags.json);
  options.build.progress = line.callback();
  auto report = quantize_onnx(flags.model, samples, options);
  line.clear();
  if (!report.ok()) return std::move(report).error().at(flags.model);
  TW_TRY_STATUS(write_whole(flags.output, report->model));
  if (flags.json)
    print_json(*report, flags);
  else if (!flags.quiet)
    print_table(*report, flags);
  return kExitOk;
}

}  // namespace

Command add_quantize(CLI::App* app) {
  auto* cmd = app->add_subcommand("quantize", "Write a float32 ONNX model in 8 bits, calibrated on samples");
  auto flags = std::make_shared<QuantizeFlags>();
  QuantizeOptions& options = flags->quantize;
  cmd->add_option("model", flags->model, "A float32 ONNX model")->required();
  cmd->add_option("--calibrate", flags->folder,
                  "A folder of samples: .npz with an entry for each input, .npy or .pb for one input (several samples "
                  "along its first axis), or pictures")
      ->required()
      ->type_name("FOLDER");
  cmd->add_option("-o,--output", flags->output, "The file to write; default: the model's name with _int8.onnx");
  cmd->add_option("--picture", flags->picture,
                  "How pictures become inputs, as after a picture's name in run's --input: preset=imagenet, or "
                  "short=256,crop=224,scale=1,mean=127,std=128");
  cmd->add_option("--method", flags->method,
                  "What a value's range is: minmax (all that was seen), percentile (all but the rarest), entropy (what "
                  "loses least information)")
      ->check(CLI::IsMember({"minmax", "percentile", "entropy"}))
      ->capture_default_str();
  cmd->add_option("--percentile", options.percentile, "Share of values inside the range at each end, in percent")
      ->check(CLI::Range(50.0, 100.0))
      ->capture_default_str();
  cmd->add_flag("--per-tensor", flags->per_tensor, "One scale for each weight, not one for each output channel");
  cmd->add_option("--keep", flags->keep, "A layer that stays in float32, by its name in the table; may be repeated");
  cmd->add_option("--layer-db", options.layer_decibels,
                  "Layers whose own result has less signal over noise stay in float32")
      ->capture_default_str();
  cmd->add_option("--output-db", options.output_decibels,
                  "While an output has less signal over noise, the worst layers become float32 again")
      ->capture_default_str();
  cmd->add_option("--samples", flags->samples, "Read at most so many samples; default: all");
  cmd->add_option("--shape", flags->shapes, "Size of an input, name=1x3x224x224; default: as the samples have it");
  cmd->add_option("--target", flags->target, "What the runs are compiled for; the file that is written is for all");
  cmd->add_option("--threads", options.threads, "Threads of the runs; default: one per core")
      ->check(CLI::Range(0, 1024));
  cmd->add_option("--jobs,-j", flags->jobs, "Code generation threads; default: one per core")
      ->check(CLI::Range(0, 1024));
  cmd->add_flag("--json", flags->json, "Print the accuracies as JSON");
  cmd->add_flag("--quiet,-q", flags->quiet, "Say nothing but errors");
  cmd->footer(
      "Examples:\n"
      "  tilewright quantize resnet50.onnx --calibrate photos/ --picture preset=imagenet\n"
      "  tilewright quantize bert.onnx --calibrate batches/ -o bert_int8.onnx --method percentile\n");
  return [flags] {
    auto done = quantize(*flags);
    return done.ok() ? *done : fail(done.error());
  };
}

}  // namespace tilewright::driver
