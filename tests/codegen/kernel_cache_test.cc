// SPDX-License-Identifier: Apache-2.0
// Kernels kept on disk: hits, damage, bounds, several processes, and the same bytes with and without.
#include "codegen/kernel_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "codegen/codegen.h"
#include "tir/text.h"

namespace tilewright::codegen {
namespace {
namespace fs = std::filesystem;

class KernelCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tw_cache_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    folder_ = root_ + "/kernels";
  }
  void TearDown() override { fs::remove_all(root_); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().filename() != "stored") out.push_back(entry.path());  // the log of what was stored
    std::sort(out.begin(), out.end());
    return out;
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string root_, folder_;
};

tir::PrimFunc scale(const std::string& name, const std::string& factor) {
  auto function = tir::parse_func("func " + name +
                                  "(x: float32[64] readonly align 64, y: float32[64] align 64):\n"
                                  "  for i from 0 extent 4:\n"
                                  "    y[ramp(i * 16, 1, 16)] = x[ramp(i * 16, 1, 16)] * broadcast(" +
                                  factor + ", 16)\n");
  EXPECT_TRUE(function.ok()) << function.error().str();
  return std::move(function).value();
}

TEST_F(KernelCacheTest, FindsWhatWasStored) {
  KernelCache cache(folder_);
  ASSERT_TRUE(cache.usable());
  const CacheKey a = KernelCache::key_of("a"), b = KernelCache::key_of("b");
  EXPECT_FALSE(a == b);
  EXPECT_FALSE(cache.find(a));
  cache.store(a, std::string("o\0bject", 7));
  cache.store(b, "");
  EXPECT_EQ(cache.find(a), std::string("o\0bject", 7));
  EXPECT_EQ(KernelCache(folder_).find(b), "") << "another process";
  EXPECT_EQ(cache.counts().hits, 1u);
  EXPECT_EQ(cache.counts().misses, 1u);
  EXPECT_EQ(cache.counts().stored, 2u);
  EXPECT_EQ(files().size(), 2u) << "no temporary files are left";
}

TEST_F(KernelCacheTest, DamagedEntriesAreNotFoundAndRemoved) {
  const CacheKey key = KernelCache::key_of("k");
  KernelCache cache(folder_);
  cache.store(key, "the object's bytes");
  const fs::path path = files().at(0);
  const std::string whole = read(path);
  for (size_t n = 0; n < whole.size(); ++n) {
    write(path, whole.substr(0, n));
    EXPECT_FALSE(cache.find(key)) << "cut after " << n;
    EXPECT_FALSE(fs::exists(path)) << n;
  }
  for (size_t n = 0; n < whole.size(); ++n)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[n] = static_cast<char>(bytes[n] ^ (1 << bit));
      write(path, bytes);
      EXPECT_FALSE(cache.find(key)) << "bit " << bit << " of byte " << n;
    }
  write(path, whole + "x");
  EXPECT_FALSE(cache.find(key)) << "something was appended";
  write(path, whole);
  EXPECT_TRUE(cache.find(key)) << "the undamaged file is found";
  // A file under another's name.
  cache.store(KernelCache::key_of("other"), "another object");
  for (const fs::path& file : files())
    if (file != path) write(path, read(file));
  EXPECT_FALSE(cache.find(key));
}

