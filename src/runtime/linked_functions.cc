// SPDX-License-Identifier: Apache-2.0
#include "runtime/linked_functions.h"

#include <map>

#include "base/checked.h"
#include "base/format.h"

namespace tilewright::runtime {
namespace {

union PackedValue {
  int64_t i;
  double f;
  void* handle;
  DLDataType dtype;
  DLDevice device;
};
using PackedFunction = int32_t (*)(PackedValue*, int*, int, PackedValue*, int*, void*);

// The thread's last message from external code (TVMAPISetLastError), for the error of a failing call.
thread_local std::string said;
void keep_what_was_said(const char* text) { said = text ? text : ""; }
constexpr const char* kSaySlot = "__TVMAPISetLastError";

// Lists are expanded to their items: C code has no lists.
void flatten(std::span<const tw_value> values, std::vector<PackedValue>* args, std::vector<int>* codes) {
  for (const tw_value& v : values) {
    if (v.kind == TW_ARRAY) {
      flatten({v.as.array, v.size}, args, codes);
      continue;
    }
    PackedValue packed{};
    switch (v.kind) {
      case TW_FLOAT:
        packed.f = v.as.f;
        break;
      case TW_DTYPE:
        packed.dtype = v.as.dtype;
        break;
      case TW_DEVICE:
        packed.device = v.as.device;
        break;
      case TW_NDARRAY:
        packed.handle = &v.as.ndarray->dl_tensor;
        break;
      case TW_INT:
        packed.i = v.as.i;
        break;
      default:
        packed.handle = v.as.handle;
    }
    args->push_back(packed);
    codes->push_back(v.kind == TW_NDARRAY ? TW_TENSOR : v.kind);
  }
}

Result<Value> call_packed(const std::string& name, PackedFunction function, const Arguments& given) {
  std::vector<PackedValue> args;
  std::vector<int> codes;
  args.reserve(given.size()), codes.reserve(given.size());
  flatten(given.from(0), &args, &codes);
  PackedValue result{};
  int kind = TW_NULL;
  said.clear();
  if (const int32_t status =
          function(args.data(), codes.data(), static_cast<int>(args.size()), &result, &kind, nullptr);
      status != 0)
    return Diagnostic(ErrorCode::kInvalidArgument, said.empty() ? format("the function returned {}", status) : said,
                      format("'{}'", name));
  switch (kind) {
    case TW_NULL:
      return Value();
    case TW_INT:
      return Value(result.i);
    case TW_FLOAT:
      return Value(result.f);
    case TW_STR:
      return Value::string(static_cast<const char*>(result.handle));
    default:
      return Diagnostic(ErrorCode::kInvalidArgument, format("the function gives a result of kind {}", kind),
                        format("'{}'", name), "C code gives integers, floats, strings or nothing");
  }
}

class LinkedFunctions : public Module {
 public:
  explicit LinkedFunctions(std::shared_ptr<const Artifact> artifact) : artifact_(std::move(artifact)) {}
  const std::string& type_key() const override {
    static const std::string kKey = kLinkedRecord;
    return kKey;
  }
  Status add(const std::string& name) {
    auto* function = reinterpret_cast<PackedFunction>(artifact_->function(name));
    if (!function)
      return Diagnostic(ErrorCode::kUnknownFunction, format("the library has no function '{}'", name),
                        artifact_->path(), "export it again, with the C source that defines the function");
    functions_[name] = function;
    return Ok{};
  }
  Result<FunctionRef> get_function(const std::string& name) override {
    auto found = functions_.find(name);
    if (found == functions_.end()) return FunctionRef();
    return make_function(name, [name, function = found->second, keep = artifact_](const Arguments& args) {
      return call_packed(name, function, args);
    });
  }
  Result<std::string> save() const override {
    std::vector<std::string> names;
    for (const auto& [name, function] : functions_) names.push_back(name);
    return write_linked_record(names);
  }

 private:
  std::shared_ptr<const Artifact> artifact_;
  std::map<std::string, PackedFunction> functions_;
};

}  // namespace

std::string write_linked_record(std::span<const std::string> names) {
  ByteWriter out;
  out.write<uint64_t>(names.size());
  for (const std::string& name : names) out.write_string(name);
  return out.take();
}

Result<std::shared_ptr<Module>> linked_functions(const std::shared_ptr<Module>& library, std::string_view record) {
  const Diagnostic damaged(ErrorCode::kBadArtifact, "the list of the library's C functions is damaged",
                           "imported modules", "export the library again");
  if (library->type_key() != "library") return damaged;
  const auto& artifact = static_cast<LibraryModule&>(*library).artifact();
  if (auto* slot = static_cast<void (**)(const char*)>(artifact->variable(kSaySlot))) *slot = keep_what_was_said;
  auto made = std::make_shared<LinkedFunctions>(artifact);
  ByteReader in(std::as_bytes(std::span(record)));
  const uint64_t count = in.read_count(8);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const std::string name = in.read_string();
    if (in.ok()) TW_TRY_STATUS(made->add(name));
  }
  if (!in.ok() || in.remaining() != 0) return damaged;
  return std::shared_ptr<Module>(std::move(made));
}

}  // namespace tilewright::runtime
