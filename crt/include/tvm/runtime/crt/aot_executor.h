/* SPDX-License-Identifier: Apache-2.0
 * The models that are linked into the program, and their tensors: the system library of a device. A project's
 * models.c, which is generated, defines the table. */
#ifndef TVM_RUNTIME_CRT_AOT_EXECUTOR_H_
#define TVM_RUNTIME_CRT_AOT_EXECUTOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds and bits of elements are DLPack's. */
typedef struct {
  const char* name;
  void* data;
  size_t num_bytes;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int32_t ndim;
  const int64_t* shape;
} TVMAotTensor;

typedef struct {
  const char* name;
  int32_t num_inputs, num_outputs;
  const TVMAotTensor *inputs, *outputs;
  int32_t (*run)(void); /* from inputs[].data to outputs[].data; 0, or the model's error */
} TVMAotModel;

extern const TVMAotModel kTvmAotModels[];
extern const int32_t kTvmAotModelCount;
/* Before anything else of this file: where tensors lie that are in the models' pools. */
void TVMAotPlaceTensors(void);
/* The packed functions of the program: of tensors, or of graphs that the host interprets. Null: it has none. */
const TVMModule* TVMProjectSystemLib(void);

/* The place of the name among the tensors; -1: it has none of that name. */
int32_t TVMAotTensorIndex(const TVMAotTensor* tensors, int32_t count, const char* name, size_t name_bytes);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_AOT_EXECUTOR_H_ */
