/* SPDX-License-Identifier: Apache-2.0 */
/* Tilewright's runtime, the stable C interface: load a compiled model, give it tensors, run it.
 *
 * Conventions
 *   - Every fallible call returns 0 or the number of an error (501 is E501; docs/errors/ has a page for each). The
 * message of the last error of this thread is tw_last_error_message(). Nothing throws, nothing aborts.
 *   - Structures start with their own size: set it to sizeof before the call; a newer library fills only what you have
 * room for.
 *   - Tensors are DLPack DLTensor, in host memory. Given tensors may have strides and any alignment where a call
 * copies; bound ones must be compact and row-major.
 *   - Modules are immutable and may be shared by threads. An executor serves one call at a time; make one for each
 * thread.
 *   - Functions and modules are counted references: create, get and retain give one, free gives it back.
 *   - Pointers that a call returns belong to the module, executor or profile they came from.
 */
#ifndef TILEWRIGHT_C_API_H_
#define TILEWRIGHT_C_API_H_
#include <stddef.h>
#include <stdint.h>

#include "tilewright/dlpack.h"

#if defined(_WIN32)
#define TW_API
#else
#define TW_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TW_C_API_VERSION 4

typedef struct tw_module tw_module;
typedef struct tw_function tw_function;
typedef struct tw_executor tw_executor;
typedef struct tw_profile tw_profile;

/* ---- errors and versions
 * ------------------------------------------------------------------------------------------------- */

typedef struct tw_error_info {
  size_t size;
  int32_t code;        /* 0 when no call of this thread has failed yet */
  const char* name;    /* "ShapeMismatch" */
  const char* message; /* one sentence */
  const char* where;   /* file or tensor; may be empty */
  const char* hint;    /* what to do; may be empty */
} tw_error_info;

/* "error[E505 ShapeMismatch]: where: message\n  hint: ..."; empty when nothing failed. Valid until this thread's next
 * failed call. */
TW_API const char* tw_last_error_message(void);
TW_API int32_t tw_last_error(tw_error_info* out);
/* For functions of yours that the runtime calls: says why the call failed and returns `code`, to be returned in turn. A
 * code that is no number of docs/errors/ counts as 101. `where` and `hint` may be null. */
TW_API int32_t tw_set_last_error(int32_t code, const char* message, const char* where, const char* hint);
/* "0.1.0" */
TW_API const char* tw_version(void);
/* TW_C_API_VERSION of the library; it grows with additions, which never break callers of an older header. */
TW_API uint32_t tw_c_api_version(void);

/* ---- modules: compiled models
 * ---------------------------------------------------------------------------------------------- */

typedef struct tw_module_options {
  size_t size;
  int32_t verify_params; /* 1: read all weights and compare their check sum; 0 (default): check everything but the
                            weights */
  const char* weights;   /* where a model's weights file is that was compiled with one; null: where it was compiled */
} tw_module_options;

typedef struct tw_module_info {
  size_t size;
  const char* name;
  const char* compiler_version;
  const char* target;
  uint64_t num_inputs, num_outputs, num_steps, num_params, num_metadata;
  uint64_t params_bytes; /* mapped, read-only, shared by all executors (and processes) */
  uint64_t arena_bytes;  /* working memory of each executor */
  double flops;          /* of one run */
} tw_module_info;

typedef struct tw_tensor_info {
  size_t size;
  const char* name;
  const char* dtype_name; /* "float32" */
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape;
  uint64_t bytes;
} tw_tensor_info;

/* Loads an artifact; `options` may be null. Errors: 102 (no such file), 501 (damaged), 502 (version), 503 (CPU
 * features). */
TW_API int32_t tw_module_load(const char* path, const tw_module_options* options, tw_module** out);
/* Gives a reference back. Executors and functions keep what they need: a module may be freed before them. Null is
 * allowed. */
