// SPDX-License-Identifier: Apache-2.0
// What a user can do wrong with `compile` and `verify`: one error with a code and an exit code each, and no file left.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "driver/build.h"
#include "driver/cli/commands.h"
#include "driver/command.h"
#include "runtime/artifact_maker.h"
#include "test_folders.h"
#include "tilewright/runtime.h"

namespace tilewright::driver {
namespace {

using tilewright::testing::command;
using tilewright::testing::read_file;
using tilewright::testing::Said;
using tilewright::testing::TempFolder;
using tilewright::testing::write_file;

const std::string kConvnet = TW_TEST_DATA "/onnx/convnet.onnx";
const std::string kShape = "x=1x3x8x8";

size_t entries(const std::string& folder) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(BadInput, OfCompile) {
  TempFolder in, out;
  const std::string bytes = read_file(kConvnet);
  std::string strange = bytes;
  strange.replace(strange.find("Relu"), 4, "Rely");
  write_file(in / "cut.onnx", bytes.substr(0, bytes.size() / 2));
  write_file(in / "text.onnx", "this is no model");
  write_file(in / "strange.onnx", strange);
  struct {
    std::vector<std::string> words;
    int code;
    const char* says;
  } cases[] = {
      {{in / "absent.onnx"}, kExitInput, "error[E102 FileNotFound]"},
      {{in / "cut.onnx"}, kExitInput, "error[E201 MalformedModel]"},
      {{in / "text.onnx"}, kExitInput, "error[E201 MalformedModel]"},
      {{in / "strange.onnx"}, kExitInput, "error[E202 UnsupportedOp]"},
      {{in / "strange.onnx"}, kExitInput, "Rely"},
      {{kConvnet, "--shape", "z=1x3x8x8"}, kExitInput, "error[E504 UnknownInput]"},
      {{kConvnet, "--shape", "x=1x5x8x8"}, kExitInput, "error["},
      {{kConvnet, "--shape", "x=banana"}, kExitUsage, "error[E101 InvalidArgument]"},
      {{kConvnet, "--shapes", "x=1x3x8x8"}, kExitUsage, "did you mean --shape?"},
      {{kConvnet, "--shape", kShape, "-o", "/proc/m.so"}, kExitBuild, "error[E103 CannotWrite]"},
      {{kConvnet, "--shape", kShape, "-o", out / "no/m.so"}, kExitBuild, "error[E103 CannotWrite]"},
      {{kConvnet, "--shape", kShape, "-o", out / "no/m.tar"}, kExitBuild, "error[E103 CannotWrite]"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words{"compile"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    if (std::find(words.begin(), words.end(), "-o") == words.end()) words.insert(words.end(), {"-o", out / "m.so"});
    const Said said = command(words);
    EXPECT_EQ(said.code, c.code) << c.says << "\n" << said.error;
    EXPECT_NE(said.error.find(c.says), std::string::npos) << said.error;
    EXPECT_EQ(entries(out / "."), 0u) << said.error;
  }
}

// A limit on the size of files stands for the disk that is full: writing fails in the same places, one after the other
// as the limit grows. A failure inside the linker would end the process.
TEST(BadInput, AFullDiskLeavesNoFile) {
  TempFolder out;
  const std::string sizes = TW_TEST_DATA "/onnx/free_sizes.onnx";  // a VM program: weights that the linker copies
  for (const char* form : {"m.so", "m.a", "m.o", "m.tar", "m.ll", "m.bc", "vm.so"}) {
    const bool program = std::string(form) == "vm.so";
    bool done = false;
    for (rlim_t limit = 0; !done; limit += limit < 30000 ? 1500 : limit / 2) {
      ASSERT_LT(limit, rlim_t{1} << 24) << form;
      const pid_t child = fork();
      if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        rlimit size{limit, limit};
        setrlimit(RLIMIT_FSIZE, &size);
        const std::string path = out / form;
        std::vector<const char*> words{"tilewright", "compile",    program ? sizes.c_str() : kConvnet.c_str(),
                                       "-o",         path.c_str(), "--quiet"};
        if (!program) words.insert(words.end(), {"--shape", kShape.c_str()});
        _exit(tw_compiler_main(static_cast<int>(words.size()), words.data()));
      }
      int status = -1;
      waitpid(child, &status, 0);
      ASSERT_TRUE(WIFEXITED(status)) << form << " " << limit << ": signal " << WTERMSIG(status);
      done = WEXITSTATUS(status) == 0;
      EXPECT_EQ(entries(out / "."), done ? 1u : 0u) << form << " " << limit;
      if (done) std::filesystem::remove(out / form);
      ASSERT_TRUE(done || WEXITSTATUS(status) == kExitBuild) << form << " " << limit << ": " << WEXITSTATUS(status);
    }
  }
}

// What --dump-ir and passes -o write is whole, too.
TEST(BadInput, AFullDiskLeavesNoText) {
  TempFolder out;
  std::filesystem::create_directory(out / "ir");
  const std::string text = TW_TEST_DATA "/classic/smallnet.relay";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"compile", kConvnet, "--shape", kShape, "-o", out / "ir/m.so", "--dump-ir",
                                 out / "ir"},
        std::vector<std::string>{"passes", "--run", "FoldConstant", text, "-o", out / "ir/m.txt"}}) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      rlimit size{40, 40};
      setrlimit(RLIMIT_FSIZE, &size);
      std::vector<const char*> argv{"tilewright"};
      for (const auto& w : words) argv.push_back(w.c_str());
      _exit(tw_compiler_main(static_cast<int>(argv.size()), argv.data()));
    }
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), kExitBuild) << words[0];
    EXPECT_EQ(entries(out / "ir"), 0u) << words[0];
  }
}