TEST_F(KernelCacheTest, KeepsWithinItsBoundAndDropsTheOldest) {
  const std::string object(1000, 'x');
  {
    KernelCache cache(folder_, 20000);
    for (int i = 0; i < 15; ++i) cache.store(KernelCache::key_of(std::to_string(i)), object);
    cache.trim();
    EXPECT_EQ(files().size(), 15u) << "within the bound nothing goes";
  }
  // The first five were used lately, the others long ago.
  const time_t now = time(nullptr);
  auto age = [&](const CacheKey& key, time_t used) {
    const fs::path path = folder_ + "/" + [&] {
      char name[40];
      std::snprintf(name, sizeof name, "%016lx%016lx.o", static_cast<unsigned long>(key.high),
                    static_cast<unsigned long>(key.low));
      return std::string(name);
    }();
    timespec times[2] = {{used, 0}, {used, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
  };
  for (int i = 0; i < 15; ++i) age(KernelCache::key_of(std::to_string(i)), now - (i < 5 ? 100 : 100000 + i));
  write(folder_ + "/.part.left", "an interrupted writer");
  timespec old[2] = {{now - 100000, 0}, {now - 100000, 0}};
  utimensat(AT_FDCWD, (folder_ + "/.part.left").c_str(), old, 0);
  write(folder_ + "/README", "somebody's");
  KernelCache cache(folder_, 10000);
  EXPECT_TRUE(cache.find(KernelCache::key_of("14"))) << "a hit makes an entry recent";
  cache.store(KernelCache::key_of("new"), object);
  cache.trim();
  EXPECT_LE(files().size(), 10u);
  EXPECT_FALSE(fs::exists(folder_ + "/.part.left"));
  EXPECT_TRUE(fs::exists(folder_ + "/README"));
  for (const char* kept : {"0", "1", "2", "3", "4", "14", "new"})
    EXPECT_TRUE(cache.find(KernelCache::key_of(kept))) << kept;
  EXPECT_FALSE(cache.find(KernelCache::key_of("13")));
}

TEST_F(KernelCacheTest, EntriesAreCountedOnceForASixteenthOfTheBound) {
  const std::string object(1000, 'x');
  int stored = 0;
  auto store_some = [&](int n) {  // as a process of its own
    KernelCache cache(folder_, 200'000);
    for (int i = 0; i < n; ++i) cache.store(KernelCache::key_of(std::to_string(stored++)), object);
    cache.trim();
  };
  auto leave = [&] {
    write(folder_ + "/.part.left", "an interrupted writer");
    timespec old[2] = {{time(nullptr) - 100000, 0}, {time(nullptr) - 100000, 0}};
    utimensat(AT_FDCWD, (folder_ + "/.part.left").c_str(), old, 0);
  };
  store_some(1);
  leave();
  int runs = 0;
  for (; runs < 100 && fs::exists(folder_ + "/.part.left"); ++runs) store_some(2);
  EXPECT_GE(runs, 4) << "counted for every process";
  EXPECT_LE(runs, 7) << "12,500 bytes were stored, and nobody counted";
  for (int i = 0; i < 200; ++i) store_some(2);
  EXPECT_LE(files().size(), 215u) << "the bound and its sixteenth";
}

TEST_F(KernelCacheTest, FoldersThatOthersWriteToAreNotUsed) {
  ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
  EXPECT_TRUE(KernelCache(folder_).usable());
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  KernelCache open(folder_);
  EXPECT_FALSE(open.usable());
  open.store(KernelCache::key_of("k"), "x");
  EXPECT_FALSE(open.find(KernelCache::key_of("k")));
  EXPECT_TRUE(files().empty());
  write(root_ + "/file", "");
  EXPECT_FALSE(KernelCache(root_ + "/file").usable());
  EXPECT_FALSE(KernelCache(root_ + "/file/below").usable());
  EXPECT_FALSE(KernelCache("").usable());
  EXPECT_FALSE(KernelCache(folder_, 0).usable());
}

TEST_F(KernelCacheTest, ProcessesMayShareAFolder) {
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      KernelCache cache(folder_, 3000);  // small: they also remove each other's entries
      bool sound = true;
      for (int round = 0; round < 200; ++round) {
        const std::string text = std::to_string(round % 7);
        if (auto found = cache.find(KernelCache::key_of(text)))
          sound &= *found == std::string(500, text[0]);
        else
          cache.store(KernelCache::key_of(text), std::string(500, text[0]));
        if (round % 20 == 0) cache.trim();
      }
      _exit(sound && cache.counts().damaged == 0 ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a process read something else than was stored";
  }
}

TEST_F(KernelCacheTest, KernelsAreTheSameBytesWithAndWithout) {
  const Target target = resolve_target(parse_target("llvm").value()).value();
  const std::vector<tir::PrimFunc> functions = {scale("tw_a", "2.0"), scale("tw_b", "3.0"), scale("tw_c", "4.0")};
  const auto plain = compile_kernels(functions, target, 2).value().objects;
  KernelCache cold(folder_);
  EXPECT_EQ(compile_kernels(functions, target, 2, {}, &cold).value().objects, plain);
  EXPECT_EQ(cold.counts().stored, 3u);
  KernelCache warm(folder_);
  EXPECT_EQ(compile_kernels(functions, target, 2, {}, &warm).value().objects, plain);
  EXPECT_EQ(warm.counts().hits, 3u);
  EXPECT_EQ(warm.counts().stored, 0u);
  // Another factor, another name or another target is another kernel.
  KernelCache other(folder_);
  const std::vector<tir::PrimFunc> changed = {scale("tw_a", "2.5"), scale("tw_d", "3.0")};
  EXPECT_EQ(compile_kernels(changed, target, 1, {}, &other).value().objects,
            compile_kernels(changed, target, 1).value().objects);
  EXPECT_EQ(other.counts().hits, 0u);
  KernelCache older(folder_);
  const Target narrow = resolve_target(parse_target("llvm -mcpu=x86-64-v3").value()).value();
  EXPECT_TRUE(compile_kernels(functions, narrow, 1, {}, &older).ok());
  EXPECT_EQ(older.counts().hits, 0u);
  // What was damaged is compiled again.
  for (const fs::path& file : files()) write(file, "nothing of use");
  KernelCache damaged(folder_);
  EXPECT_EQ(compile_kernels(functions, target, 2, {}, &damaged).value().objects, plain);
  EXPECT_EQ(damaged.counts().damaged, 3u);
  EXPECT_EQ(damaged.counts().stored, 3u);
}

TEST_F(KernelCacheTest, TheFolderFollowsTheEnvironment) {
  auto with = [](const char* own, const char* xdg, const char* home) {
    for (auto [name, value] :
         {std::pair("TILEWRIGHT_CACHE_DIR", own), std::pair("XDG_CACHE_HOME", xdg), std::pair("HOME", home)})
      value ? setenv(name, value, 1) : unsetenv(name);
    return default_kernel_cache_folder();
  };
  std::string saved[3];
  const char* names[3] = {"TILEWRIGHT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  bool set[3];
  for (int i = 0; i < 3; ++i) set[i] = getenv(names[i]) != nullptr, saved[i] = set[i] ? getenv(names[i]) : "";
  EXPECT_EQ(with("/own", "/xdg", "/user"), "/own/kernels");
  EXPECT_EQ(with(nullptr, "/xdg", "/user"), "/xdg/tilewright/kernels");
  EXPECT_EQ(with("", "relative", "/user"), "/user/.cache/tilewright/kernels");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
  for (int i = 0; i < 3; ++i) set[i] ? setenv(names[i], saved[i].c_str(), 1) : unsetenv(names[i]);
  EXPECT_FALSE(code_identity().empty());
}

}  // namespace
}  // namespace tilewright::codegen
