// SPDX-License-Identifier: Apache-2.0
#include "runtime/module.h"

#include <algorithm>
#include <functional>

#include "base/checked.h"
#include "base/format.h"
#include "runtime/classic/graph_executor_module.h"
#include "runtime/classic/graph_json.h"
#include "runtime/linked_functions.h"
#include "runtime/tensor_value.h"

namespace tilewright::runtime {
namespace {

constexpr const char* kLibraryRecord = "_lib";
constexpr const char* kTreeRecord = "_import_tree";
constexpr uint64_t kMostModules = 4096;

std::string extension_of(const std::string& path) {
  size_t dot = path.rfind('.'), slash = path.rfind('/');
  return dot == std::string::npos || (slash != std::string::npos && dot < slash) ? "" : path.substr(dot + 1);
}

Diagnostic damaged_imports(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), "imported modules", "export the library again");
}

// The library's record, the modules' records, and the import graph.
std::string import_tree(std::span<const ImportRecord> modules, const std::vector<std::vector<uint64_t>>& children) {
  ByteWriter out;
  out.write<uint64_t>(modules.size() + 2);
  out.write_string(kLibraryRecord);
  for (const ImportRecord& module : modules) {
    out.write_string(module.type_key);
    out.write_string(module.bytes);
  }
  out.write_string(kTreeRecord);
  std::vector<uint64_t> rows = {0}, flat;
  for (const auto& list : children) {
    flat.insert(flat.end(), list.begin(), list.end());
    rows.push_back(flat.size());
  }
  for (const auto& list : {rows, flat}) {
    out.write<uint64_t>(list.size());
    for (uint64_t v : list) out.write<uint64_t>(v);
  }
  return out.take();
}

// Checks the devices given for an executor: all must be among those compiled for, and none of those may be missing.
// None given: all.
Status check_devices(const plan::Plan& plan, std::span<const tw_value> given) {
  auto listed = [&] {
    std::string out;
    for (int32_t type : plan.devices) out += format("{}{}", out.empty() ? "" : ", ", type);
    return out;
  };
  for (const tw_value& v : given) {
    if (v.kind != TW_DEVICE)
      return Diagnostic(ErrorCode::kInvalidArgument, format("a device was expected, not {}", kind_name(v.kind)));
    if (std::find(plan.devices.begin(), plan.devices.end(), static_cast<int32_t>(v.as.device.device_type)) ==
        plan.devices.end())
      return Diagnostic(
          ErrorCode::kInvalidArgument,
          format("the model was not compiled for device type {}", static_cast<int>(v.as.device.device_type)), {},
          format("give the device types it was compiled for: {}", listed()));
  }
  for (int32_t type : plan.devices)
    if (!given.empty() && std::none_of(given.begin(), given.end(), [&](const tw_value& v) {
          return static_cast<int32_t>(v.as.device.device_type) == type;
        }))
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("the model also runs on device type {}, which was not given", type), {},
                        format("give all of {}", listed()));
  return Ok{};
}

}  // namespace

Result<std::string> Module::save() const {
  return Diagnostic(ErrorCode::kInvalidArgument,
                    format("a module of type '{}' cannot be written to a file", type_key()), {},
                    "export the library that it comes from");
}

std::vector<std::shared_ptr<Module>> Module::imports() const {
  std::lock_guard lock(mutex_);
  return imports_;
}

bool Module::reaches(const Module* other) const {
  if (this == other) return true;
  for (const auto& m : imports())
    if (m->reaches(other)) return true;
  return false;
}

Status Module::import_module(std::shared_ptr<Module> module) {
  if (module->reaches(this))
    return Diagnostic(ErrorCode::kInvalidArgument, "the import would make a circle of modules");
  std::lock_guard lock(mutex_);
  imports_.push_back(std::move(module));
  return Ok{};
}

Result<FunctionRef> Module::find_function(const std::string& name, bool query_imports) {
  FunctionRef own = TW_TRY(get_function(name));
  if (own || !query_imports) return own;
  for (const auto& m : imports()) {
    FunctionRef found = TW_TRY(m->find_function(name, true));
    if (found) return found;
  }
  return FunctionRef();
}

LibraryModule::LibraryModule(std::shared_ptr<const Artifact> artifact) : artifact_(std::move(artifact)) {
  for (const auto& t : artifact_->plan().inputs) input_dtypes_.push_back(t.dtype.str());
  for (const auto& t : artifact_->plan().outputs) output_dtypes_.push_back(t.dtype.str());
}

const std::string& LibraryModule::type_key() const {
  static const std::string kKey = "library";
  return kKey;
}

Result<std::shared_ptr<LibraryModule>> LibraryModule::load(const std::string& path, const LoadOptions& options) {
  auto library = std::make_shared<LibraryModule>(TW_TRY(Artifact::load(path, options)));
  std::string_view tree = library->artifact()->imports();
  if (!tree.empty()) {
    auto root = load_import_tree(tree, library);
    if (!root.ok()) return std::move(root).error().at(path);
  }
  return library;
}

