/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled model from plain C: fill its inputs with ones, run it, print the first values of each output.
 *   ./run_model_c model.so */
#include <stdio.h>
#include <string.h>

#include "tilewright/c_api.h"

static int failed(const char* doing) {
  fprintf(stderr, "%s: %s\n", doing, tw_last_error_message());
  return 2;
}

int main(int argc, char** argv) {
  tw_module* module = NULL;
  tw_executor* executor = NULL;
  tw_module_info info = {sizeof info};
  if (argc != 2) {
    fprintf(stderr, "usage: %s model.so\n", argv[0]);
    return 1;
  }
  if (tw_module_load(argv[1], NULL, &module)) return failed("load");
  if (tw_module_get_info(module, &info)) return failed("info");
  if (tw_executor_create(module, NULL, &executor)) return failed("create");

  for (uint64_t i = 0; i < info.num_inputs; ++i) {
    tw_tensor_info t = {sizeof t};
    DLTensor input;
    if (tw_module_get_input_info(module, i, &t) || tw_executor_get_input(executor, i, &input)) return failed("input");
    printf("input  %s: %s, %llu bytes\n", t.name, t.dtype_name, (unsigned long long)t.bytes);
    if (strcmp(t.dtype_name, "float32") == 0)
      for (uint64_t k = 0; k < t.bytes / 4; ++k) ((float*)input.data)[k] = 1.0f;
  }
  if (tw_executor_run(executor)) return failed("run");

  for (uint64_t i = 0; i < info.num_outputs; ++i) {
    tw_tensor_info t = {sizeof t};
    DLTensor output;
    if (tw_module_get_output_info(module, i, &t) || tw_executor_get_output(executor, i, &output)) return failed("output");
    printf("output %s:", t.name);
    if (strcmp(t.dtype_name, "float32") == 0)
      for (uint64_t k = 0; k < t.bytes / 4 && k < 5; ++k) printf(" %g", ((float*)output.data)[k]);
    printf("\n");
  }
  tw_executor_free(executor);
  tw_module_free(module);
  return 0;
}