TEST(BadInput, AFolderIsNoText) {
  TempFolder in;
  const Said said = command({"passes", "--run", "FoldConstant", in / "."});
  EXPECT_EQ(said.code, kExitInput);
  EXPECT_NE(said.error.find("error[E102 FileNotFound]"), std::string::npos) << said.error;
}

// Ctrl-C at any moment: the program says so, ends by the signal, and leaves neither a file nor a folder.
// Whether the process has said yet what it does on Ctrl-C.
bool handles_interrupts(pid_t process) {
  const std::string status = read_file("/proc/" + std::to_string(process) + "/status");
  const size_t at = status.find("SigCgt:");
  return at != std::string::npos && (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
}

TEST(BadInput, InterruptedWorkLeavesNothing) {
  TempFolder out, temporary;
  const std::string program = TW_BUILD_DIR "/tilewright", library = out / "m.so", said = out / "said";
  struct {
    std::vector<const char*> words;
    bool ends;
  } cases[] = {
      {{program.c_str(), "compile", kConvnet.c_str(), "--shape", kShape.c_str(), "--no-kernel-cache", "--quiet", "-o",
        library.c_str(), nullptr},
       true},
      {{program.c_str(), "verify", kConvnet.c_str(), "--shape", kShape.c_str(), "--no-kernel-cache", nullptr}, true},
      {{program.c_str(), "run", library.c_str(), "--repeat", "100000000", nullptr}, false},
  };
  int interrupted = 0;
  for (const auto& c : cases) {
    for (int delay_ms = 20; delay_ms < 320; delay_ms += c.ends ? 20 : 150) {
      if (!c.ends) {
        ASSERT_EQ(command({"compile", kConvnet, "--shape", kShape, "-o", library, "--quiet"}).code, 0);
      }
      const pid_t child = fork();
      if (child == 0) {
        setenv("TMPDIR", (temporary / ".").c_str(), 1);
        signal(SIGINT, SIG_DFL);
        dup2(open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
        dup2(open("/dev/null", O_WRONLY), 1);
        execv(program.c_str(), const_cast<char* const*>(c.words.data()));
        _exit(99);
      }
      usleep(static_cast<useconds_t>(delay_ms) * 1000);
      const bool handled = handles_interrupts(child);
      kill(child, SIGINT);
      int status = -1;
      waitpid(child, &status, 0);
      const bool by_signal = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
      interrupted += by_signal;
      EXPECT_TRUE(by_signal || (c.ends && WIFEXITED(status) && WEXITSTATUS(status) == 0))
          << c.words[1] << " " << status << ": " << read_file(said);
      if (by_signal && handled) {
        EXPECT_NE(read_file(said).find("error[E603 Interrupted]"), std::string::npos) << c.words[1];
      }
      std::filesystem::remove(library);
      std::filesystem::remove(said);
      EXPECT_EQ(entries(out / "."), 0u) << c.words[1] << " after " << delay_ms << " ms";
      EXPECT_EQ(entries(temporary / "."), 0u) << c.words[1] << " after " << delay_ms << " ms";
    }
  }
  EXPECT_GT(interrupted, 2);
}

// Somebody removes the folder that the linker writes into, just then: its fatal errors are errors, not the program's
// end.
TEST(BadInput, WorkFoldersThatVanish) {
  TempFolder out;
  const std::string program = TW_BUILD_DIR "/tilewright", library = out / "m.so", said = out / "said";
  int failed = 0;
  for (int tries = 0; tries < 40 && failed < 3; ++tries) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      execl(program.c_str(), program.c_str(), "compile", kConvnet.c_str(), "--shape", kShape.c_str(),
            "--no-kernel-cache", "--quiet", "-o", library.c_str(), nullptr);
      _exit(99);
    }
    int status = -1;
    while (waitpid(child, &status, WNOHANG) == 0) {
      std::error_code ignored;
      for (const auto& folder : std::filesystem::directory_iterator(out / ".", ignored))
        for (const auto& file : std::filesystem::directory_iterator(folder.path(), ignored))
          if (file.path().filename().string().find(".tmp") != std::string::npos)  // what becomes the library
            std::filesystem::remove_all(folder.path(), ignored);
    }
    ASSERT_TRUE(WIFEXITED(status)) << status;
    const int code = WEXITSTATUS(status);
    EXPECT_TRUE(code == 0 || code == kExitBuild || code == kExitInput) << code << ": " << read_file(said);
    if (code != 0) {
      EXPECT_NE(read_file(said).find("error[E"), std::string::npos) << code;
    }
    failed += code != 0;
    std::filesystem::remove(library);
  }
  EXPECT_GT(failed, 0);
}

