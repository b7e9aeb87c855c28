// SPDX-License-Identifier: Apache-2.0
#include "driver/external_code/classic_headers.h"

#include <algorithm>
#include <string>

#include "driver/crt_files.h"

namespace tilewright::driver {
namespace {

// What code may ask of the runtime. The runtime fills in the slot when it loads the library; without a
// runtime messages go nowhere.
constexpr const char kConvention[] = R"header(
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#ifndef TVM_DLL
#define TVM_DLL __attribute__((visibility("default")))
#endif
#ifndef TVM_WEAK
#define TVM_WEAK __attribute__((weak))
#endif
#ifdef __cplusplus
extern "C" {
#endif
TVM_WEAK TVM_DLL void (*__TVMAPISetLastError)(const char* message);
static inline void TVMAPISetLastError(const char* message) {
  if (__TVMAPISetLastError) __TVMAPISetLastError(message);
}
/* Memory for intermediate values, aligned for vectors. */
static inline void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int code, int bits) {
  (void)device_type, (void)device_id, (void)code, (void)bits;
  char* whole = (char*)malloc((size_t)bytes + 64 + sizeof(void*));
  if (!whole) return NULL;
  char* start = (char*)(((uintptr_t)whole + sizeof(void*) + 63) & ~(uintptr_t)63);
  ((void**)start)[-1] = whole;
  return start;
}
static inline int TVMBackendFreeWorkspace(int device_type, int device_id, void* start) {
  (void)device_type, (void)device_id;
  if (start) free(((void**)start)[-1]);
  return 0;
}
/* One task, on the calling thread. */
typedef struct { void* sync_handle; int32_t num_task; } TVMParallelGroupEnv;
typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv* env, void* data);
static inline int TVMBackendParallelLaunch(FTVMParallelLambda task, void* data, int num_task) {
  TVMParallelGroupEnv env = {NULL, 1};
  (void)num_task;
  return task(0, &env, data);
}
static inline int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* env) {
  (void)task_id, (void)env;
  return 0;
}
#ifdef __cplusplus
}
#endif
#endif
)header";

// Typed C++ functions in the packed convention, and the list of constants for __init_<function>.
constexpr const char kTyped[] = R"header(
#ifndef TVM_RUNTIME_PACKED_FUNC_H_
#define TVM_RUNTIME_PACKED_FUNC_H_
#ifdef __cplusplus
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
namespace tvm {
namespace runtime {
class NDArray {
 public:
  NDArray() = default;
  explicit NDArray(DLTensor* tensor) : tensor_(tensor) {}
  const DLTensor* operator->() const { return tensor_; }
  operator DLTensor*() const { return tensor_; }
 private:
  DLTensor* tensor_ = nullptr;  // kept by the runtime for as long as the library is loaded
};
template <class T>
class Array : public std::vector<T> {
 public:
  using std::vector<T>::vector;
};
namespace packed {
struct Arguments {
  TVMValue* values;
  int* codes;
  int count;
};
template <class T>
struct Take {
  static constexpr bool kAll = false;
  static T from(const Arguments& a, int i) {
    if (i >= a.count) throw std::invalid_argument("too few arguments");
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(a.codes[i] == kTVMArgInt ? static_cast<double>(a.values[i].v_int64) : a.values[i].v_float64);
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(a.values[i].v_int64);
    else if constexpr (std::is_same_v<T, std::string>)
      return a.values[i].v_str;
    else if constexpr (std::is_same_v<T, NDArray>)
      return NDArray(static_cast<DLTensor*>(a.values[i].v_handle));
    else
      return static_cast<T>(a.values[i].v_handle);
  }
};
template <>
struct Take<Array<NDArray>> {
  static constexpr bool kAll = true;
  static Array<NDArray> from(const Arguments& a, int i) {
    Array<NDArray> out;
    for (; i < a.count; ++i) out.push_back(NDArray(static_cast<DLTensor*>(a.values[i].v_handle)));
    return out;
  }
};
template <class T>
void give(T value, TVMValue* result, int* code) {
  if constexpr (std::is_floating_point_v<T>)
    result->v_float64 = value, *code = kTVMArgFloat;
  else if constexpr (std::is_integral_v<T>)
    result->v_int64 = static_cast<int64_t>(value), *code = kTVMArgInt;
  else
    result->v_handle = value, *code = kTVMOpaqueHandle;
}
template <class R, class... T, size_t... I>
int call(R (*function)(T...), const Arguments& a, TVMValue* result, int* code, std::index_sequence<I...>) {
  constexpr bool all = (Take<std::decay_t<T>>::kAll || ...);
  if (!all && a.count != static_cast<int>(sizeof...(T))) throw std::invalid_argument("the number of arguments is wrong");
  if constexpr (std::is_void_v<R>)
    function(Take<std::decay_t<T>>::from(a, static_cast<int>(I))...);
  else
    give(function(Take<std::decay_t<T>>::from(a, static_cast<int>(I))...), result, code);
  return 0;
}
template <class R, class... T>
int run(R (*function)(T...), TVMValue* values, int* codes, int count, TVMValue* result, int* code) {
  try {
    return call(function, Arguments{values, codes, count}, result, code, std::index_sequence_for<T...>());
  } catch (const std::exception& e) {
    TVMAPISetLastError(e.what());
    return -1;
  }
}
}  // namespace packed
}  // namespace runtime
}  // namespace tvm
#define TVM_DLL_EXPORT_TYPED_FUNC(name, function)                                                              \
  extern "C" TVM_DLL int name(TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code, \
                              void* resource);                                                                 \
  int name(TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code, void*) {         \
    return ::tvm::runtime::packed::run(function, args, type_codes, num_args, result, result_code);             \
  }
#endif
#endif
)header";

// A header of crt, without those it includes.
std::string crt_header(std::string_view path) {
  std::string out;
  for (const CrtFile& file : crt_files()) {
    if (file.path != path) continue;
    for (size_t at = 0; at < file.bytes.size();) {
      const size_t end = std::min(file.bytes.find('\n', at), file.bytes.size() - 1) + 1;
      const std::string_view line = file.bytes.substr(at, end - at);
      if (!line.starts_with("#include <dlpack/")) out += line;
      at = end;
    }
  }
  return out;
}

}  // namespace

const char* classic_header(std::string_view name) {
  static const std::string_view kC[] = {"tvm/runtime/c_runtime_api.h", "tvm/runtime/c_backend_api.h"};
  static const std::string_view kCpp[] = {"tvm/runtime/packed_func.h", "tvm/runtime/registry.h",
                                          "tvm/runtime/container/array.h", "tvm/runtime/container.h",
                                          "tvm/runtime/ndarray.h"};
  static const std::string tensors = crt_header("include/dlpack/dlpack.h");
  static const std::string c = tensors + crt_header("include/tvm/runtime/c_runtime_types.h") + kConvention;
  static const std::string cpp = c + kTyped;
  if (name == "dlpack/dlpack.h") return tensors.c_str();
  for (const std::string_view known : kC)
    if (name == known) return c.c_str();
  for (const std::string_view known : kCpp)
    if (name == known) return cpp.c_str();
  return nullptr;
}

}  // namespace tilewright::driver
