/* SPDX-License-Identifier: Apache-2.0
 * Runs a graph: a JSON text that says which packed functions a model calls in which order, as Model Library Formats
 * have it in executor-config/graph. Memory is the platform's (TVMPlatformMemoryAllocate), all of it taken when an
 * executor is created. Functions return 0; otherwise TVMGetLastError says why. */
#ifndef TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_
#define TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMGraphExecutor TVMGraphExecutor;

/* `devices` has one, the processor. The JSON text may go away afterwards. */
int TVMGraphExecutor_Create(const char* sym_json, TVMModuleHandle module_handle, const DLDevice* devices,
                            TVMGraphExecutor** executor);
int TVMGraphExecutor_Release(TVMGraphExecutor** executor);

/* Inputs and parameters by their names; -1: there is none of that name. */
int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor* executor, const char* name);
int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor* executor);
int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor* executor);
/* Copies a compact tensor of the input's dtype and size. */
int TVMGraphExecutor_SetInput(TVMGraphExecutor* executor, const char* name, DLTensor* data_in);
/* Copies the output to a compact tensor of its dtype and size. */
int TVMGraphExecutor_GetOutput(TVMGraphExecutor* executor, int32_t index, DLTensor* out);
/* A .params file; parameters that the graph does not have are skipped. */
int TVMGraphExecutor_LoadParams(TVMGraphExecutor* executor, const char* param_blob, uint32_t param_size);
int TVMGraphExecutor_Run(TVMGraphExecutor* executor);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_ */
