/* SPDX-License-Identifier: Apache-2.0 */
/* A model with free sizes from plain C: each number on the command line is taken for every free size in turn; the
 * inputs are ones, the first values of each output are printed.
 *   tilewright compile model.onnx --bound none -o model.so && ./run_any_batch model.so 1 3 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewright/vm.h"

static int failed(const char* doing) {
  fprintf(stderr, "%s: %s\n", doing, tw_compiler_last_error_message());
  return 2;
}

static int set_ones(tw_vm* vm, uint64_t index, int64_t free_size) {
  tw_tensor_info t = {sizeof t};
  int64_t shape[8], count = 1;
  DLTensor ones = {NULL, {kDLCPU, 0}, 0, {kDLFloat, 32, 1}, shape, NULL, 0};
  if (tw_vm_get_input_info(vm, index, &t)) return failed("input");
  if (strcmp(t.dtype_name, "float32") != 0 || t.ndim < 0 || t.ndim > 8) {
    fprintf(stderr, "input %s: this example gives ones as float32\n", t.name);
    return 2;
  }
  ones.ndim = t.ndim;
  for (int32_t d = 0; d < t.ndim; ++d) count *= shape[d] = t.shape[d] < 0 ? free_size : t.shape[d];
  float* values = malloc((size_t)(count > 0 ? count : 1) * sizeof(float));
  if (!values) return 2;
  for (int64_t i = 0; i < count; ++i) values[i] = 1.0f;
  ones.data = values;
  const int32_t code = tw_vm_set_input(vm, t.name, &ones); /* copies */
  free(values);
  return code ? failed("set_input") : 0;
}

int main(int argc, char** argv) {
  tw_vm* vm = NULL;
  if (argc < 3) {
    fprintf(stderr, "usage: %s model.so SIZE...\n", argv[0]);
    return 1;
  }
  if (tw_vm_load(argv[1], NULL, &vm)) return failed("load");
  if (tw_vm_num_interpreted(vm) > 0) printf("no compiler is installed here: sizes are interpreted\n");
  for (int a = 2; a < argc; ++a) {
    for (uint64_t i = 0; i < tw_vm_num_inputs(vm); ++i)
      if (set_ones(vm, i, atoll(argv[a]))) return 2;
    if (tw_vm_run(vm)) return failed("run");
    for (uint64_t i = 0; i < tw_vm_num_outputs(vm); ++i) {
      const char* name = NULL;
      DLTensor output;
      int64_t count = 1;
      if (tw_vm_get_output_name(vm, i, &name) || tw_vm_get_output(vm, i, &output)) return failed("output");
      for (int32_t d = 0; d < output.ndim; ++d) count *= output.shape[d];
      printf("batch %s: output %s:", argv[a], name);
      if (output.dtype.code == kDLFloat && output.dtype.bits == 32)
        for (int64_t k = 0; k < count && k < 5; ++k) printf(" %g", ((const float*)output.data)[k]);
      printf("\n");
    }
  }
  tw_vm_free(vm);
  return 0;
}
