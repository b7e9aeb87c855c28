// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/compiler_hook.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "runtime/dltensor.h"

namespace tilewright::runtime::vm {

Specialize specialize_with(std::shared_ptr<const Program> program, SpecializeFunction function, MessageFunction message) {
  return [program = std::move(program), function, message](size_t index, std::span<const Tensor> arguments) -> Result<Specialization> {
    const Region& region = program->regions[index];
    const char* folder = std::getenv("TMPDIR");
    std::string place = format("{}/tilewright-vm-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(place.data())) return Diagnostic(ErrorCode::kCannotWrite, format("no folder for a specialisation: {}", std::strerror(errno)), place, "set TMPDIR to a folder that can be written");
    const std::string file = place + "/region.so";
    std::vector<const char*> names;
    std::vector<DLTensor> views;
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor& t : arguments) shapes.push_back(t.shape());
    for (size_t i = 0; i < arguments.size(); ++i) {
      names.push_back(region.inputs[i].c_str());
      views.push_back({const_cast<std::byte*>(arguments[i].raw()), {kDLCPU, 0}, static_cast<int32_t>(shapes[i].size()), to_dlpack(arguments[i].dtype()), shapes[i].data(), nullptr, 0});
    }
    std::vector<uint8_t> by_value(arguments.size(), 0);
    const int32_t code = function(region.format.c_str(), region.source.data(), region.source.size(), program->target.c_str(), names.data(), views.data(), views.size(), file.c_str(), by_value.data());
    Result<std::shared_ptr<const Artifact>> artifact = code == 0 ? Artifact::load(file) : Diagnostic(static_cast<ErrorCode>(code), message());
    unlink(file.c_str());
    rmdir(place.c_str());
    if (!artifact.ok()) return std::move(artifact).error();
    Specialization made{*artifact, {}};
    for (size_t i = 0; i < by_value.size(); ++i)
      if (by_value[i]) made.by_value.push_back(i);
    return made;
  };
}

}  // namespace tilewright::runtime::vm
