// SPDX-License-Identifier: Apache-2.0
#include "driver/run_elsewhere.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "base/format.h"
#include "base/work_folder.h"
#include "inputs/file.h"
#include "inputs/input_spec.h"
#include "inputs/tensor_proto.h"
#include "runtime/link_file.h"

namespace tilewright::driver {
namespace {

// numpy files have no name for some dtypes and store their bits.
Result<Tensor> as_declared(const Tensor& read, const plan::TensorInfo& info) {
  const bool same = read.dtype() == info.dtype;
  if (read.shape() != info.shape || (!same && read.dtype().bytes() != info.dtype.bytes()))
    return Diagnostic(ErrorCode::kBadArtifact,
                      format("output '{}' came back as {} {}, and the model gives {} {}", info.name, read.dtype().str(),
                             shape_str(read.shape()), info.dtype.str(), shape_str(info.shape)));
  if (same) return read;
  Tensor out(info.dtype, info.shape);
  std::memcpy(out.mutable_raw(), read.raw(), static_cast<size_t>(std::min(out.bytes(), read.bytes())));
  return out;
}

}  // namespace

Result<std::vector<Tensor>> run_elsewhere(const std::string& library,
                                          const std::vector<std::pair<std::string, Tensor>>& inputs, size_t outputs,
                                          const std::string& command) {
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-elsewhere"));
  std::vector<std::string> words;
  std::istringstream split(command);
  for (std::string word; split >> word;) words.push_back(word);
  if (words.empty()) return Diagnostic(ErrorCode::kInvalidArgument, "the command to run libraries with is empty");
  words.insert(words.end(), {"run", library, "--threads", "1", "--json"});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string file = format("{}/input{}.pb", place.path(), i);
    const std::string bytes = TW_TRY(inputs::write_tensor_proto(inputs[i].first, inputs[i].second));
    TW_TRY_STATUS(inputs::write_file(file, inputs::bytes_of(bytes)));
    words.insert(words.end(), {"--input", format("{}=@{}", inputs[i].first, file)});
  }
  const std::string results = place.path() + (outputs == 1 ? "/output.pb" : "/outputs.npz");
  words.insert(words.end(), {"--output", results});
  TW_TRY_STATUS(runtime::run_program(words, place.path()));
  std::vector<Tensor> out;
  for (auto& [name, tensor] : TW_TRY(inputs::read_tensor_file(results))) out.push_back(std::move(tensor));
  if (out.size() != outputs)
    return Diagnostic(ErrorCode::kBadArtifact,
                      format("{} outputs came back, and the model has {}", out.size(), outputs));
  return out;
}

Result<std::vector<Tensor>> run_elsewhere(const Built& built, const std::vector<Tensor>& inputs,
                                          const std::string& command) {
  const plan::Plan& plan = built.lowered.plan;
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-elsewhere"));
  const std::string library = place.path() + "/model.so";
  TW_TRY_STATUS(export_library(built, library));
  std::vector<std::pair<std::string, Tensor>> named;
  for (size_t i = 0; i < inputs.size(); ++i) named.emplace_back(plan.inputs[i].name, inputs[i]);
  std::vector<Tensor> outputs = TW_TRY(run_elsewhere(library, named, plan.outputs.size(), command));
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = TW_TRY(as_declared(outputs[i], plan.outputs[i]));
  return outputs;
}

}  // namespace tilewright::driver
