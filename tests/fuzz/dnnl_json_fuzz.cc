// SPDX-License-Identifier: Apache-2.0
// fuzz-room: dnnl_plugin
// Functions for oneDNN, as a library stores them (fuzz/json_runtime.h).
#include "fuzz/json_runtime.h"
#include "plugins/dnnl_plugin.cc"

using namespace tilewright::fuzz;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  const char* conv =
      R"("strides":[["1","1"]],"padding":[["1","1","1","1"]],"dilation":[["1","1"]],"groups":[["1"]],"operator_attrs":[["{\"op\":\"nn.conv2d\",\"attrs\":{\"strides\":[[\"1\",\"1\"]],\"padding\":[[\"1\",\"1\",\"1\",\"1\"]],\"groups\":[[\"1\"]]}}","{\"op\":\"nn.bias_add\",\"attrs\":{\"axis\":[[\"1\"]]}}","{\"op\":\"add\",\"attrs\":{}}","{\"op\":\"nn.relu\",\"attrs\":{}}"]])";
  add_seeds<Plan>(
      graph({node("input", "x", "1,3,8,8"), node("const", "w", "4,3,3,3"), node("const", "b", "4"),
             node("input", "y", "1,4,8,8"),
             node("kernel", "dnnl.conv2d_bias_sum_relu", "1,4,8,8", "[0,0,0],[1,0,0],[2,0,0],[3,0,0]", conv),
             node("const", "v", "4,1,3,3"),
             node("kernel", "nn.conv2d", "1,4,6,6", "[4,0,0],[5,0,0]", R"("groups":[["4"]])"),
             node("kernel", "nn.max_pool2d", "1,4,3,3", "[6,0,0]",
                  R"("pool_size":[["2","2"]],"strides":[["2","2"]],"padding":[["0","0","0","0"]])"),
             node("kernel", "nn.global_avg_pool2d", "1,4,1,1", "[7,0,0]")},
            "[8,0,0],[4,0,0]"),
      seeds);
  add_seeds<Plan>(
      graph({node("input", "x", "2,4"), node("const", "w", "5,4"), node("kernel", "nn.dense", "2,5", "[0,0,0],[1,0,0]"),
             node("kernel", "nn.softmax", "2,5", "[2,0,0]", R"("axis":[["-1"]])"), node("const", "c", "5"),
             node("kernel", "multiply", "2,5", "[3,0,0],[4,0,0]"), node("kernel", "add", "2,5", "[5,0,0],[3,0,0]"),
             node("kernel", "clip", "2,5", "[6,0,0]", R"("a_min":[["0.1"]],"a_max":[["6"]])")},
            "[7,0,0]"),
      seeds);
  add_seeds<Plan>(
      graph(
          {node("input", "x", "1,2,4,4"),
           node(
               "kernel", "nn.avg_pool2d", "1,2,2,2", "[0,0,0]",
               R"("pool_size":[["3","3"]],"strides":[["2","2"]],"padding":[["1","1","1","1"]],"count_include_pad":[["True"]])")},
          "[1,0,0]"),
      seeds);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) run_json<Plan>({reinterpret_cast<const char*>(data), size});
  return 0;
}
