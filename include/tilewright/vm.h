/* SPDX-License-Identifier: Apache-2.0 */
/* VM programs from C and C++: models with free sizes (`batch`, `length`) or control flow, which `tilewright compile`
 * and tilewright::compile write as a VM program. Link tilewright::vm (libtilewright_vm.so): kernels are compiled for
 * the sizes that a run meets, and kept, where the compiler's library is installed beside it or on the system's search
 * path; elsewhere such sizes are interpreted, slowly. tilewright::compiler has all of this, too.
 *
 *   tilewright::VirtualMachine vm("minilm.so");
 *   vm.set_input("input_ids", ids, {3, 21});      // std::vector<int64_t> ids, or a pointer
 *   vm.run();
 *   auto scores = vm.output<float>(0);            // a view; vm.shape(0) says its sizes
 */
#ifndef TILEWRIGHT_VM_H_
#define TILEWRIGHT_VM_H_
#include "tilewright/c_api.h"
#include "tilewright/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program, its machine and the kernels it has compiled. Serves one thread at a time; make one for each. */
typedef struct tw_vm tw_vm;

typedef struct tw_vm_options {
  size_t size;
  int32_t num_threads;    /* 0 (default): one per physical core that this process may use */
  int32_t always_compile; /* 0 (default): a region of little work is interpreted the first two times that it meets the
                             same sizes; 1: it is compiled at once */
  uint64_t keep;          /* compiled regions that are kept; the one used longest ago goes first; 0 (default): 64 */
} tw_vm_options;

/* What an input or output holds. */
typedef enum tw_vm_kind {
  TW_VM_TENSOR = 0,
  TW_VM_SEQUENCE = 1, /* of tensors */
  TW_VM_NONE = 2      /* an optional value that is not there */
} tw_vm_kind;

/* Every call returns 0 or the number of an error, as those of tilewright/c_api.h do, whose text is
 * tw_compiler_last_error_message(). What a call points to lives until the next run or until the machine is freed. */

/* Loads a VM program; `options` may be null. Errors: 102 (no such file), 203 (a library of fixed sizes, which
 * tilewright/runtime.h runs), 501 (damaged), 502 (version), 503 (CPU features). */
TW_COMPILER_API int32_t tw_vm_load(const char* path, const tw_vm_options* options, tw_vm** out);
/* Null is allowed. */
TW_COMPILER_API void tw_vm_free(tw_vm* vm);
TW_COMPILER_API uint64_t tw_vm_num_inputs(const tw_vm* vm);
TW_COMPILER_API uint64_t tw_vm_num_outputs(const tw_vm* vm);
/* A free size is -1, and so is the rank (ndim) of what may have any. Errors: 504. */
TW_COMPILER_API int32_t tw_vm_get_input_info(const tw_vm* vm, uint64_t index, tw_tensor_info* out);
TW_COMPILER_API int32_t tw_vm_get_output_name(const tw_vm* vm, uint64_t index, const char** name);

/* Copies a tensor (any strides) into an input, where it stays for later runs. Errors: 504 (name), 505 (shape), 506
 * (dtype). */
TW_COMPILER_API int32_t tw_vm_set_input(tw_vm* vm, const char* name, const DLTensor* tensor);
/* The same for texts, sequences (`count` compact tensors) and absent optionals (`items` null). */
TW_COMPILER_API int32_t tw_vm_set_value(tw_vm* vm, const char* name, tw_vm_kind kind, const tw_text_tensor* items,
                                        uint64_t count);
/* Errors: 101 (an input was never set), 603 (interrupted), and those of compiling for new sizes. */
TW_COMPILER_API int32_t tw_vm_run(tw_vm* vm);
/* From another thread or a signal handler: the run under way ends with error 603 at its next jump back or call. */
TW_COMPILER_API void tw_vm_interrupt(tw_vm* vm);
/* What an output is after a run; `count` may be null and is the number of a sequence's tensors, 1 for a tensor. */
TW_COMPILER_API int32_t tw_vm_get_output_kind(const tw_vm* vm, uint64_t index, tw_vm_kind* kind, uint64_t* count);
/* A view of a tensor of numbers. Errors: 101 (no run yet), 504 (index), 506 (texts), 301 (not a tensor). */
TW_COMPILER_API int32_t tw_vm_get_output(const tw_vm* vm, uint64_t index, DLTensor* out);
/* A tensor of a sequence, or the tensor itself as item 0, texts included. */
TW_COMPILER_API int32_t tw_vm_get_output_item(const tw_vm* vm, uint64_t index, uint64_t item, tw_text_tensor* out);

/* Runs once more and says where the time went: form "table", "json" or "trace" (Chrome's trace event format). */
TW_COMPILER_API int32_t tw_vm_profile(tw_vm* vm, const char* form, const char** text);
/* Regions compiled since it was loaded. */
TW_COMPILER_API uint64_t tw_vm_num_compiled(const tw_vm* vm);
/* Regions of sizes that only a run supplies, where no compiler is found: they are interpreted. */
TW_COMPILER_API uint64_t tw_vm_num_interpreted(const tw_vm* vm);

#ifdef __cplusplus
}

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/runtime.h"