// A folder in the layout of the ONNX backend tests; the compiled model itself says what is expected.
class CaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "cases/convnet/test_data_set_0");
    std::filesystem::copy_file(kConvnet, folder_ / "cases/convnet/model.onnx");
    ASSERT_EQ(command({"compile", kConvnet, "--shape", kShape, "-o", folder_ / "m.so", "--quiet"}).code, 0);
    Model model(folder_ / "m.so");
    Executor executor(model, 1);
    std::vector<float> x(192);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 37);
    executor.set_input("x", x, {1, 3, 8, 8});
    executor.run();
    write("input_0.pb", "x", Tensor::from<float>(kFloat32, {1, 3, 8, 8}, x));
    const DLTensor y = executor.output(0);
    output_ = model.outputs()[0].name;
    const auto values = executor.output<float>(0);
    expected_ =
        Tensor::from<float>(kFloat32, {y.shape, y.shape + y.ndim}, std::vector<float>(values.begin(), values.end()));
    write("output_0.pb", output_, expected_);
  }
  void write(const std::string& name, const std::string& tensor, const Tensor& data) const {
    std::string bytes;  // a TensorProto: dims, data_type, name, raw_data
    {
      protozero::pbf_writer proto(bytes);
      for (int64_t d : data.shape()) proto.add_int64(1, d);
      proto.add_int32(2, 1);
      proto.add_string(8, tensor);
      proto.add_bytes(9, reinterpret_cast<const char*>(data.raw()), data.bytes());
    }
    write_file(folder_ / ("cases/convnet/test_data_set_0/" + name), bytes);
  }
  TempFolder folder_;
  std::string output_;
  Tensor expected_;
};

TEST_F(CaseTest, PassesFailsAndRunsOutOfTime) {
  Said said = command({"verify", folder_ / "cases"});
  EXPECT_EQ(said.code, kExitOk) << said.out << said.error;
  EXPECT_NE(said.out.find("1 passed, 0 failed, 0 unsupported"), std::string::npos) << said.out;

  said = command({"verify", folder_ / "cases/convnet", "--time-limit", "0"});
  EXPECT_EQ(said.code, kExitMismatch);
  EXPECT_NE(said.out.find("convnet: failed: TimeLimit the case took more than 0 s"), std::string::npos) << said.out;

  Tensor wrong = Tensor::zeros(expected_.dtype(), expected_.shape());
  for (int64_t i = 0; i < wrong.size(); ++i) wrong.set_double(i, expected_.at_double(i) + 1);
  write("output_0.pb", output_, wrong);
  said = command({"verify", folder_ / "cases"});
  EXPECT_EQ(said.code, kExitMismatch);
  EXPECT_NE(said.out.find("0 passed, 1 failed, 0 unsupported"), std::string::npos) << said.out;
}

TEST_F(CaseTest, AFolderWithoutCasesIsAnError) {
  std::filesystem::create_directory(folder_ / "empty");
  const Said said = command({"verify", folder_ / "cases", folder_ / "empty"});
  EXPECT_EQ(said.code, kExitInput);
  EXPECT_NE(said.error.find("error[E102 FileNotFound]"), std::string::npos) << said.error;
}

}  // namespace
}  // namespace tilewright::driver
