// SPDX-License-Identifier: Apache-2.0
// Tilewright's runtime for C++17 and later, over the C interface in c_api.h (link tilewright::runtime).
//
//   tilewright::Model model("resnet18.so");
//   tilewright::Executor executor(model);                    // memory and threads of its own; one per thread of yours
//   executor.set_input("input", pixels, {1, 3, 224, 224});   // std::vector<float> pixels, or a pointer
//   executor.run();
//   auto scores = executor.output<float>(0);                 // a view: scores[i], scores.size(), begin(), end()
//
// Every failure throws tilewright::Error, whose code() is the number in docs/errors/.
#ifndef TILEWRIGHT_RUNTIME_H_
#define TILEWRIGHT_RUNTIME_H_
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/c_api.h"

namespace tilewright {

class Error : public std::runtime_error {
 public:
  Error(int code, std::string name, std::string hint, const std::string& what)
      : std::runtime_error(what), code_(code), name_(std::move(name)), hint_(std::move(hint)) {}
  int code() const noexcept { return code_; }                 // 505
  const std::string& name() const noexcept { return name_; }  // "ShapeMismatch"
  const std::string& hint() const noexcept { return hint_; }

 private:
  int code_;
  std::string name_, hint_;
};

namespace detail {
[[noreturn]] inline void fail(int code, const std::string& name, const std::string& message, const std::string& hint) {
  throw Error(code, name, hint, "error[E" + std::to_string(code) + " " + name + "]: " + message + "\n  hint: " + hint);
}
inline void check(int32_t status) {
  if (status == 0) return;
  tw_error_info info{};
  info.size = sizeof info;
  tw_last_error(&info);
  throw Error(status, info.name, info.hint, tw_last_error_message());
}
// Error 505 unless a shape has that many elements.
inline void check_count(const std::string& name, std::size_t given, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  if (count != static_cast<int64_t>(given))
    fail(
        505, "ShapeMismatch",
        "input '" + name + "': " + std::to_string(given) + " values were given for a shape of " + std::to_string(count),
        "give as many values as the shape has");
}
template <class T>
struct DtypeOf;
#define TW_DTYPE_OF(type, code, bits)                 \
  template <>                                         \
  struct DtypeOf<type> {                              \
    static constexpr DLDataType value{code, bits, 1}; \
  };
TW_DTYPE_OF(float, kDLFloat, 32)
TW_DTYPE_OF(double, kDLFloat, 64)
TW_DTYPE_OF(int8_t, kDLInt, 8)
TW_DTYPE_OF(int16_t, kDLInt, 16)
TW_DTYPE_OF(int32_t, kDLInt, 32)
TW_DTYPE_OF(int64_t, kDLInt, 64)
TW_DTYPE_OF(uint8_t, kDLUInt, 8)
TW_DTYPE_OF(uint16_t, kDLUInt, 16)
TW_DTYPE_OF(uint32_t, kDLUInt, 32)
TW_DTYPE_OF(uint64_t, kDLUInt, 64)
TW_DTYPE_OF(bool, kDLBool, 8)
#undef TW_DTYPE_OF
}  // namespace detail

// A typed look at memory that someone else owns.
template <class T>
class Span {
 public:
  Span(T* data, std::size_t size) : data_(data), size_(size) {}
  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }

 private:
  T* data_;
  std::size_t size_;
};

namespace detail {
template <class T>
Span<T> typed(const DLTensor& t) {
  using Element = std::remove_const_t<T>;
  DLDataType want = DtypeOf<Element>::value;
  if (t.dtype.code != want.code || t.dtype.bits != want.bits)
    fail(506, "DtypeMismatch", "the tensor has another element type than was asked for",
         "the dtype of input(index) or output(index) says which it has");
  std::size_t count = 1;
  for (int32_t d = 0; d < t.ndim; ++d) count *= static_cast<std::size_t>(t.shape[d]);
  return {static_cast<T*>(t.data), count};
}
}  // namespace detail

struct TensorInfo {
  std::string name, dtype;  // "input", "float32"
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  DLDataType dl_dtype{};
};

struct ModelInfo {
  std::string name, compiler_version, target;
  uint64_t steps = 0, params_bytes = 0, arena_bytes = 0;
  double flops = 0;
};

