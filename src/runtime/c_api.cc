// SPDX-License-Identifier: Apache-2.0
// The C interface to the runtime: no exception leaves it; every error becomes a number and a message.
#include "tilewright/c_api.h"

#include <new>

#include "base/format.h"
#include "base/version.h"
#include "runtime/c_support.h"
#include "runtime/dltensor.h"
#include "runtime/executor.h"

using namespace tilewright;
using namespace tilewright::runtime;

struct tw_executor {
  std::unique_ptr<Executor> executor;
};
struct tw_profile {
  std::unique_ptr<Profile> profile;
  std::string text;
};

namespace {

Status tensor_info(const std::vector<plan::TensorInfo>& tensors, const std::vector<std::string>& dtypes, uint64_t index,
                   const char* kind, tw_tensor_info* out) {
  TW_TRY_STATUS(check_index(tensors, index, kind));
  const plan::TensorInfo& t = tensors[index];
  return deliver({0, t.name.c_str(), dtypes[index].c_str(), to_dlpack(t.dtype), static_cast<int32_t>(t.shape.size()),
                  t.shape.data(), byte_size(t)},
                 out);
}

// The library behind a handle. Error: InvalidArgument for another kind of module.
Result<const LibraryModule*> library_of(const tw_module* module) {
  TW_REQUIRE(module);
  if (auto* library = dynamic_cast<const LibraryModule*>(module->module.get())) return library;
  return Diagnostic(ErrorCode::kInvalidArgument,
                    format("a compiled model was expected, not a module of type '{}'", module->module->type_key()));
}

Result<const plan::Plan*> variant_at(const LibraryModule* library, uint64_t variant) {
  const plan::Plan& plan = library->artifact()->plan();
  if (variant > plan.variants.size()) return Diagnostic(ErrorCode::kInvalidArgument, "there is no such variant");
  return &plan::variant_of(plan, variant);
}

int64_t index_of(const std::vector<plan::TensorInfo>& tensors, const char* name) {
  for (size_t i = 0; name && i < tensors.size(); ++i)
    if (tensors[i].name == name) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace

extern "C" {

const char* tw_last_error_message(void) { return last_error_text(); }

int32_t tw_set_last_error(int32_t code, const char* message, const char* where, const char* hint) {
  return fail({error_code(code), message ? message : "a function failed", where ? where : "", hint ? hint : ""});
}

int32_t tw_last_error(tw_error_info* out) {
  return guarded([&] { return last_error_parts(out); });
}

const char* tw_version(void) { return version(); }
uint32_t tw_c_api_version(void) { return TW_C_API_VERSION; }

int32_t tw_module_load(const char* path, const tw_module_options* options, tw_module** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(path);
    TW_REQUIRE(out);
    *out = nullptr;
    auto given = TW_TRY(options_of(options));
    auto module = TW_TRY(LibraryModule::load(path, {given.verify_params != 0, given.weights ? given.weights : "", {}}));
    *out = new tw_module{1, std::move(module)};
    return Ok{};
  });
}

int32_t tw_module_get_info(const tw_module* module, tw_module_info* out) {
  return guarded([&]() -> Status {
    const plan::Plan& p = TW_TRY(library_of(module))->artifact()->plan();
    double flops = 0;
    for (const auto& step : p.steps) flops += step.flops;
    return deliver(
        {0, p.model_name.c_str(), p.compiler_version.c_str(), p.target.c_str(), p.inputs.size(), p.outputs.size(),
         p.steps.size(), p.params.size(), p.metadata.size(), plan::weight_bytes(p), p.arena_bytes, flops},
        out);
  });
}

int32_t tw_module_get_input_info(const tw_module* module, uint64_t index, tw_tensor_info* out) {
  return guarded([&]() -> Status {
    const LibraryModule* library = TW_TRY(library_of(module));
    return tensor_info(library->artifact()->plan().inputs, library->input_dtypes(), index, "input", out);
  });
}

int32_t tw_module_get_output_info(const tw_module* module, uint64_t index, tw_tensor_info* out) {
  return guarded([&]() -> Status {
    const LibraryModule* library = TW_TRY(library_of(module));
    return tensor_info(library->artifact()->plan().outputs, library->output_dtypes(), index, "output", out);
  });
}

uint64_t tw_module_num_variants(const tw_module* module) {
  auto library = library_of(module);
  return library.ok() ? 1 + (*library)->artifact()->plan().variants.size() : 0;
}

int32_t tw_module_get_variant_input_info(const tw_module* module, uint64_t variant, uint64_t index,
                                         tw_tensor_info* out) {
  return guarded([&]() -> Status {
    const LibraryModule* library = TW_TRY(library_of(module));
    return tensor_info(TW_TRY(variant_at(library, variant))->inputs, library->input_dtypes(), index, "input", out);
  });
}

int32_t tw_module_get_variant_output_info(const tw_module* module, uint64_t variant, uint64_t index,
                                          tw_tensor_info* out) {
  return guarded([&]() -> Status {
    const LibraryModule* library = TW_TRY(library_of(module));
    return tensor_info(TW_TRY(variant_at(library, variant))->outputs, library->output_dtypes(), index, "output", out);
  });
}

int64_t tw_module_get_input_index(const tw_module* module, const char* name) {
  auto library = library_of(module);
  return library.ok() ? index_of((*library)->artifact()->plan().inputs, name) : -1;
}

int64_t tw_module_get_output_index(const tw_module* module, const char* name) {
  auto library = library_of(module);
  return library.ok() ? index_of((*library)->artifact()->plan().outputs, name) : -1;
}

int32_t tw_module_get_metadata(const tw_module* module, const char* key, const char** value) {
  return guarded([&]() -> Status {
    const LibraryModule* library = TW_TRY(library_of(module));
    TW_REQUIRE(key);
    TW_REQUIRE(value);
    const auto& metadata = library->artifact()->plan().metadata;
    auto found = metadata.find(key);
    *value = found == metadata.end() ? nullptr : found->second.c_str();
    return Ok{};
  });
}

int32_t tw_module_get_metadata_at(const tw_module* module, uint64_t index, const char** key, const char** value) {
  return guarded([&]() -> Status {
    const LibraryModule* library = TW_TRY(library_of(module));
    TW_REQUIRE(key);
    TW_REQUIRE(value);
    const auto& metadata = library->artifact()->plan().metadata;
    if (index >= metadata.size()) return Diagnostic(ErrorCode::kInvalidArgument, "there is no such metadata entry");
    auto entry = std::next(metadata.begin(), static_cast<std::ptrdiff_t>(index));
    *key = entry->first.c_str();
    *value = entry->second.c_str();
    return Ok{};
  });
}

int32_t tw_executor_create(tw_module* module, const tw_executor_options* options, tw_executor** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(out);
    *out = nullptr;
    const LibraryModule* library = TW_TRY(library_of(module));
    ExecutorOptions chosen;
    if (options) {
      tw_executor_options given{0, 0, -1};
      if (options->size < sizeof(size_t)) return null_argument("options->size");
      std::memcpy(&given, options, std::min(options->size, sizeof given));
      chosen.threads = given.num_threads, chosen.spin_us = given.spin_us;
    }
    chosen.externals = TW_TRY(library->externals());
    auto executor = TW_TRY(Executor::create(library->artifact(), chosen));
    *out = new tw_executor{std::move(executor)};
    return Ok{};
  });
}

