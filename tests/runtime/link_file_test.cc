// SPDX-License-Identifier: Apache-2.0
// Objects, archives and packages as modules, and imports linked in as an object of their own.
#include "runtime/link_file.h"

#include <gtest/gtest.h>

#include "runtime/artifact_maker.h"
#include "runtime/executor.h"

namespace tilewright::runtime {
namespace {
using testing::TempFolder;

class Plain : public Module {
 public:
  explicit Plain(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& type_key() const override {
    static const std::string kKey = "link_test";
    return kKey;
  }
  Result<FunctionRef> get_function(const std::string& name) override {
    if (name != "text") return FunctionRef();
    return make_function(name, [bytes = bytes_](const Arguments&) -> Result<Value> { return Value::string(bytes); });
  }
  Result<std::string> save() const override { return bytes_; }

 private:
  std::string bytes_;
};

class LinkFile : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::make_artifact(testing::small_model(), folder_ / "m.so");  // leaves m.so.c, its source
    shell(
        "cc -O1 -w -fPIC -c -o lib0.o m.so.c && ar rc lib0.a lib0.o && tar czf lib0.tar lib0.o && tar cf whole.tar "
        "m.so");
  }
  void shell(const std::string& command) {
    ASSERT_EQ(std::system(("cd " + (folder_ / ".") + " && " + command).c_str()), 0) << command;
  }
  static void expect_runs(const std::shared_ptr<Module>& module) {
    auto library = std::dynamic_pointer_cast<LibraryModule>(module);
    ASSERT_TRUE(library);
    auto e = *Executor::create(library->artifact(), {});
    auto x = *e->input(0);
    for (int i = 0; i < 64; ++i) static_cast<float*>(x.data)[i] = 1;
    ASSERT_TRUE(e->run().ok());
    EXPECT_EQ(static_cast<float*>(e->output(0)->data)[3], 2 * 1.5f);
  }
  TempFolder folder_;
};

TEST_F(LinkFile, ObjectsArchivesAndPackagesLoad) {
  for (const char* name : {"lib0.o", "lib0.a", "lib0.tar", "whole.tar"}) {
    auto module = load_module_file(folder_ / name, "");
    ASSERT_TRUE(module.ok()) << name << ": " << module.error().str();
    expect_runs(*module);
  }
}

TEST_F(LinkFile, LlvmIrLoadsWhereClangIs) {
  if (std::system("command -v clang >/dev/null 2>&1") != 0) GTEST_SKIP() << "no clang is installed";
  shell("clang -O1 -w -fPIC -S -emit-llvm -o lib0.ll m.so.c && clang -O1 -w -fPIC -c -emit-llvm -o lib0.bc m.so.c");
  for (const char* name : {"lib0.ll", "lib0.bc"}) {
    auto module = load_module_file(folder_ / name, "");
    ASSERT_TRUE(module.ok()) << name << ": " << module.error().str();
    expect_runs(*module);
  }
}

TEST_F(LinkFile, WhatIsNoneIsRefused) {
  testing::write_file(folder_ / "bad.o", "no object");
  testing::write_file(folder_ / "bad.tar", "no package");
  shell(
      "touch readme && tar cf empty.tar readme && printf 'int f(void) {return 1;}' > f.c && cc -fPIC -c -o other.o "
      "f.c");
  EXPECT_EQ(load_module_file(folder_ / "bad.o", "").error().code, ErrorCode::kLinkFailed);
  EXPECT_EQ(load_module_file(folder_ / "bad.tar", "").error().code, ErrorCode::kLinkFailed);
  EXPECT_EQ(load_module_file(folder_ / "empty.tar", "").error().code, ErrorCode::kBadArtifact);
  EXPECT_EQ(load_module_file(folder_ / "none.o", "").error().code, ErrorCode::kFileNotFound);
  shell("printf 'no library' > mod.so && tar cf broken.tar mod.so");
  auto broken = load_module_file(folder_ / "broken.tar", "");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::kBadArtifact);
  EXPECT_EQ(broken.error().where, folder_ / "broken.tar") << "not a file of the folder it was unpacked to";
  auto other = load_module_file(folder_ / "other.o", "");  // an object, but no model
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kBadArtifact);
  EXPECT_EQ(other.error().where, folder_ / "other.o");
}

TEST_F(LinkFile, ImportsAreLinkedInAsAnObject) {
  auto load = make_function("load", [](const Arguments& args) -> Result<Value> {
    return Value(std::shared_ptr<Module>(std::make_shared<Plain>(std::string(TW_TRY(args.bytes(0))))));
  });
  ASSERT_TRUE(register_global("runtime.module.loadbinary_link_test", std::move(load), true).ok());
  auto root = *load_module_file(folder_ / "m.so", "");
  EXPECT_FALSE(pack_imports_to_c(root).ok());
  ASSERT_TRUE(root->import_module(std::make_shared<Plain>("hello")).ok());
  auto source = pack_imports_to_c(root);
  ASSERT_TRUE(source.ok());
  testing::write_file(folder_ / "devc.c", *source);
  shell("cc -fPIC -c -o devc.o devc.c && cc -shared -o both.so lib0.o devc.o && tar cf both.tar lib0.o devc.c");
  for (const char* name : {"both.so", "both.tar"}) {
    auto module = load_module_file(folder_ / name, "");
    ASSERT_TRUE(module.ok()) << name << ": " << module.error().str();
    ASSERT_EQ((*module)->imports().size(), 1u);
    auto text = *(*module)->find_function("text", true);
    auto said = call(text.get(), {});
    ASSERT_TRUE(said.ok());
    EXPECT_EQ(std::string(said->get().as.str, said->get().size), "hello");
    expect_runs(*module);
  }
  // A length that lies is refused.
  shell(
      "sed 's/0x[0-9a-f]*,0x00,0x00,0x00,0x00,0x00,0x00,0x00,/0xff,0xff,0xff,0x7f,0x00,0x00,0x00,0x00,/' devc.c > "
      "lie.c && cc -fPIC -shared -o lie.so lib0.o lie.c");
  EXPECT_EQ(load_module_file(folder_ / "lie.so", "").error().code, ErrorCode::kBadArtifact);
  ASSERT_TRUE(remove_global("runtime.module.loadbinary_link_test").ok());
}

}  // namespace
}  // namespace tilewright::runtime
