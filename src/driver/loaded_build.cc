// SPDX-License-Identifier: Apache-2.0
#include "driver/loaded_build.h"

#include "base/work_folder.h"
#include "runtime/dltensor.h"

namespace tilewright::driver {

Result<std::shared_ptr<const runtime::Artifact>> load_build(const Built& built) {
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-loaded"));
  const std::string path = place.path() + "/model.so";
  TW_TRY_STATUS(export_library(built, path, loadable_form(built.target)));
  return runtime::Artifact::load(path);
}

Result<std::vector<Tensor>> run_once(runtime::Executor& executor, const std::vector<Tensor>& inputs) {
  auto described = [](const Tensor& t) {
    DLTensor out{};
    out.data = const_cast<std::byte*>(t.raw());
    out.device = {kDLCPU, 0};
    out.ndim = t.rank();
    out.dtype = runtime::to_dlpack(t.dtype());
    out.shape = const_cast<int64_t*>(t.shape().data());
    return out;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DLTensor tensor = described(inputs[i]);
    TW_TRY_STATUS(executor.set_input(i, &tensor));
  }
  TW_TRY_STATUS(executor.run());
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < executor.plan().outputs.size(); ++i) {
    const auto& info = executor.plan().outputs[i];
    Tensor copy(info.dtype, info.shape);
    const DLTensor into = described(copy);
    TW_TRY_STATUS(executor.copy_output(i, &into));
    outputs.push_back(std::move(copy));
  }
  return outputs;
}

}  // namespace tilewright::driver