void tw_executor_free(tw_executor* executor) { delete executor; }

int32_t tw_executor_num_threads(const tw_executor* executor) { return executor ? executor->executor->threads() : 0; }

int32_t tw_executor_set_input(tw_executor* executor, const char* name, const DLTensor* tensor) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    TW_REQUIRE(name);
    return executor->executor->set_input(TW_TRY(find_tensor(executor->executor->plan().inputs, name, "input")), tensor);
  });
}

int32_t tw_executor_set_input_at(tw_executor* executor, uint64_t index, const DLTensor* tensor) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    return executor->executor->set_input(index, tensor);
  });
}

int32_t tw_executor_select_variant(tw_executor* executor, uint64_t variant) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    return executor->executor->select_variant(variant);
  });
}

int32_t tw_executor_bind_input(tw_executor* executor, const char* name, const DLTensor* tensor) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    TW_REQUIRE(name);
    return executor->executor->bind_input(TW_TRY(find_tensor(executor->executor->plan().inputs, name, "input")),
                                          tensor);
  });
}

int32_t tw_executor_bind_input_at(tw_executor* executor, uint64_t index, const DLTensor* tensor) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    return executor->executor->bind_input(index, tensor);
  });
}

int32_t tw_executor_bind_output_at(tw_executor* executor, uint64_t index, const DLTensor* tensor) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    return executor->executor->bind_output(index, tensor);
  });
}

int32_t tw_executor_run(tw_executor* executor) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    return executor->executor->run();
  });
}

int32_t tw_executor_get_input(tw_executor* executor, uint64_t index, DLTensor* out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    TW_REQUIRE(out);
    *out = TW_TRY(executor->executor->input(index));
    return Ok{};
  });
}

int32_t tw_executor_get_output(tw_executor* executor, uint64_t index, DLTensor* out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    TW_REQUIRE(out);
    *out = TW_TRY(executor->executor->output(index));
    return Ok{};
  });
}

int32_t tw_executor_copy_output(tw_executor* executor, uint64_t index, const DLTensor* destination) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    return executor->executor->copy_output(index, destination);
  });
}

int32_t tw_executor_load_params(tw_executor* executor, const void* data, uint64_t bytes) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    TW_REQUIRE(data);
    return executor->executor->load_params({static_cast<const std::byte*>(data), bytes});
  });
}

int32_t tw_executor_share_params(tw_executor* executor, const tw_executor* other, const void* data, uint64_t bytes) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    TW_REQUIRE(other);
    TW_REQUIRE(data);
    return executor->executor->share_params(*other->executor, {static_cast<const std::byte*>(data), bytes});
  });
}

int32_t tw_executor_profile(tw_executor* executor, uint64_t repeats, tw_profile** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(executor);
    TW_REQUIRE(out);
    *out = nullptr;
    auto profile = TW_TRY(executor->executor->profile(repeats));
    *out = new tw_profile{std::move(profile), {}};
    return Ok{};
  });
}

void tw_profile_free(tw_profile* profile) { delete profile; }

uint64_t tw_profile_num_steps(const tw_profile* profile) { return profile ? profile->profile->steps().size() : 0; }

int32_t tw_profile_get_step(const tw_profile* profile, uint64_t index, tw_step_profile* out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(profile);
    if (index >= profile->profile->steps().size())
      return Diagnostic(ErrorCode::kInvalidArgument, "there is no such step");
    const StepProfile& s = profile->profile->steps()[index];
    return deliver(
        {0, s.name.c_str(), s.source.c_str(), s.kernel.c_str(), s.shapes.c_str(), s.min_us, s.median_us, s.mean_us,
         s.busy_us, s.flops, s.bytes, s.predicted_us, s.parallel, s.implementation.c_str(), s.weight_bytes},
        out);
  });
}

int32_t tw_profile_text(tw_profile* profile, const char* form, const char** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(profile);
    TW_REQUIRE(form);
    TW_REQUIRE(out);
    profile->text = TW_TRY(profile->profile->text(form));
    *out = profile->text.c_str();
    return Ok{};
  });
}

}  // extern "C"
