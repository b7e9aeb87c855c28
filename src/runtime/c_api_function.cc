// SPDX-License-Identifier: Apache-2.0
// The C interface of functions and modules.
#include <cstring>

#include "base/format.h"
#include "runtime/c_support.h"
#include "runtime/system_lib.h"

using namespace tilewright;
using namespace tilewright::runtime;

namespace {

// A module whose functions come from a user's callbacks.
class CallbackModule : public Module {
 public:
  CallbackModule(const tw_module_class& kind, void* context)
      : type_key_(kind.type_key), kind_(kind), context_(context) {}
  ~CallbackModule() override {
    if (kind_.free_context) kind_.free_context(context_);
  }
  const std::string& type_key() const override { return type_key_; }
  Result<FunctionRef> get_function(const std::string& name) override {
    tw_function* found = nullptr;
    clear_last_error();
    if (int32_t status = kind_.get_function(context_, name.c_str(), &found)) return take_last_error(status, type_key_);
    return FunctionRef(found);
  }
  Result<std::string> save() const override {
    if (!kind_.save) return Module::save();
    tw_value out{};
    out.kind = TW_NULL;
    clear_last_error();
    int32_t status = kind_.save(context_, &out);
    Value owned = Value::adopt(out);
    if (status != 0) return take_last_error(status, type_key_);
    if (out.kind != TW_BYTES)
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("saving a module of type '{}' gave {}, not bytes", type_key_, kind_name(out.kind)));
    return std::string(out.as.str, out.size);
  }

 private:
  std::string type_key_;
  tw_module_class kind_;
  void* context_;
};

Status deliver_module(std::shared_ptr<Module> module, tw_module** out) {
  *out = new tw_module{1, std::move(module)};
  return Ok{};
}

}  // namespace

extern "C" {

int32_t tw_value_set_str(tw_value* value, const char* data, uint64_t size) {
  return guarded([&]() -> Status {
    TW_REQUIRE(value);
    if (size != 0) TW_REQUIRE(data);
    *value = Value::string({data, size}).release();
    return Ok{};
  });
}

int32_t tw_value_set_bytes(tw_value* value, const void* data, uint64_t size) {
  int32_t status = tw_value_set_str(value, static_cast<const char*>(data), size);
  if (status == 0) value->kind = TW_BYTES;
  return status;
}

int32_t tw_value_set_array(tw_value* value, uint64_t size) {
  return guarded([&]() -> Status {
    TW_REQUIRE(value);
    if (size > (uint64_t{1} << 32)) return Diagnostic(ErrorCode::kLimitExceeded, "a list of values is too long");
    *value = Value::array(std::vector<Value>(size)).release();
    return Ok{};
  });
}

int32_t tw_function_create(tw_packed_call call, void* context, void (*free_context)(void*), tw_function** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(call);
    TW_REQUIRE(out);
    std::shared_ptr<void> owner(context, [free_context](void* c) {
      if (free_context) free_context(c);
    });
    *out = make_function("user function", [call, owner](const Arguments& args) -> Result<Value> {
             tw_value result{};
             result.kind = TW_NULL;
             clear_last_error();
             int32_t status =
                 call(owner.get(), args.size() ? &args[0] : nullptr, static_cast<int32_t>(args.size()), &result);
             Value owned = Value::adopt(result);
             if (status != 0) return take_last_error(status, "user function");
             return owned;
           }).release();
    return Ok{};
  });
}

int32_t tw_function_call(tw_function* function, const tw_value* args, int32_t num_args, tw_value* result) {
  return guarded([&]() -> Status {
    TW_REQUIRE(function);
    if (num_args < 0) return Diagnostic(ErrorCode::kInvalidArgument, "the number of arguments is negative");
    if (num_args > 0) TW_REQUIRE(args);
    FunctionRef kept(tw_function_retain(function));  // the call may remove the function from the table
    Value value = TW_TRY(call(function, {args, static_cast<size_t>(num_args)}));
    if (result) *result = value.release();
    return Ok{};
  });
}