// A loaded artifact. Copies share it; threads may share it.
class Model {
 public:
  // `weights`: where the model's weights file is, when it was compiled with one and that was moved.
  explicit Model(const std::string& path, bool verify_params = false, const std::string& weights = {}) {
    tw_module_options options{sizeof options, verify_params ? 1 : 0, weights.empty() ? nullptr : weights.c_str()};
    tw_module* raw = nullptr;
    detail::check(tw_module_load(path.c_str(), &options, &raw));
    take(raw);
  }
  // A library that is loaded already, which the model shares: of tilewright::Module, say, or of tw_system_lib.
  static Model of(tw_module* library) {
    Model model;
    model.take(tw_module_retain(library));
    return model;
  }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  // A model compiled for several input shapes: the tensors of each variant. inputs() and outputs() are the first's.
  std::size_t num_variants() const { return static_cast<std::size_t>(tw_module_num_variants(module_.get())); }
  std::vector<TensorInfo> variant_inputs(std::size_t variant) const {
    return variant_tensors(variant, inputs_.size(), tw_module_get_variant_input_info);
  }
  std::vector<TensorInfo> variant_outputs(std::size_t variant) const {
    return variant_tensors(variant, outputs_.size(), tw_module_get_variant_output_info);
  }
  // -1 when there is no such name.
  int64_t input_index(const std::string& name) const { return tw_module_get_input_index(module_.get(), name.c_str()); }
  int64_t output_index(const std::string& name) const {
    return tw_module_get_output_index(module_.get(), name.c_str());
  }
  ModelInfo info() const {
    tw_module_info i = raw_info();
    return {i.name, i.compiler_version, i.target, i.num_steps, i.params_bytes, i.arena_bytes, i.flops};
  }
  // The model's own metadata (labels, character lists); `otherwise` when the key is absent.
  std::string metadata(const std::string& key, std::string otherwise = {}) const {
    const char* value = nullptr;
    detail::check(tw_module_get_metadata(module_.get(), key.c_str(), &value));
    return value ? std::string(value) : std::move(otherwise);
  }
  tw_module* get() const { return module_.get(); }

 private:
  Model() = default;
  void take(tw_module* module) {
    module_.reset(module, tw_module_free);
    tw_module_info info = raw_info();
    for (uint64_t i = 0; i < info.num_inputs; ++i) inputs_.push_back(tensor_info(tw_module_get_input_info, i));
    for (uint64_t i = 0; i < info.num_outputs; ++i) outputs_.push_back(tensor_info(tw_module_get_output_info, i));
  }
  tw_module_info raw_info() const {
    tw_module_info info{};
    info.size = sizeof info;
    detail::check(tw_module_get_info(module_.get(), &info));
    return info;
  }
  TensorInfo tensor_info(int32_t (*get)(const tw_module*, uint64_t, tw_tensor_info*), uint64_t index) const {
    tw_tensor_info t{};
    t.size = sizeof t;
    detail::check(get(module_.get(), index, &t));
    return {t.name, t.dtype_name, std::vector<int64_t>(t.shape, t.shape + t.ndim), t.bytes, t.dtype};
  }
  std::vector<TensorInfo> variant_tensors(std::size_t variant, std::size_t count,
                                          int32_t (*get)(const tw_module*, uint64_t, uint64_t, tw_tensor_info*)) const {
    std::vector<TensorInfo> out;
    for (std::size_t i = 0; i < count; ++i) {
      tw_tensor_info t{};
      t.size = sizeof t;
      detail::check(get(module_.get(), variant, i, &t));
      out.push_back({t.name, t.dtype_name, std::vector<int64_t>(t.shape, t.shape + t.ndim), t.bytes, t.dtype});
    }
    return out;
  }
  std::shared_ptr<tw_module> module_;
  std::vector<TensorInfo> inputs_, outputs_;
};

struct StepProfile {
  std::string name, source, kernel, shapes;
  double min_us = 0, median_us = 0, mean_us = 0, busy_us = 0, flops = 0, bytes = 0, predicted_us = 0;
  bool parallel = false;
  std::string implementation;  // which kernel the compiler chose
  double weight_bytes = 0;     // of `bytes`, those of constants
};

struct Profile {
  std::vector<StepProfile> steps;
  std::string table, json, trace;  // trace: Chrome's trace event format
};

