// SPDX-License-Identifier: Apache-2.0
#include "runtime/system_lib.h"

#include <atomic>

#include "base/format.h"

namespace tilewright::runtime {
namespace {

// Filled by static constructors before the rest of the runtime runs, and used by destructors at exit: a list that only
// grows. An unregistered name has a null address.
struct Symbol {
  std::string name;
  std::atomic<const void*> address;
  FunctionRef function;  // accessed with the table locked
  std::atomic<Symbol*> next{nullptr};
};
struct Table {
  std::mutex mutex;
  std::atomic<Symbol*> symbols{nullptr};
  uint64_t changes = 0, made_at = 0;
  std::shared_ptr<Module> module;  // built for the table's version made_at
};
Table& table() {
  static Table* the_table = new Table;
  return *the_table;
}

Symbol* find(std::string_view name) {
  Symbol* s = table().symbols;
  while (s && s->name != name) s = s->next;
  return s;
}

const void* address_of(std::string_view name) {
  const Symbol* found = find(name);
  return found ? found->address.load() : nullptr;
}

class SystemLib : public Module {
 public:
  const std::string& type_key() const override {
    static const std::string kKey = "system_lib";
    return kKey;
  }

  Result<FunctionRef> get_function(const std::string& name) override {
    {
      std::lock_guard lock(table().mutex);
      if (const Symbol* own = find(name); own && own->function) return own->function;
    }
    std::string names;
    FunctionRef found;
    for (const auto& module : imports()) {
      auto* library = static_cast<LibraryModule*>(module.get());
      const std::string& own = library->artifact()->plan().model_name;
      if (own == name)  // a model; a library of functions has them by their names
        if (FunctionRef model = TW_TRY(library->get_function("default"))) return model;
      names += (names.empty() ? "" : ", ") + own;
      if (!found) found = TW_TRY(library->get_function(name));
    }
    if (!found || imports().size() == 1) return found;
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("'{}' is a function of each of the {} models that are linked in", name, imports().size()),
                      {}, format("take one by its name ({}) or from the imported modules", names));
  }
};

}  // namespace

void register_system_symbol(const std::string& name, const void* address, FunctionRef function) {
  std::lock_guard lock(table().mutex);
  std::atomic<Symbol*>* at = &table().symbols;
  while (*at && (*at).load()->name != name) at = &(*at).load()->next;
  if (!*at) *at = new Symbol{name, nullptr, {}};
  (*at).load()->address = address;
  (*at).load()->function = std::move(function);
  ++table().changes;
}

Result<std::shared_ptr<Module>> system_lib() {
  uint64_t changes = 0;
  {
    std::lock_guard lock(table().mutex);
    changes = table().changes;
    if (table().module && table().made_at == changes) return table().module;
  }
  std::shared_ptr<Module> made = std::make_shared<SystemLib>();
  const std::string_view prefix = kSystemLibModel;
  for (const Symbol* s = table().symbols; s; s = s->next) {
    const void* address = s->address;
    if (!address || !s->name.starts_with(prefix)) continue;
    const std::string model = s->name.substr(prefix.size());
    const std::string where = "model '" + model + "' of the program";
    auto library = std::make_shared<LibraryModule>(TW_TRY(Artifact::linked(
        where, static_cast<const ArtifactTable*>(address), const_cast<void*>(address_of(kSystemLibRun + model)))));
    if (std::string_view tree = library->artifact()->imports(); !tree.empty()) TW_TRY(load_import_tree(tree, library));
    TW_TRY_STATUS(made->import_module(std::move(library)));
  }
  std::lock_guard lock(table().mutex);
  table().module = made;
  table().made_at = changes;
  return made;
}

}  // namespace tilewright::runtime
