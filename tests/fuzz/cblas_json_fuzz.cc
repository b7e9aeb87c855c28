// SPDX-License-Identifier: Apache-2.0
// fuzz-room: cblas_plugin
// Functions for a BLAS, as a library stores them (fuzz/json_runtime.h).
#include "fuzz/json_runtime.h"
#include "plugins/cblas_plugin.cc"

using namespace tilewright::fuzz;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  const char* chain =
      R"("operator_attrs":[["{\"op\":\"nn.dense\",\"attrs\":{}}","{\"op\":\"nn.bias_add\",\"attrs\":{}}","{\"op\":\"nn.relu\",\"attrs\":{}}"]])";
  add_seeds<Plan>(graph({node("input", "x", "3,4"), node("const", "w", "5,4"), node("const", "b", "5"),
                         node("kernel", "cblas.dense_bias_relu", "3,5", "[0,0,0],[1,0,0],[2,0,0]", chain),
                         node("const", "v", "2,5"), node("kernel", "nn.dense", "3,2", "[3,0,0],[4,0,0]")},
                        "[5,0,0],[3,0,0]"),
                  seeds);
  for (const char* type : {"float32", "float64"})
    for (const char* turned : {"True", "False"})
      add_seeds<Plan>(
          graph({node("input", "x", turned[0] == 'T' ? "2,4,3" : "2,3,4", "", "", type),
                 node("input", "y", "1,5,4", "", "", type),
                 node("kernel", "nn.batch_matmul", "2,3,5", "[0,0,0],[1,0,0]",
                      std::string(R"("transpose_a":[[")") + turned + R"("]],"transpose_b":[["True"]])", type)},
                "[2,0,0]"),
          seeds);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) run_json<Plan>({reinterpret_cast<const char*>(data), size});
  return 0;
}