// Runs a model: working memory and threads. Serves one thread at a time.
class Executor {
 public:
  // threads 0: one per physical core this process may use. spin_us -1: idle threads spin 100 us before they sleep.
  explicit Executor(const Model& model, int threads = 0, int spin_us = -1) : model_(model) {
    tw_executor_options options{sizeof options, threads, spin_us};
    tw_executor* raw = nullptr;
    detail::check(tw_executor_create(model.get(), &options, &raw));
    executor_.reset(raw);
  }
  const Model& model() const { return model_; }
  int threads() const { return tw_executor_num_threads(executor_.get()); }

  // Copies.
  void set_input(const std::string& name, const DLTensor& tensor) {
    detail::check(tw_executor_set_input(executor_.get(), name.c_str(), &tensor));
  }
  template <class T>
  void set_input(const std::string& name, const T* data, std::vector<int64_t> shape) {
    set_input(name, view(data, shape));
  }
  template <class T>
  void set_input(const std::string& name, const std::vector<T>& data, std::vector<int64_t> shape) {
    detail::check_count(name, data.size(), shape);
    set_input(name, view(data.data(), shape));
  }
  // Uses the caller's memory until it is bound or set anew.
  void bind_input(const std::string& name, const DLTensor& tensor) {
    detail::check(tw_executor_bind_input(executor_.get(), name.c_str(), &tensor));
  }
  void bind_output(uint64_t index, const DLTensor& tensor) {
    detail::check(tw_executor_bind_output_at(executor_.get(), index, &tensor));
  }
  // Takes a variant of the model into use before its inputs are filled in place; set_input does it by the tensor's
  // shape.
  void select_variant(std::size_t variant) { detail::check(tw_executor_select_variant(executor_.get(), variant)); }
  void run() { detail::check(tw_executor_run(executor_.get())); }

  // Views of the executor's memory. Writing to an input's view sets the input.
  DLTensor input(uint64_t index) const {
    DLTensor tensor;
    detail::check(tw_executor_get_input(executor_.get(), index, &tensor));
    return tensor;
  }
  DLTensor output(uint64_t index) const {
    DLTensor tensor;
    detail::check(tw_executor_get_output(executor_.get(), index, &tensor));
    return tensor;
  }
  template <class T>
  Span<T> input(uint64_t index) const {
    return detail::typed<T>(input(index));
  }
  template <class T>
  Span<const T> output(uint64_t index) const {
    return detail::typed<const T>(output(index));
  }
  void load_params(const void* data, uint64_t bytes) {
    detail::check(tw_executor_load_params(executor_.get(), data, bytes));
  }

  Profile profile(uint64_t repeats = 20) {
    tw_profile* raw = nullptr;
    detail::check(tw_executor_profile(executor_.get(), repeats, &raw));
    std::unique_ptr<tw_profile, Free> owner(raw);
    Profile out;
    for (uint64_t i = 0; i < tw_profile_num_steps(raw); ++i) {
      tw_step_profile s{};
      s.size = sizeof s;
      detail::check(tw_profile_get_step(raw, i, &s));
      out.steps.push_back({s.name, s.source, s.kernel, s.shapes, s.min_us, s.median_us, s.mean_us, s.busy_us, s.flops,
                           s.bytes, s.predicted_us, s.parallel != 0, s.implementation, s.weight_bytes});
    }
    const char* text = nullptr;
    for (auto [form, to] :
         {std::pair("table", &out.table), std::pair("json", &out.json), std::pair("trace", &out.trace)}) {
      detail::check(tw_profile_text(raw, form, &text));
      *to = text;
    }
    return out;
  }

  // A DLTensor over compact memory; `shape` must outlive it.
  template <class T>
  static DLTensor view(const T* data, std::vector<int64_t>& shape) {
    return {const_cast<T*>(data),
            {kDLCPU, 0},
            static_cast<int32_t>(shape.size()),
            detail::DtypeOf<T>::value,
            shape.data(),
            nullptr,
            0};
  }

 private:
  struct Free {
    void operator()(tw_executor* e) const { tw_executor_free(e); }
    void operator()(tw_profile* p) const { tw_profile_free(p); }
  };
  Model model_;
  std::unique_ptr<tw_executor, Free> executor_;
};

}  // namespace tilewright
#endif  // TILEWRIGHT_RUNTIME_H_