TW_API void tw_module_free(tw_module* module);
/* These ask for a compiled model; another kind of module is error 101. */
TW_API int32_t tw_module_get_info(const tw_module* module, tw_module_info* out);
TW_API int32_t tw_module_get_input_info(const tw_module* module, uint64_t index, tw_tensor_info* out);
TW_API int32_t tw_module_get_output_info(const tw_module* module, uint64_t index, tw_tensor_info* out);
/* A model compiled for several input shapes has a variant for each, with the same inputs and outputs; the calls above
 * are about the first. Setting an input takes a variant of its shape into use. */
TW_API uint64_t tw_module_num_variants(const tw_module* module);
TW_API int32_t tw_module_get_variant_input_info(const tw_module* module, uint64_t variant, uint64_t index,
                                                tw_tensor_info* out);
TW_API int32_t tw_module_get_variant_output_info(const tw_module* module, uint64_t variant, uint64_t index,
                                                 tw_tensor_info* out);
/* The index, or -1 when there is no such name (which is no error). */
TW_API int64_t tw_module_get_input_index(const tw_module* module, const char* name);
TW_API int64_t tw_module_get_output_index(const tw_module* module, const char* name);
/* The model's own metadata (labels, character lists); *value is null when the key is absent. */
TW_API int32_t tw_module_get_metadata(const tw_module* module, const char* key, const char** value);
TW_API int32_t tw_module_get_metadata_at(const tw_module* module, uint64_t index, const char** key, const char** value);

/* ---- executors: memory and threads to run a module with
 * -------------------------------------------------------------------- */

typedef struct tw_executor_options {
  size_t size;
  int32_t num_threads; /* 0 (default): one per physical core that this process may use (affinity, container quota), or
                          what TILEWRIGHT_NUM_THREADS says */
  int32_t spin_us;     /* how long idle threads spin before they sleep; -1 (default): 100; 0: sleep at once */
} tw_executor_options;

/* `options` may be null. */
TW_API int32_t tw_executor_create(tw_module* module, const tw_executor_options* options, tw_executor** out);
TW_API void tw_executor_free(tw_executor* executor);
TW_API int32_t tw_executor_num_threads(const tw_executor* executor);

/* Copies a tensor into an input. Errors: 504 (name, index), 505 (shape), 506 (dtype). */
TW_API int32_t tw_executor_set_input(tw_executor* executor, const char* name, const DLTensor* tensor);
TW_API int32_t tw_executor_set_input_at(tw_executor* executor, uint64_t index, const DLTensor* tensor);
/* Takes a variant into use before its inputs are filled in place. Inputs whose shape does not change stay set. */
TW_API int32_t tw_executor_select_variant(tw_executor* executor, uint64_t variant);
/* Uses the caller's memory, which must stay valid (and, for inputs, unchanged during a run) until it is replaced. */
TW_API int32_t tw_executor_bind_input(tw_executor* executor, const char* name, const DLTensor* tensor);
TW_API int32_t tw_executor_bind_input_at(tw_executor* executor, uint64_t index, const DLTensor* tensor);
TW_API int32_t tw_executor_bind_output_at(tw_executor* executor, uint64_t index, const DLTensor* tensor);
/* Errors: 101 (an input was never set, or the executor is running in another thread). */
TW_API int32_t tw_executor_run(tw_executor* executor);
/* A view of the input's or output's memory, writable for inputs; valid until the executor is freed or the tensor is
 * bound anew. The first view of an input that was never set counts as setting it (to zeros). */
TW_API int32_t tw_executor_get_input(tw_executor* executor, uint64_t index, DLTensor* out);
TW_API int32_t tw_executor_get_output(tw_executor* executor, uint64_t index, DLTensor* out);
/* Copies an output into a tensor of the same shape and dtype. */
TW_API int32_t tw_executor_copy_output(tw_executor* executor, uint64_t index, const DLTensor* destination);
/* Sets the inputs and weights that a .params file (the classic byte layout) names; other names in it are ignored. A
 * weight is replaced for this executor only. Errors: 505, 506 (the weight was compiled with another shape or dtype). */