Result<std::vector<FunctionRef>> LibraryModule::externals() const {
  std::vector<FunctionRef> out;
  const auto own = TW_TRY(functions());
  for (const std::string& name : artifact_->plan().externals) {
    FunctionRef found = own->find(name);
    for (const auto& m : imports())
      if (!found) found = TW_TRY(m->find_function(name, true));
    if (!found)
      return Diagnostic(
          ErrorCode::kUnknownFunction,
          format(
              "the model calls the external function '{}', and none of the {} modules that the library imports has it",
              name, imports().size()),
          artifact_->path(), "import the module that has it, or export the library again with it");
    out.push_back(std::move(found));
  }
  return out;
}

Result<std::shared_ptr<const LibraryFunctions>> LibraryModule::functions() const {
  std::lock_guard lock(functions_mutex_);
  if (!functions_) functions_ = TW_TRY(LibraryFunctions::of(artifact_));
  return functions_;
}

Result<FunctionRef> LibraryModule::get_function(const std::string& name) {
  auto artifact = artifact_;
  const plan::Plan& plan = artifact->plan();
  const auto functions = TW_TRY(this->functions());
  const bool has_model = functions->empty() || !plan.outputs.empty();
  if (FunctionRef found = functions->find(name); found && (name != kEntryFunction || !has_model)) return found;
  if (!has_model) return FunctionRef();
  using Kind = GraphExecutorModule::Kind;
  const auto wanted = plan.metadata.find(kExecutorKey);
  const bool aot = wanted != plan.metadata.end() && wanted->second == kAotExecutor;
  if (aot && (name == "debug_create" || name == "get_graph_json" || name == "get_graph_params")) return FunctionRef();
  if (name == "default" || name == "debug_create" || (!plan.model_name.empty() && name == plan.model_name)) {
    const Kind kind = name == "debug_create" ? Kind::kDebug : aot ? Kind::kAot : Kind::kGraph;
    auto self = std::static_pointer_cast<LibraryModule>(shared_from_this());
    return make_function(name, [self, kind](const Arguments& args) -> Result<Value> {
      if (kind == Kind::kAot && args.size() > 1)
        return Diagnostic(ErrorCode::kInvalidArgument,
                          format("Expect exactly 1 device passed, not {}: generated code runs on one", args.size()));
      TW_TRY_STATUS(
          check_devices(self->artifact_->plan(), args.from(kind == Kind::kDebug ? 1 : 0)));  // (model name, devices...)
      ExecutorOptions options;
      options.externals = TW_TRY(self->externals());
      return Value(std::shared_ptr<Module>(TW_TRY(GraphExecutorModule::create(self->artifact_, options, kind))));
    });
  }
  if (name == "get_graph_json")
    return make_function(name, [artifact](const Arguments&) -> Result<Value> {
      return Value::string(write_graph_json(artifact->plan()));
    });
  if (name == "get_graph_params")
    return make_function(name, [artifact](const Arguments&) -> Result<Value> {
      std::vector<Value> items;
      for (const plan::Param& p : artifact->plan().params) {
        std::vector<Value> pair;
        pair.push_back(Value::string(p.name));
        pair.push_back(
            // copied, since the mapping is read-only
            copy_value({p.name, p.dtype, p.shape}, artifact->params() + p.offset));
        items.push_back(Value::array(std::move(pair)));
      }
      return Value::array(std::move(items));
    });
  if (aot && name == "get_metadata")  // [version, the model's name, inputs, outputs]
    return make_function(name, [artifact](const Arguments&) -> Result<Value> {
      std::vector<Value> items;
      items.emplace_back(int64_t{1});
      items.push_back(Value::string(artifact->plan().model_name));
      items.push_back(tensor_list(artifact->plan().inputs));
      items.push_back(tensor_list(artifact->plan().outputs));
      return Value::array(std::move(items));
    });
  if (name == "remove_params") {  // weights are part of the library: there is no copy without them
    auto self = shared_from_this();
    return make_function(name, [self](const Arguments&) -> Result<Value> { return Value(self); });
  }
  if (name == "list_module_names")
    return make_function(name, [artifact](const Arguments&) -> Result<Value> {
      std::vector<Value> names;
      const std::string& own = artifact->plan().model_name;
      names.push_back(Value::string(own.empty() ? "default" : own));
      return Value::array(std::move(names));
    });
  return FunctionRef();
}