int32_t tw_function_register(const char* name, tw_function* function, int32_t override) {
  return guarded([&]() -> Status {
    TW_REQUIRE(name);
    TW_REQUIRE(function);
    return register_global(name, FunctionRef(tw_function_retain(function)), override != 0);
  });
}

int32_t tw_function_get_global(const char* name, tw_function** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(name);
    TW_REQUIRE(out);
    *out = find_global(name).release();
    return Ok{};
  });
}

int32_t tw_function_remove_global(const char* name) {
  return guarded([&]() -> Status {
    TW_REQUIRE(name);
    return remove_global(name);
  });
}

int32_t tw_function_list_globals(tw_value* out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(out);
    std::vector<Value> names;
    for (const std::string& name : global_names()) names.push_back(Value::string(name));
    *out = Value::array(std::move(names)).release();
    return Ok{};
  });
}

int32_t tw_module_create(const tw_module_class* kind, void* context, tw_module** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(kind);
    TW_REQUIRE(out);
    tw_module_class given = TW_TRY(options_of(kind));
    TW_REQUIRE(given.type_key);
    TW_REQUIRE(given.get_function);
    return deliver_module(std::make_shared<CallbackModule>(given, context), out);
  });
}

int32_t tw_module_load_file(const char* path, const char* form, tw_module** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(path);
    TW_REQUIRE(out);
    *out = nullptr;
    return deliver_module(TW_TRY(load_module_file(path, form ? form : "")), out);
  });
}

int32_t tw_module_load_binary(const char* type_key, const void* data, uint64_t size, tw_module** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(type_key);
    TW_REQUIRE(out);
    if (size != 0) TW_REQUIRE(data);
    *out = nullptr;
    return deliver_module(TW_TRY(load_module_binary(type_key, {static_cast<const char*>(data), size})), out);
  });
}

tw_module* tw_module_retain(tw_module* module) {
  if (module) module->references.fetch_add(1, std::memory_order_relaxed);
  return module;
}

void tw_module_free(tw_module* module) {
  if (module && module->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete module;
}

const char* tw_module_type_key(const tw_module* module) { return module ? module->module->type_key().c_str() : ""; }

int32_t tw_module_get_function(tw_module* module, const char* name, int32_t query_imports, tw_function** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(module);
    TW_REQUIRE(name);
    TW_REQUIRE(out);
    *out = nullptr;
    *out = TW_TRY(module->module->find_function(name, query_imports != 0)).release();
    return Ok{};
  });
}

int32_t tw_module_import(tw_module* module, tw_module* imported) {
  return guarded([&]() -> Status {
    TW_REQUIRE(module);
    TW_REQUIRE(imported);
    return module->module->import_module(imported->module);
  });
}

uint64_t tw_module_num_imports(const tw_module* module) { return module ? module->module->imports().size() : 0; }

int32_t tw_module_get_import(const tw_module* module, uint64_t index, tw_module** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(module);
    TW_REQUIRE(out);
    *out = nullptr;
    auto imports = module->module->imports();
    if (index >= imports.size())
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("the module imports {} modules, number {} does not exist", imports.size(), index));
    return deliver_module(imports[index], out);
  });
}

int32_t tw_module_save(const tw_module* module, tw_value* out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(module);
    TW_REQUIRE(out);
    *out = Value::bytes(TW_TRY(module->module->save())).release();
    return Ok{};
  });
}

int32_t tw_system_lib_register(const char* name, const void* address) {
  tw_function* function = nullptr;
  if (name && address && !std::strchr(name, '/')) {  // a path is a model's, anything else is not
    auto call = reinterpret_cast<tw_packed_call>(const_cast<void*>(address));
    if (int32_t status = tw_function_create(call, nullptr, nullptr, &function)) return status;
  }
  FunctionRef owned(function);
  return guarded([&]() -> Status {
    TW_REQUIRE(name);
    register_system_symbol(name, address, std::move(owned));
    return Ok{};
  });
}

int32_t tw_system_lib(tw_module** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(out);
    *out = nullptr;
    return deliver_module(TW_TRY(system_lib()), out);
  });
}

}  // extern "C"