TW_API int32_t tw_executor_load_params(tw_executor* executor, const void* data, uint64_t bytes);
/* Binds the inputs that the .params file names to the memory of the other executor's inputs of the same names; the
 * other must outlive this one. Compiled-in weights are shared anyway. */
TW_API int32_t tw_executor_share_params(tw_executor* executor, const tw_executor* other, const void* data,
                                        uint64_t bytes);

/* ---- profiles: where the time goes
 * ------------------------------------------------------------------------------------------ */

typedef struct tw_step_profile {
  size_t size;
  const char* name;   /* the fused operators, "nn.conv2d+nn.relu" */
  const char* source; /* the model's nodes */
  const char* kernel; /* symbol */
  const char* shapes; /* of the arguments, physical */
  double min_us, median_us, mean_us;
  double busy_us;      /* mean time in the kernel, summed over threads */
  double flops, bytes; /* work and compulsory traffic of one execution */
  double predicted_us; /* the cost model's one-thread time; 0 when unknown */
  int32_t parallel;
  const char* implementation; /* which kernel the compiler chose, "conv2d.direct" */
  double weight_bytes;        /* of `bytes`, those of constants */
} tw_step_profile;

/* Runs `repeats` times with a clock around every step. All inputs must be set. */
TW_API int32_t tw_executor_profile(tw_executor* executor, uint64_t repeats, tw_profile** out);
TW_API void tw_profile_free(tw_profile* profile);
TW_API uint64_t tw_profile_num_steps(const tw_profile* profile);
TW_API int32_t tw_profile_get_step(const tw_profile* profile, uint64_t index, tw_step_profile* out);
/* "table" (sorted by time), "json", or "trace" (Chrome's trace event format, of the last repeat). */
TW_API int32_t tw_profile_text(tw_profile* profile, const char* form, const char** out);

/* ---- functions: called by name, across languages
 * ----------------------------------------------------------------------------- */

/* Kinds of values, with the classic numbers. */
enum {
  TW_INT = 0,
  TW_FLOAT = 2,
  TW_HANDLE = 3, /* a pointer that means something to caller and callee only */
  TW_NULL = 4,
  TW_DTYPE = 5,
  TW_DEVICE = 6,
  TW_TENSOR = 7, /* someone else's tensor, valid during the call */
  TW_ARRAY = 8,  /* `size` values */
  TW_MODULE = 9,
  TW_FUNCTION = 10,
  TW_STR = 11,    /* `size` bytes of UTF-8; a zero follows */
  TW_BYTES = 12,  /* `size` bytes */
  TW_NDARRAY = 13 /* a tensor with its owner */
};

typedef struct tw_value {
  int32_t kind;
  int32_t reserved;
  uint64_t size;
  union {
    int64_t i;
    double f;
    void* handle;
    DLDataType dtype;
    DLDevice device;
    DLTensor* tensor;
    DLManagedTensor* ndarray;
    tw_module* module;
    tw_function* function;
    const char* str;
    const unsigned char* bytes;
    struct tw_value* array;
  } as;
} tw_value;

/* Arguments are the caller's and valid during the call. The result is the callee's gift: the caller frees it with
 * tw_value_free. Returns 0, or what tw_set_last_error returned. `result` comes in as TW_NULL. Called in any thread. */
typedef int32_t (*tw_packed_call)(void* context, const tw_value* args, int32_t num_args, tw_value* result);

/* Makes results: copies of the bytes, or room for `size` values (all TW_NULL) to be filled in. */
TW_API int32_t tw_value_set_str(tw_value* value, const char* data, uint64_t size);
TW_API int32_t tw_value_set_bytes(tw_value* value, const void* data, uint64_t size);
TW_API int32_t tw_value_set_array(tw_value* value, uint64_t size);
/* Gives back what an owned value holds (text, bytes, items, references) and makes it TW_NULL. */
TW_API void tw_value_free(tw_value* value);

