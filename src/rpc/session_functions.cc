// SPDX-License-Identifier: Apache-2.0
// The functions by which a client controls its session, under their classic names.
#include <cstring>
#include <functional>

#include "base/format.h"
#include "rpc/session_files.h"
#include "rpc/values.h"

namespace tilewright::rpc {
namespace {

using Values = std::span<const tw_value>;
using SessionBody = std::function<Result<OwnedValue>(Values)>;

int32_t call_session_body(void* context, const tw_value* args, int32_t count, tw_value* result) {
  auto value = (*static_cast<SessionBody*>(context))(Values(args, static_cast<size_t>(count)));
  if (!value.ok()) return reported(value.error());
  *result = value->release();
  return 0;
}
void free_session_body(void* context) { delete static_cast<SessionBody*>(context); }

OwnedValue function_value(SessionBody body) {
  OwnedValue value;
  value.out()->kind = TW_FUNCTION;
  tw_function_create(call_session_body, new SessionBody(std::move(body)), free_session_body, &value.out()->as.function);
  return value;
}

Status add(const char* name, SessionBody body) {
  const OwnedValue function = function_value(std::move(body));
  return checked(tw_function_register(name, function.get().as.function, 1));
}

// The arguments of a call, read in order.
struct Taken {
  Values values;
  Result<const tw_value*> at(size_t i, std::initializer_list<int32_t> kinds, const char* wanted) const {
    if (i < values.size())
      for (const int32_t kind : kinds)
        if (values[i].kind == kind) return &values[i];
    return Diagnostic(ErrorCode::kInvalidArgument, format("argument {} is not {}", i, wanted), "remote");
  }
  Result<std::string> text(size_t i) const {
    const tw_value* value = TW_TRY(at(i, {TW_STR, TW_BYTES}, "a text"));
    return std::string(value->as.str, value->size);
  }
  Result<int64_t> integer(size_t i) const { return TW_TRY(at(i, {TW_INT}, "an integer"))->as.i; }
  Result<tw_module*> module(size_t i) const { return TW_TRY(at(i, {TW_MODULE}, "a module"))->as.module; }
};

Result<OwnedValue> module_function(tw_module* module, const std::string& name, bool imports) {
  OwnedValue value;
  tw_function* function = nullptr;
  TW_TRY_STATUS(checked(tw_module_get_function(module, name.c_str(), imports ? 1 : 0, &function)));
  if (function) value.out()->kind = TW_FUNCTION, value.out()->as.function = function;
  return value;
}

Result<OwnedValue> global(const std::string& name) {
  OwnedValue value;
  tw_function* function = nullptr;
  TW_TRY_STATUS(checked(tw_function_get_global(name.c_str(), &function)));
  if (!function)
    return Diagnostic(ErrorCode::kUnknownFunction, format("no global function is named '{}'", name), "remote");
  value.out()->kind = TW_FUNCTION, value.out()->as.function = function;
  return value;
}

tw_value integer_value(int64_t i) {
  tw_value v{};
  v.kind = TW_INT;
  v.as.i = i;
  return v;
}

// (module or none, name, device type, device, number, repeat, min_repeat_ms, [limit_zero_time_iterations,]
// cooldown_interval_ms, repeats_to_cooldown, [cache_flush_bytes,] f_preproc) -> a function that takes the arguments to
// call with and returns the seconds per call for each repeat, as raw doubles in bytes.
Result<OwnedValue> remote_time_evaluator(Values values) {
  const Taken args{values};
  if (values.size() < 10 || values.size() > 12)
    return Diagnostic(ErrorCode::kInvalidArgument, "RPCTimeEvaluator takes 10 to 12 arguments", "remote");
  const std::string name = TW_TRY(args.text(1));
  auto timed = std::make_shared<OwnedValue>(
      values[0].kind == TW_NULL ? TW_TRY(global(name)) : TW_TRY(module_function(TW_TRY(args.module(0)), name, true)));
  if (timed->get().kind != TW_FUNCTION)
    return Diagnostic(ErrorCode::kUnknownFunction, format("the module has no function '{}'", name), "remote");
  const size_t cooldown = values.size() == 10 ? 7 : 8;
  const int64_t number = TW_TRY(args.integer(4)), repeat = TW_TRY(args.integer(5)), least_ms = TW_TRY(args.integer(6)),
                cooldown_ms = TW_TRY(args.integer(cooldown)), every = TW_TRY(args.integer(cooldown + 1));
  const std::string before_name = TW_TRY(args.text(values.size() - 1));
  std::shared_ptr<OwnedValue> before;
  if (!before_name.empty()) before = std::make_shared<OwnedValue>(TW_TRY(global(before_name)));
  const OwnedValue evaluator = TW_TRY(global("runtime.TimeEvaluator"));
  // The preparation of a repeat is excluded, so each repeat is measured separately.
  const tw_value given[] = {timed->get(),
                            integer_value(number),
                            integer_value(before ? 1 : repeat),
                            integer_value(least_ms),
                            integer_value(cooldown_ms),
                            integer_value(every)};
  auto measure = std::make_shared<OwnedValue>(TW_TRY(call_function(evaluator.get().as.function, given, 6)));
  return function_value([=](Values call) -> Result<OwnedValue> {
    std::string seconds;
    for (int64_t r = 0; r < (before ? repeat : 1); ++r) {
      if (before) TW_TRY(call_function(before->get().as.function, call.data(), call.size()));
      const OwnedValue times = TW_TRY(call_function(measure->get().as.function, call.data(), call.size()));
      for (uint64_t i = 0; i < times.get().size; ++i)
        seconds.append(reinterpret_cast<const char*>(&times.get().as.array[i].as.f), sizeof(double));
    }
    return OwnedValue::bytes(seconds);
  });
}

Result<OwnedValue> load(const SessionFiles& files, const std::string& name) {
  OwnedValue module;
  module.out()->kind = TW_MODULE;
  const std::string path = TW_TRY(files.path(name));
  const int32_t status = tw_module_load_file(path.c_str(), "", &module.out()->as.module);
  if (status != 0) module.out()->kind = TW_NULL;
  TW_TRY_STATUS(checked(status));
  return module;
}

}  // namespace

Status register_session_functions(const std::shared_ptr<SessionFiles>& files) {
  const auto named = [&](const char* name, Result<OwnedValue> (*body)(SessionFiles&, const std::string&)) {
    return add(name, [files, body](Values values) -> Result<OwnedValue> {
      const Taken args{values};
      return body(*files, TW_TRY(args.text(0)));
    });
  };
  // Uploads are streamed before the call (Endpoint::take_uploads); this function serves calls within one process.
  TW_TRY_STATUS(add("tvm.rpc.server.upload", [files](Values values) -> Result<OwnedValue> {
    const Taken args{values};
    const std::string name = TW_TRY(args.text(0));
    const std::string bytes = TW_TRY(args.text(1));
    size_t at = 0;
    TW_TRY_STATUS(files->write(name, bytes.size(), [&](std::span<char> out) -> Status {
      std::memcpy(out.data(), bytes.data() + at, out.size());
      at += out.size();
      return Ok{};
    }));
    return OwnedValue();
  }));
  TW_TRY_STATUS(named("tvm.rpc.server.download", [](SessionFiles& f, const std::string& name) -> Result<OwnedValue> {
    return OwnedValue::bytes(TW_TRY(f.read(name)));
  }));
  TW_TRY_STATUS(named("tvm.rpc.server.remove", [](SessionFiles& f, const std::string& name) -> Result<OwnedValue> {
    TW_TRY_STATUS(f.remove(name));
    return OwnedValue();
  }));
  TW_TRY_STATUS(
      named("tvm.rpc.server.load_module", [](SessionFiles& f, const std::string& name) { return load(f, name); }));
  TW_TRY_STATUS(named(
      "tvm.rpc.server.download_linked_module", [](SessionFiles& f, const std::string& name) -> Result<OwnedValue> {
        if (!name.ends_with(".so"))
          return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' was linked for loading only", name), "remote",
                            "upload a shared library to get it back linked");
        return OwnedValue::bytes(TW_TRY(f.read(name)));
      }));
  TW_TRY_STATUS(add("tvm.rpc.server.workpath", [files](Values values) -> Result<OwnedValue> {
    if (values.empty()) return OwnedValue::text(files->folder());
    const Taken args{values};
    return OwnedValue::text(TW_TRY(files->path(TW_TRY(args.text(0)))));
  }));
  TW_TRY_STATUS(add("tvm.rpc.server.listdir", [files](Values) -> Result<OwnedValue> {
    std::string list;
    for (const std::string& name : files->names()) list += (list.empty() ? "" : ",") + name;
    return OwnedValue::text(list);
  }));
  TW_TRY_STATUS(add("tvm.rpc.server.ImportModule", [](Values values) -> Result<OwnedValue> {
    const Taken args{values};
    TW_TRY_STATUS(checked(tw_module_import(TW_TRY(args.module(0)), TW_TRY(args.module(1)))));
    return OwnedValue();
  }));
  TW_TRY_STATUS(add("tvm.rpc.server.ModuleGetFunction", [](Values values) -> Result<OwnedValue> {
    const Taken args{values};
    return module_function(TW_TRY(args.module(0)), TW_TRY(args.text(1)),
                           values.size() < 3 || TW_TRY(args.integer(2)) != 0);
  }));
  return add("runtime.RPCTimeEvaluator", remote_time_evaluator);
}

}  // namespace tilewright::rpc
