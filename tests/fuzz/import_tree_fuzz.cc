// SPDX-License-Identifier: Apache-2.0
// fuzz-room: runtime
// The list of modules that a library carries gives a tree of modules or a diagnostic, whatever the bytes are.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/module.h"

using namespace tilewright;
using namespace tilewright::runtime;

namespace {

class Leaf : public Module {
 public:
  explicit Leaf(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& type_key() const override {
    static const std::string key = "fuzz_leaf";
    return key;
  }
  Result<FunctionRef> get_function(const std::string&) override { return FunctionRef(); }
  Result<std::string> save() const override { return bytes_; }

 private:
  std::string bytes_;
};

void register_loader() {
  static const bool done = [] {  // not in FuzzSeeds alone: a run over saved inputs makes no seeds
    auto load = make_function("load", [](const Arguments& args) -> Result<Value> {
      return Value(std::shared_ptr<Module>(std::make_shared<Leaf>(std::string(TW_TRY(args.bytes(0))))));
    });
    return register_global("runtime.module.loadbinary_fuzz_leaf", load, false).ok();
  }();
  if (!done) __builtin_trap();
}

}  // namespace

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  register_loader();
  auto root = std::make_shared<Leaf>("root"), left = std::make_shared<Leaf>("left"), leaf = std::make_shared<Leaf>("");
  if (!root->import_module(left).ok() || !left->import_module(leaf).ok()) __builtin_trap();
  seeds->push_back(*save_import_tree(root));
  if (!root->import_module(std::make_shared<Leaf>("right")).ok()) __builtin_trap();
  seeds->push_back(*save_import_tree(root));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  register_loader();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto library = std::make_shared<Leaf>("library");
  auto tree = load_import_tree(bytes, library);
  if (!tree.ok()) {
    if (tree.error().str().empty() || tree.error().code == ErrorCode::kInternal) __builtin_trap();
    return 0;
  }
  auto saved = save_import_tree(*tree);
  if (!saved.ok()) {  // a module that several others import is written once for each
    if (saved.error().code != ErrorCode::kLimitExceeded) __builtin_trap();
    return 0;
  }
  if (!saved->empty() && !load_import_tree(*saved, std::make_shared<Leaf>("again")).ok()) __builtin_trap();
  return 0;
}
