/* SPDX-License-Identifier: Apache-2.0 */
/* A model compiled to model.o or model.a and linked into a program: no runtime library, one thread. One model per
 * program.
 *
 *   tilewright compile model.onnx -o model.a && cc main.c model.a -lm
 */
#ifndef TILEWRIGHT_STANDALONE_H_
#define TILEWRIGHT_STANDALONE_H_
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of working memory that a run needs, aligned to 64: enough for every variant. It holds nothing between runs. */
extern const uint64_t tw_arena_bytes;
/* Shape variants of the model: 1, or as many as the lists of `compile --shape x=1x3x48x{160,320}` are long, in their
 * order. */
extern const uint64_t tw_num_variants;
/* Runs the model once, a model with several variants in its first. inputs and outputs: addresses of the tensors in the
 * model's order (`tilewright inspect` shows it), compact and row-major. Calls with different arenas may run at the same
 * time. Returns 0. */
int tw_run(void* const* inputs, void* const* outputs, void* arena);
/* The same in a variant, counted from 0. Returns 101, and does nothing, when there is none. */
int tw_run_variant(uint64_t variant, void* const* inputs, void* const* outputs, void* arena);
/* In place of these two in a model that was compiled with --weights FILE: `weights` is the address of the file's first
 * byte in memory, aligned to 64. */
int tw_run_with_weights(void* const* inputs, void* const* outputs, void* arena, const void* weights);
int tw_run_variant_with_weights(uint64_t variant, void* const* inputs, void* const* outputs, void* arena,
                                const void* weights);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_STANDALONE_H_ */
