// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/compiler_hook.h"

#include <cstring>

#include "base/work_folder.h"
#include "runtime/dltensor.h"
#include "runtime/vm/text_view.h"

namespace tilewright::runtime::vm {

Specialize specialize_with(std::shared_ptr<const Program> program, SpecializeFunction function,
                           MessageFunction message) {
  return [program = std::move(program), function, message](
             size_t index, std::span<const Tensor> arguments) -> Result<Specialization> {
    const Region& region = program->regions[index];
    const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-vm"));
    const std::string file = place.path() + "/region.so";
    std::vector<const char*> names;
    std::vector<DLTensor> views;
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor& t : arguments) shapes.push_back(t.shape());
    for (size_t i = 0; i < arguments.size(); ++i) {
      names.push_back(region.inputs[i].c_str());
      views.push_back({const_cast<std::byte*>(arguments[i].raw()),
                       {kDLCPU, 0},
                       static_cast<int32_t>(shapes[i].size()),
                       to_dlpack(arguments[i].dtype()),
                       shapes[i].data(),
                       nullptr,
                       0});
    }
    std::vector<uint8_t> by_value(arguments.size(), 0);
    const std::string source = program->source_of(index);
    const int32_t code = function(region.format.c_str(), source.data(), source.size(), program->target.c_str(),
                                  names.data(), views.data(), views.size(), file.c_str(), by_value.data());
    Result<std::shared_ptr<const Artifact>> artifact =
        code == 0 ? Artifact::load(file) : Diagnostic(static_cast<ErrorCode>(code), message());
    if (!artifact.ok()) return std::move(artifact).error();
    Specialization made{*artifact, {}};
    for (size_t i = 0; i < by_value.size(); ++i)
      if (by_value[i]) made.by_value.push_back(i);
    return made;
  };
}

Evaluate evaluate_with(const std::shared_ptr<const Program>& program, EvaluateFunction function,
                       MessageFunction message) {
  return [=](size_t index, std::span<const Tensor> arguments, bool however_long) -> Result<Evaluation> {
    const Region& region = program->regions[index];
    std::vector<const char*> names;
    std::vector<TextView> views;
    std::vector<tw_text_tensor> tensors;
    views.reserve(arguments.size());  // no reallocation, since tensors point into it
    for (size_t i = 0; i < arguments.size(); ++i) {
      names.push_back(region.inputs[i].c_str());
      tensors.push_back(views.emplace_back(arguments[i]).tensor());
    }
    struct RegionResults {
      std::vector<Tensor> tensors;
      Status status = Ok{};
    } results;
    auto give = [](void* context, const tw_text_tensor* t) {
      auto& into = *static_cast<RegionResults*>(context);
      auto tensor = tensor_of(*t);
      if (tensor.ok())
        into.tensors.push_back(std::move(*tensor));
      else
        into.status = std::move(tensor).error();
    };
    const std::string source = program->source_of(index);
    std::vector<uint8_t> by_value(arguments.size(), 0);
    const int32_t code = function(region.format.c_str(), source.data(), source.size(), names.data(), tensors.data(),
                                  tensors.size(), however_long ? 1 : 0, by_value.data(), give, &results);
    if (code != 0) return Diagnostic(static_cast<ErrorCode>(code), message());
    TW_TRY_STATUS(results.status);
    Evaluation made{std::move(results.tensors), {}};
    for (size_t i = 0; i < by_value.size(); ++i)
      if (by_value[i]) made.by_value.push_back(i);
    return made;
  };
}

}  // namespace tilewright::runtime::vm
