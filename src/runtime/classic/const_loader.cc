// SPDX-License-Identifier: Apache-2.0
#include "runtime/classic/const_loader.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/checked.h"
#include "base/format.h"
#include "base/formats/tensor_record.h"
#include "runtime/dltensor.h"
#include "runtime/tensor_value.h"

namespace tilewright::runtime {
namespace {

Diagnostic damaged_constants(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), "constants of external functions",
                    "export the library again");
}

std::vector<std::string> read_names(ByteReader& in) {
  std::vector<std::string> names;
  const uint64_t count = in.read_count(8);
  for (uint64_t i = 0; i < count && in.ok(); ++i) names.push_back(in.read_string());
  return names;
}

void write_names(ByteWriter& out, const std::vector<std::string>& names) {
  out.write<uint64_t>(names.size());
  for (const std::string& name : names) out.write_string(name);
}

class ConstLoader : public Module {
 public:
  const std::string& type_key() const override {
    static const std::string kKey = kConstLoader;
    return kKey;
  }

  Status read(std::string_view bytes) {
    ByteReader in(std::as_bytes(std::span(bytes)));
    names_ = read_names(in);
    const uint64_t tensors = in.read_count(16);
    if (!in.ok() || tensors != names_.size()) return damaged_constants("the list of constants is damaged");
    for (const std::string& name : names_) {
      TensorRecord t = TW_TRY(read_tensor_record(in, name, "constants of external functions"));
      constants_[name] = copy_value({name, t.dtype, t.shape}, t.data.data());
    }
    const std::vector<std::string> functions = read_names(in);
    const uint64_t lists = in.read_count(8);
    if (!in.ok() || lists != functions.size()) return damaged_constants("the list of functions is damaged");
    for (const std::string& function : functions) {
      needs_.push_back({function, read_names(in)});
      for (const std::string& name : needs_.back().variables)
        if (in.ok() && !constants_.count(name))
          return damaged_constants(format("'{}' wants the constant '{}', which is not there", function, name));
    }
    if (!in.ok() || in.remaining() != 0) return damaged_constants("the functions' constants are damaged");
    return Ok{};
  }

  Result<FunctionRef> get_function(const std::string& name) override {
    const auto need = std::find_if(needs_.begin(), needs_.end(), [&](const auto& f) { return f.name == name; });
    if (need == needs_.end()) return FunctionRef();
    FunctionRef function = TW_TRY(imported(name));
    TW_TRY_STATUS(initialise(*need));
    // Whoever can call the function keeps the constants that it points to.
    return make_function(name, [self = shared_from_this(), function](const Arguments& args) -> Result<Value> {
      return call(function.get(), args.from(0));
    });
  }

  Result<std::string> save() const override {
    ConstLoaderRecord record;
    for (const std::string& name : names_) {
      const DLTensor& t = constants_.at(name).get().as.ndarray->dl_tensor;
      const DataType dtype = TW_TRY(from_dlpack(t.dtype));
      const plan::TensorInfo info{name, dtype, {t.shape, t.shape + t.ndim}};
      record.variables.push_back(
          {name, dtype, info.shape, {static_cast<const std::byte*>(t.data), static_cast<size_t>(byte_size(info))}});
    }
    record.functions = needs_;
    return write_const_loader(record);
  }

 private:
  // Gives a function its constants, once.
  Status initialise(const ConstLoaderRecord::Function& function) {
    std::lock_guard lock(mutex_);
    if (initialised_.count(function.name)) return Ok{};
    FunctionRef take = TW_TRY(imported("__init_" + function.name));
    std::vector<tw_value> list;
    for (const std::string& variable : function.variables) list.push_back(constants_.at(variable).get());
    tw_value all{};
    all.kind = TW_ARRAY, all.size = list.size(), all.as.array = list.data();
    TW_TRY(call(take.get(), std::span(&all, 1)));
    initialised_.insert(function.name);
    return Ok{};
  }
  Result<FunctionRef> imported(const std::string& name) const {
    for (const auto& m : imports())
      if (FunctionRef found = TW_TRY(m->find_function(name, true))) return found;
    return Diagnostic(ErrorCode::kUnknownFunction,
                      format("no module below the constants of external functions has the function '{}'", name), {},
                      "a module that has constants has __init_<function>, too");
  }

  std::vector<std::string> names_;
  std::map<std::string, Value> constants_;  // functions keep pointers to these
  std::vector<ConstLoaderRecord::Function> needs_;
  std::mutex mutex_;
  std::set<std::string> initialised_;
};

}  // namespace

std::string write_const_loader(const ConstLoaderRecord& record) {
  ByteWriter out;
  out.write<uint64_t>(record.variables.size());
  for (const auto& v : record.variables) out.write_string(v.name);
  out.write<uint64_t>(record.variables.size());
  for (const auto& v : record.variables) write_tensor_record(out, {v.dtype, v.shape, v.data});
  out.write<uint64_t>(record.functions.size());
  for (const auto& f : record.functions) out.write_string(f.name);
  out.write<uint64_t>(record.functions.size());
  for (const auto& f : record.functions) write_names(out, f.variables);
  return out.take();
}

Result<std::shared_ptr<Module>> load_const_loader(std::string_view bytes) {
  auto made = std::make_shared<ConstLoader>();
  TW_TRY_STATUS(made->read(bytes));
  return std::shared_ptr<Module>(std::move(made));
}

}  // namespace tilewright::runtime