/* A function of yours; `free_context` (may be null) runs when the last reference is gone, in any thread. */
TW_API int32_t tw_function_create(tw_packed_call call, void* context, void (*free_context)(void*), tw_function** out);
TW_API tw_function* tw_function_retain(tw_function* function);
TW_API void tw_function_free(tw_function* function);
TW_API int32_t tw_function_call(tw_function* function, const tw_value* args, int32_t num_args, tw_value* result);

/* The process-wide table of functions by name. Registering keeps a reference. Error: 101 (the name is taken, override
 * is 0). */
TW_API int32_t tw_function_register(const char* name, tw_function* function, int32_t override);
/* A new reference, or null when there is no such name (which is no error). */
TW_API int32_t tw_function_get_global(const char* name, tw_function** out);
/* Error: 507 (no such function; built-in ones stay). */
TW_API int32_t tw_function_remove_global(const char* name);
/* A TW_ARRAY of TW_STR, sorted. */
TW_API int32_t tw_function_list_globals(tw_value* out);

/* ---- modules: functions that belong together, and what they import
 * ----------------------------------------------------------- */

/* A kind of module of yours. */
typedef struct tw_module_class {
  size_t size;
  const char* type_key; /* copied */
  /* *out is a new reference, or stays null when the module has no such function. */
  int32_t (*get_function)(void* context, const char* name, tw_function** out);
  /* The bytes from which the function runtime.module.loadbinary_<type_key> makes the module again, as TW_BYTES. May be
   * null: such a module cannot be exported. */
  int32_t (*save)(void* context, tw_value* out);
  void (*free_context)(void* context); /* may be null */
} tw_module_class;

TW_API int32_t tw_module_create(const tw_module_class* kind, void* context, tw_module** out);
/* Loads .so as tw_module_load does, other files with the function runtime.module.loadfile_<format>; `format` null or
 * empty: the file name's end. Errors: those of tw_module_load; 507 (no such loader). */
TW_API int32_t tw_module_load_file(const char* path, const char* format, tw_module** out);
/* With the function runtime.module.loadbinary_<type_key>. */
TW_API int32_t tw_module_load_binary(const char* type_key, const void* data, uint64_t size, tw_module** out);
TW_API tw_module* tw_module_retain(tw_module* module);
/* "library", "GraphExecutor", or what tw_module_create was given. Valid as long as the module. */
TW_API const char* tw_module_type_key(const tw_module* module);
/* A new reference, or null when there is no such function (which is no error). With `query_imports`, imported modules
 * are asked too, depth first. A library has: the model's name and "default" (device) -> executor module, "debug_create"
 * (name, device), "get_graph_json", "get_graph_params", "remove_params", "list_module_names". docs/runtime.md lists an
 * executor's functions. */
TW_API int32_t tw_module_get_function(tw_module* module, const char* name, int32_t query_imports, tw_function** out);
/* Error: 101 (the import would make a circle). */
TW_API int32_t tw_module_import(tw_module* module, tw_module* imported);
TW_API uint64_t tw_module_num_imports(const tw_module* module);
/* A new reference. */
TW_API int32_t tw_module_get_import(const tw_module* module, uint64_t index, tw_module** out);
TW_API int32_t tw_module_save(const tw_module* module, tw_value* out);

/* A plug-in (`tilewright run --plugin lib.so`) is a shared library that may have this function: it registers what
 * models need, and returns 0 or what tw_set_last_error returned. */
TW_API int32_t tw_runtime_plugin(void);

/* ---- the system library: what is linked into the program itself
 * -------------------------------------------------------------- */

/* Gives a function of the program a name: `address` is a tw_packed_call, which is called with a null context; null
 * forgets the name. May be called before main. Models compiled for a system library name themselves
 * (`tilewright compile --system-lib -o net.o`). */
TW_API int32_t tw_system_lib_register(const char* name, const void* address);
/* A new reference to the module of type "system_lib". Its imports are the models, each a library; a model's name makes
 * its executor, as "default" does where there is only one; other names are functions that were registered. */
TW_API int32_t tw_system_lib(tw_module** out);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_C_API_H_ */
