/* SPDX-License-Identifier: Apache-2.0 */
/* A model compiled to model.o or model.a and linked into a program: no runtime library, one thread. One model per program.
 *
 *   tilewright compile model.onnx -o model.a && cc main.c model.a -lm
 */
#ifndef TILEWRIGHT_STANDALONE_H_
#define TILEWRIGHT_STANDALONE_H_
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of working memory that a run needs, aligned to 64. It holds nothing between runs. */
extern const uint64_t tw_arena_bytes;
/* Runs the model once. inputs and outputs: addresses of the tensors in the model's order (`tilewright inspect` shows it), compact
 * and row-major. Calls with different arenas may run at the same time. Returns 0. */
int tw_run(void* const* inputs, void* const* outputs, void* arena);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_STANDALONE_H_ */
