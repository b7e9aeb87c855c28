// SPDX-License-Identifier: Apache-2.0
// fuzz-room: runtime
// A factory record that the reader accepts is written to the bytes it was read from; everything else is a diagnostic.
#include <span>
#include <string>
#include <vector>

#include "runtime/classic/factory_record.h"

using namespace tilewright;
using namespace tilewright::runtime;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  const std::string bytes(24, '\1');
  const auto data = std::as_bytes(std::span(bytes));
  const std::vector<NamedTensor> tensors = {
      {"p0", kFloat32, {2, 3}, data}, {"p1", kInt8, {24}, data}, {"p2", kInt64, {0, 5}, {}}};
  for (const char* first : {"g", "a"}) {  // the first byte says which form follows
    const bool with_graph = *first == 'g';
    seeds->push_back(first +
                     write_factory_record({with_graph ? "{\"nodes\": []}" : "", tensors, "default"}, with_graph));
    seeds->push_back(first + write_factory_record({with_graph ? "{}" : "", {}, ""}, with_graph));
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool with_graph = data[0] % 2 == 'g' % 2;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto record = read_factory_record(std::as_bytes(std::span(bytes)), with_graph);
  auto module = load_factory(with_graph ? "GraphExecutorFactory" : "AotExecutorFactory", bytes);
  if (record.ok() != module.ok()) __builtin_trap();
  if (!record.ok()) {
    if (record.error().str().empty() || record.error().code == ErrorCode::kInternal) __builtin_trap();
    return 0;
  }
  const std::string written = write_factory_record(*record, with_graph);
  auto again = read_factory_record(std::as_bytes(std::span(written)), with_graph);
  if (!again.ok() || write_factory_record(*again, with_graph) != written) __builtin_trap();
  for (const char* name : {"get_graph_json", "get_graph_params", "remove_params"}) {
    auto function = (*module)->get_function(name);
    if (!function.ok() || (*function && !call(function->get(), {}).ok())) __builtin_trap();
  }
  return 0;
}