Result<std::shared_ptr<Module>> load_module_file(const std::string& path, std::string form) {
  if (form.empty()) form = extension_of(path);
  std::string loader = "runtime.module.loadfile_" + form;
  FunctionRef user = find_global(loader);
  if (!user && (form.empty() || form == "so" || form == "dll" || form == "dylib" || form == "stackvm"))
    return std::shared_ptr<Module>(TW_TRY(LibraryModule::load(path)));
  FunctionRef function = user ? user : TW_TRY(require_global(loader, "runtime.module.loadfile_"));
  Value arguments[] = {Value::string(path), Value::string(form)};
  const tw_value raw[] = {arguments[0].get(), arguments[1].get()};
  Value made = TW_TRY(call(function.get(), raw));
  return Arguments(std::span(&made.get(), 1), loader).module(0);
}

Result<std::shared_ptr<Module>> load_module_binary(const std::string& type_key, std::string_view bytes) {
  std::string loader = "runtime.module.loadbinary_" + type_key;
  FunctionRef function = find_global(loader);
  if (!function)
    return Diagnostic(ErrorCode::kUnknownFunction, format("no global function is named '{}'", loader), {},
                      format("load what registers it first: modules of type '{}' come with a library of their own (run "
                             "--plugin FILE)",
                             type_key));
  Value argument = Value::bytes(bytes);
  Value made = TW_TRY(call(function.get(), std::span(&argument.get(), 1)));
  return Arguments(std::span(&made.get(), 1), loader).module(0);
}

Result<std::string> save_import_tree(const std::shared_ptr<Module>& root) {
  if (root->imports().empty()) return std::string();
  std::vector<std::shared_ptr<Module>> order;
  std::vector<std::vector<uint64_t>> children;
  bool too_many = false;
  std::function<uint64_t(const std::shared_ptr<Module>&)> visit = [&](const std::shared_ptr<Module>& m) -> uint64_t {
    uint64_t index = order.size();
    order.push_back(m);
    children.emplace_back();
    for (const auto& child : m->imports()) {
      if ((too_many = order.size() + 2 > kMostModules)) break;
      uint64_t number = visit(child);
      children[index].push_back(number);
    }
    return index;
  };
  visit(root);
  if (too_many)
    return Diagnostic(ErrorCode::kLimitExceeded, format("the library imports more than {} modules", kMostModules));
  std::vector<ImportRecord> records;
  for (size_t i = 1; i < order.size(); ++i) {
    std::string saved = TW_TRY(order[i]->save());
    records.push_back({order[i]->type_key(), std::move(saved)});
  }
  return import_tree(records, children);
}

std::string save_import_tree(std::span<const ImportRecord> modules) {
  if (modules.empty()) return {};
  std::vector<std::vector<uint64_t>> children(1 + modules.size());
  for (uint64_t i = 1; i <= modules.size(); ++i) children[modules[i - 1].importer].push_back(i);
  return import_tree(modules, children);
}

Result<std::shared_ptr<Module>> load_import_tree(std::string_view bytes, const std::shared_ptr<Module>& library) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  auto count = in.read<uint64_t>();
  if (!in.ok() || count == 0 || count > kMostModules)
    return damaged_imports("the number of imported modules is impossible");
  std::vector<std::shared_ptr<Module>> modules;
  for (uint64_t i = 0; i + 1 < count; ++i) {
    std::string key = in.read_string(256);
    if (!in.ok()) return damaged_imports("the list of imported modules ends early");
    if (key == kLibraryRecord) {
      modules.push_back(library);
      continue;
    }
    uint64_t length = in.read<uint64_t>();
    auto data = in.take(length);
    if (!in.ok()) return damaged_imports(format("the module of type '{}' ends early", key));
    const std::string_view record(reinterpret_cast<const char*>(data.data()), data.size());
    modules.push_back(key == kLinkedRecord ? TW_TRY(linked_functions(library, record))
                                           : TW_TRY(load_module_binary(key, record)));
  }
  if (in.read_string(256) != kTreeRecord) return damaged_imports("the tree of imports is missing");
  std::vector<uint64_t> lists[2];
  for (auto& list : lists) {
    uint64_t n = in.read_count(8);
    for (uint64_t i = 0; i < n && in.ok(); ++i) list.push_back(in.read<uint64_t>());
  }
  const auto& [rows, flat] = lists;
  if (!in.ok() || in.remaining() != 0 || rows.size() != modules.size() + 1 || rows.front() != 0 ||
      rows.back() != flat.size() || !std::is_sorted(rows.begin(), rows.end()))
    return damaged_imports("the tree of imports is damaged");
  for (size_t parent = 0; parent < modules.size(); ++parent)
    for (uint64_t k = rows[parent]; k < rows[parent + 1]; ++k) {
      if (flat[k] <= parent || flat[k] >= modules.size()) return damaged_imports("the tree of imports is no tree");
      TW_TRY_STATUS(modules[parent]->import_module(modules[flat[k]]));
    }
  return modules.empty() ? library : modules.front();
}

}  // namespace tilewright::runtime
