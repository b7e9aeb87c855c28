// SPDX-License-Identifier: Apache-2.0
#include "runtime/classic/factory_record.h"

#include "base/checked.h"
#include "base/format.h"
#include "base/formats/tensor_record.h"
#include "runtime/tensor_value.h"

namespace tilewright::runtime {
namespace {

constexpr uint64_t kLongestGraph = uint64_t{1} << 32;

Diagnostic damaged_record(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), "factory record", "export the model again");
}

class Factory : public Module {
 public:
  Factory(std::string type_key, std::string bytes) : type_key_(std::move(type_key)), bytes_(std::move(bytes)) {}
  Status read() {
    record_ = TW_TRY(read_factory_record(std::as_bytes(std::span(bytes_)), has_graph()));
    return Ok{};
  }
  const std::string& type_key() const override { return type_key_; }
  Result<std::string> save() const override { return bytes_; }

  Result<FunctionRef> get_function(const std::string& name) override {
    auto self = std::static_pointer_cast<Factory>(shared_from_this());
    if (name == "get_graph_json" && has_graph())
      return make_function(
          name, [self](const Arguments&) -> Result<Value> { return Value::string(self->record_.graph_json); });
    if (name == "get_graph_params")
      return make_function(name, [self](const Arguments&) -> Result<Value> {
        std::vector<Value> items;
        for (const NamedTensor& t : self->record_.params) {
          std::vector<Value> pair;
          pair.push_back(Value::string(t.name));
          pair.push_back(copy_value({t.name, t.dtype, t.shape}, t.data.data()));
          items.push_back(Value::array(std::move(pair)));
        }
        return Value::array(std::move(items));
      });
    if (name == "remove_params")
      return make_function(name, [self](const Arguments&) -> Result<Value> {
        const FactoryRecord rest{self->record_.graph_json, {}, self->record_.module_name};
        auto made = TW_TRY(load_factory(self->type_key_, write_factory_record(rest, self->has_graph())));
        for (const auto& m : self->imports()) TW_TRY_STATUS(made->import_module(m));
        return Value(std::move(made));
      });
    if (name == "default" || name == "debug_create" || name == record_.module_name)
      return make_function(name, [self, name](const Arguments& args) -> Result<Value> {
        for (const auto& m : self->imports())
          if (m->type_key() == "library")
            return self->executor(*m, name == "debug_create" ? name : "default", args.from(0));
        return Diagnostic(
            ErrorCode::kArtifactVersion,
            "the kernels of this graph are machine code of the classic stack, which this runtime does not run", {},
            "compile the model again; get_graph_json and get_graph_params give what the record holds");
      });
    return FunctionRef();
  }

 private:
  bool has_graph() const { return type_key_ != "AotExecutorFactory"; }
  // Parameters without a weight in the library were folded into its constants.
  Result<Value> executor(Module& library, const std::string& name, std::span<const tw_value> args) {
    FunctionRef make = TW_TRY(library.get_function(name));
    if (!make) return Diagnostic(ErrorCode::kUnknownFunction, format("the library has no function '{}'", name));
    Value made = TW_TRY(call(make.get(), args));
    auto executor = TW_TRY(Arguments(std::span(&made.get(), 1), name).module(0));
    FunctionRef load = TW_TRY(executor->get_function("load_params"));
    if (load && !record_.params.empty()) {
      Value params = Value::bytes(write_params_file(record_.params));
      TW_TRY(call(load.get(), std::span(&params.get(), 1)));
    }
    return made;
  }

  const std::string type_key_, bytes_;
  FactoryRecord record_;
};

}  // namespace

Result<FactoryRecord> read_factory_record(std::span<const std::byte> bytes, bool with_graph) {
  ByteReader in(bytes);
  FactoryRecord record;
  if (with_graph) record.graph_json = in.read_string(kLongestGraph);
  const auto count = in.read<uint64_t>();
  const uint64_t names = in.read_count(8);
  if (!in.ok() || names != count) return damaged_record("the list of parameters is damaged");
  for (uint64_t i = 0; i < names && in.ok(); ++i) record.params.push_back({in.read_string(), {}, {}, {}});
  if (!in.ok()) return damaged_record("the names of the parameters end early");
  for (NamedTensor& t : record.params) {
    TensorRecord tensor = TW_TRY(read_tensor_record(in, t.name, "factory record"));
    t.dtype = tensor.dtype, t.shape = std::move(tensor.shape), t.data = tensor.data;
  }
  record.module_name = in.read_string();
  if (!in.ok() || in.remaining() != 0) return damaged_record("the model's name is damaged");
  return record;
}

std::string write_factory_record(const FactoryRecord& record, bool with_graph) {
  ByteWriter out;
  if (with_graph) out.write_string(record.graph_json);
  out.write<uint64_t>(record.params.size());
  out.write<uint64_t>(record.params.size());
  for (const NamedTensor& t : record.params) out.write_string(t.name);
  for (const NamedTensor& t : record.params) write_tensor_record(out, {t.dtype, t.shape, t.data});
  out.write_string(record.module_name);
  return out.take();
}

Result<std::shared_ptr<Module>> load_factory(const std::string& type_key, std::string_view bytes) {
  auto made = std::make_shared<Factory>(type_key, std::string(bytes));
  TW_TRY_STATUS(made->read());
  return std::shared_ptr<Module>(std::move(made));
}

}  // namespace tilewright::runtime
