// SPDX-License-Identifier: Apache-2.0
// fuzz-room: driver
// A Model Library Format that the reader takes becomes a project for every template, all of whose files lie inside it;
// everything else is a diagnostic.
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "driver/micro/project.h"
#include "driver/model_library_reader.h"
#include "driver/tar_writer.h"

using namespace tilewright;
using namespace tilewright::driver;

namespace {

std::string library_of(const std::string& interface, bool with_interface = true) {
  const std::string metadata =
      R"({"version":7,"modules":{"net":{"model_name":"net","target":["c"],"executors":["aot"],"style":"full-model",)"
      R"("memory":{"functions":{"operator_functions":[],"main":[{"device":1,"workspace_size_bytes":64,)"
      R"("constants_size_bytes":8,"io_size_bytes":20}]}})" +
      (with_interface ? ",\"interface\":" + interface : std::string()) + "}}}";
  std::ostringstream out;
  TarWriter tar(out);
  tar.add_folder("./codegen/");
  tar.add("./codegen/host/src/net_lib0.c", "int x;\n");
  tar.add("./metadata.json", metadata);
  tar.finish();
  return out.str();
}

}  // namespace

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  const std::string tensors = R"("inputs":[{"name":"x","member":"x","dtype":"int8","shape":[1,4]}],)"
                              R"("outputs":[{"name":"y:0","member":"y_0","dtype":"float32","shape":[4]}]})";
  seeds->push_back(library_of(R"({"api":"c","header":"tvmgen_net.h","prefix":"tvmgen_net","alignment":16,)"
                              R"("tensors_in_pools":false,"pools":[{"name":"sram","member":"sram","bytes":64,)"
                              R"("constant":false},{"name":"f","member":"f","bytes":8,"constant":true}],)" +
                              tensors));
  seeds->push_back(library_of(R"({"api":"packed","header":"","prefix":"tvmgen_net","alignment":16,)"
                              R"("tensors_in_pools":false,"pools":[],)" +
                              tensors));
  seeds->push_back(library_of("", false));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto check = [](const Diagnostic& error) {
    if (error.message.empty() || error.code == ErrorCode::kInternal) __builtin_trap();
  };
  auto members = read_tar(std::as_bytes(std::span(data, size)));
  if (!members.ok()) {
    check(members.error());
    return 0;
  }
  auto library = read_model_library(*members);
  if (!library.ok()) {
    check(library.error());
    return 0;
  }
  for (const char* name : kProjectTemplates) {
    auto files = project_files(*library, {name, {}});
    if (!files.ok()) {
      check(files.error());
      continue;
    }
    for (const ProjectFile& f : *files)
      if (f.path.empty() || f.path[0] == '/' || f.path.find("../") != std::string::npos) __builtin_trap();
  }
  return 0;
}