namespace tilewright {

struct VmOptions {
  int threads = 0;
  bool always_compile = false;
  uint64_t keep = 64;
};

// Every failure throws tilewright::Error.
class VirtualMachine {
 public:
  explicit VirtualMachine(const std::string& path, const VmOptions& options = VmOptions()) {
    const tw_vm_options o{sizeof o, options.threads, options.always_compile ? 1 : 0, options.keep};
    tw_vm* raw = nullptr;
    check(tw_vm_load(path.c_str(), &o, &raw));
    vm_.reset(raw);
    for (uint64_t i = 0; i < tw_vm_num_inputs(raw); ++i) {
      tw_tensor_info t{};
      t.size = sizeof t;
      check(tw_vm_get_input_info(raw, i, &t));
      std::vector<int64_t> shape;
      if (t.ndim > 0) shape.assign(t.shape, t.shape + t.ndim);
      inputs_.push_back({t.name, t.dtype_name, std::move(shape), t.bytes, t.dtype});
    }
    for (uint64_t i = 0; i < tw_vm_num_outputs(raw); ++i) {
      const char* name = nullptr;
      check(tw_vm_get_output_name(raw, i, &name));
      outputs_.push_back(name);
    }
  }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }  // a free size is -1
  const std::vector<std::string>& outputs() const { return outputs_; }

  // Copies, which stay for later runs.
  void set_input(const std::string& name, const DLTensor& tensor) {
    check(tw_vm_set_input(vm_.get(), name.c_str(), &tensor));
  }
  template <class T>
  void set_input(const std::string& name, const T* data, std::vector<int64_t> shape) {
    set_input(name, Executor::view(data, shape));
  }
  template <class T>
  void set_input(const std::string& name, const std::vector<T>& data, std::vector<int64_t> shape) {
    detail::check_count(name, data.size(), shape);
    set_input(name, data.data(), std::move(shape));
  }
  void set_input(const std::string& name, const std::vector<std::string>& texts, std::vector<int64_t> shape) {
    detail::check_count(name, texts.size(), shape);
    std::vector<const char*> pointers{""};
    std::vector<uint64_t> lengths{0};
    if (!texts.empty()) pointers.clear(), lengths.clear();
    for (const std::string& text : texts) pointers.push_back(text.data()), lengths.push_back(text.size());
    const tw_text_tensor value{
        {nullptr, {kDLCPU, 0}, static_cast<int32_t>(shape.size()), {kDLOpaqueHandle, 0, 0}, shape.data(), nullptr, 0},
        pointers.data(),
        lengths.data()};
    check(tw_vm_set_value(vm_.get(), name.c_str(), TW_VM_TENSOR, &value, 1));
  }
  void set_sequence(const std::string& name, const std::vector<DLTensor>& tensors) {
    std::vector<tw_text_tensor> items;
    for (const DLTensor& t : tensors) items.push_back({t, nullptr, nullptr});
    check(tw_vm_set_value(vm_.get(), name.c_str(), TW_VM_SEQUENCE, items.data(), items.size()));
  }

  void run() { check(tw_vm_run(vm_.get())); }
  // From another thread or a signal handler.
  void interrupt() { tw_vm_interrupt(vm_.get()); }

  tw_vm_kind kind(uint64_t index) const { return kind_and_count(index).first; }
  uint64_t items(uint64_t index) const { return kind_and_count(index).second; }
  // Views, valid until the next run. `item` is the place in a sequence.
  DLTensor output(uint64_t index, uint64_t item = 0) const {
    const tw_text_tensor value = item_of(index, item);
    if (value.texts) detail::fail(506, "DtypeMismatch", outputs_.at(index) + " holds texts", "read texts(index)");
    return value.tensor;
  }
  template <class T>
  Span<const T> output(uint64_t index, uint64_t item = 0) const {
    return detail::typed<const T>(output(index, item));
  }
  std::vector<std::string> texts(uint64_t index, uint64_t item = 0) const {
    const tw_text_tensor value = item_of(index, item);
    if (!value.texts) detail::fail(506, "DtypeMismatch", outputs_.at(index) + " holds numbers", "read output(index)");
    std::size_t count = 1;
    for (int32_t d = 0; d < value.tensor.ndim; ++d) count *= static_cast<std::size_t>(value.tensor.shape[d]);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(value.texts[i], value.text_lengths[i]);
    return out;
  }
  std::vector<int64_t> shape(uint64_t index, uint64_t item = 0) const {
    const DLTensor tensor = item_of(index, item).tensor;
    return {tensor.shape, tensor.shape + tensor.ndim};
  }

  // "table", "json" or "trace"
  std::string profile(const std::string& form = "table") {
    const char* text = nullptr;
    check(tw_vm_profile(vm_.get(), form.c_str(), &text));
    return text;
  }
  uint64_t compiled() const { return tw_vm_num_compiled(vm_.get()); }
  uint64_t interpreted() const { return tw_vm_num_interpreted(vm_.get()); }

 private:
  struct Free {
    void operator()(tw_vm* vm) const { tw_vm_free(vm); }
  };
  static void check(int32_t status) {
    if (status == 0) return;
    tw_error_info info{};
    info.size = sizeof info;
    tw_compiler_last_error(&info);
    throw Error(status, info.name, info.hint, tw_compiler_last_error_message());
  }
  tw_text_tensor item_of(uint64_t index, uint64_t item) const {
    tw_text_tensor value{};
    check(tw_vm_get_output_item(vm_.get(), index, item, &value));
    return value;
  }
  std::pair<tw_vm_kind, uint64_t> kind_and_count(uint64_t index) const {
    std::pair<tw_vm_kind, uint64_t> out{};
    check(tw_vm_get_output_kind(vm_.get(), index, &out.first, &out.second));
    return out;
  }
  std::unique_ptr<tw_vm, Free> vm_;
  std::vector<TensorInfo> inputs_;
  std::vector<std::string> outputs_;
};

}  // namespace tilewright
#endif  // __cplusplus
#endif  // TILEWRIGHT_VM_H_
