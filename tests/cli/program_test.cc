// SPDX-License-Identifier: Apache-2.0
// The tilewright program itself: verbs, inputs, outputs, errors and exit codes.
#include <sys/wait.h>

#include <cmath>

#include "inputs/file.h"
#include "inputs/input_spec.h"
#include "inputs/npy.h"
#include "inputs/picture.h"
#include "runtime/artifact_maker.h"
#include "test_folders.h"

namespace tilewright::cli {
namespace {
using inputs::load_picture;
using inputs::PictureOptions;
using inputs::read_tensor_file;
using inputs::write_npy;
using inputs::write_npz;
using testing::ArtifactSource;
using testing::make_artifact;
using testing::small_model;
using testing::TempFolder;

struct Outcome {
  int code;
  std::string out, err;
};

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override { make_artifact(small_model(), folder_ / "m.so"); }
  Outcome run(const std::string& arguments) {
    std::string command =
        "cd " + (folder_ / ".") + " && " TW_BUILD_DIR "/tilewright " + arguments + " >out.txt 2>err.txt";
    int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, testing::read_file(folder_ / "out.txt"),
            testing::read_file(folder_ / "err.txt")};
  }
  void expect_error(const std::string& arguments, int code, const std::string& text) {
    Outcome o = run(arguments);
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    EXPECT_NE(o.err.find(text), std::string::npos) << arguments << "\n" << o.err;
    EXPECT_EQ(o.out, "") << arguments;
  }
  void write(const std::string& name, const std::string& bytes) { testing::write_file(folder_ / name, bytes); }
  TempFolder folder_;
};

TEST_F(ProgramTest, RunsAndWritesOutputs) {
  Tensor x = Tensor::zeros(kFloat32, {4, 16});
  for (int i = 0; i < 64; ++i) x.set_double(i, i);
  write("x.npy", *write_npy(x));
  write("both.npz", *write_npz({{"unused", Tensor::zeros(kFloat32, {2})}, {"x", x}}));
  for (const char* input : {"x=@x.npy", "@x.npy", "@both.npz", "x=@both.npz", "@both.npz:x"}) {
    Outcome o = run(std::string("run m.so --threads 2 --output @y.npz --input ") + input);
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("y  float32 4x16  min 0  max 480"), std::string::npos) << o.out;
    auto y = read_tensor_file(folder_ / "y.npz");
    ASSERT_TRUE(y.ok()) << y.error().str();
    EXPECT_EQ((*y)[0].first, "y");
    EXPECT_EQ((*y)[0].second.at_double(63), 480);
  }
  ASSERT_EQ(run("run m.so --output y.pb --input ones").code, 0);
  auto y = read_tensor_file(folder_ / "y.pb");
  ASSERT_TRUE(y.ok());
  EXPECT_EQ((*y)[0].second.at_double(15), 15);
}

TEST_F(ProgramTest, JsonHasWhatScriptsNeed) {
  Outcome o = run("run m.so --json --repeat 5 --warmup 2 --top 2 --input 1");
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* key :
       {"\"load_ms\":", "\"first_ms\":", "\"min_ms\":", "\"median_ms\":", "\"peak_rss_bytes\":", "\"threads\":",
        "\"runs\":5", "\"outputs\":[{\"name\":\"y\",\"dtype\":\"float32\",\"shape\":[4,16]",
        "\"top\":[{\"index\":15,\"value\":15}"})
    EXPECT_NE(o.out.find(key), std::string::npos) << key << " in " << o.out;
  Outcome b = run("bench m.so --json --time 0.05 --warmup-time 0");
  ASSERT_EQ(b.code, 0) << b.err;
  EXPECT_NE(b.out.find("\"median_ms\":"), std::string::npos);
  EXPECT_NE(b.out.find("\"kernel\":\"scale\""), std::string::npos);
}

TEST_F(ProgramTest, ShowsTheLargestWithLabels) {
  Outcome o = run("run m.so --top 3 --input 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15," + [] {
    std::string rest;
    for (int i = 16; i < 64; ++i) rest += (i > 16 ? ",-1" : "-1");
    return rest;
  }());
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("    15           120"), std::string::npos) << o.out;
  write("labels.txt", "zero\r\none\ntwo\n");
  o = run("run m.so --top 64 --labels labels.txt --input 1");
  EXPECT_NE(o.out.find("two"), std::string::npos) << o.out;
}

TEST_F(ProgramTest, ProfilesAndTraces) {
  Outcome o = run("run m.so --profile --trace t.json");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("Mul_1"), std::string::npos);
  EXPECT_NE(testing::read_file(folder_ / "t.json").find("\"traceEvents\""), std::string::npos);
  EXPECT_EQ(run("bench m.so --time 0.05 --warmup-time 0").code, 0);
}

TEST_F(ProgramTest, SeedsMakeEqualInputs) {
  auto result = [&](const std::string& options) {
    EXPECT_EQ(run("run m.so --output y.npy " + options).code, 0);
    return testing::read_file(folder_ / "y.npy");
  };
  EXPECT_EQ(result("--seed 3"), result("--seed 3 --threads 2"));
  EXPECT_NE(result("--seed 3"), result("--seed 4"));
}

TEST_F(ProgramTest, ErrorsAreOneSentenceWithACode) {
  write("bad.npy", "not numpy");
  write("short.npy", *write_npy(Tensor::zeros(kFloat32, {3, 16})));
  write("double.npy", *write_npy(Tensor::zeros(kFloat64, {4, 16})));
  write("text.so", "just text");
  expect_error("", 1, "Usage");
  expect_error("frobnicate", 1, "error[E101 InvalidArgument]");
  expect_error("run", 1, "MODEL");
  expect_error("run m.so --unknown", 1, "--unknown");
  expect_error("run m.so --threads many", 1, "error[E101");
  expect_error("run m.so --thread=2", 1, "did you mean --threads?");
  expect_error("run m.so --zzz", 1, "hint: try 'tilewright run --help'");
  expect_error("run absent.so", 2, "error[E102 FileNotFound]");
  expect_error("run text.so", 2, "error[E501 BadArtifact]");
  expect_error("run m.so --input z=zeros", 2, "error[E504 UnknownInput]");
  expect_error("run m.so --input z=zeros", 2, "'x' (float32 4x16)");
  expect_error("run m.so --input @absent.npy", 2, "error[E102 FileNotFound]");
  expect_error("run m.so --input @bad.npy", 2, "error[E201 MalformedModel]");
  expect_error("run m.so --input @short.npy", 2, "error[E505 ShapeMismatch]");
  expect_error("run m.so --input @double.npy", 2, "error[E506 DtypeMismatch]");
  expect_error("run m.so --input 1,2,3", 2, "error[E505 ShapeMismatch]");
  expect_error("run m.so --input banana", 1, "error[E101 InvalidArgument]");
  expect_error("run m.so --input random,low=5,high=1", 1, "low below high");
  expect_error("run m.so --output /nonexistent/y.npz", 4, "error[E103 CannotWrite]");
  expect_error("benhc m.so", 1, "there is no verb 'benhc'");
  expect_error("benhc m.so", 1, "did you mean bench?");
  expect_error("run m.so --output y.txt", 1, ".npz");
}

TEST_F(ProgramTest, LibrariesOfOtherVersionsAndProcessorsAreRefused) {
  ArtifactSource other = small_model();
  other.symbol = "tw_artifact_v2";
  make_artifact(other, folder_ / "version.so");
  other = small_model();
  other.plan.cpu_features = {"avx1024f"};
  make_artifact(other, folder_ / "cpu.so");
  for (const char* verb : {"run", "bench"}) {
    expect_error(std::string(verb) + " version.so", 2, "error[E502 ArtifactVersion]");
    expect_error(std::string(verb) + " cpu.so", 2, "error[E503 CpuMismatch]");
  }
}

// A limit on the size of files stands for the disk that is full. What is said goes through a pipe, which has none.
TEST_F(ProgramTest, AFullDiskLeavesNoOutput) {
  const std::string command = "cd " + (folder_ / ".") +
                              " && ( trap '' XFSZ; ulimit -f 0; " TW_BUILD_DIR
                              "/tilewright run m.so --output @y.npz; echo code $? ) 2>&1 | cat >said.txt";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string said = testing::read_file(folder_ / "said.txt");
  EXPECT_NE(said.find("error[E103 CannotWrite]"), std::string::npos) << said;
  EXPECT_NE(said.find("code 4"), std::string::npos) << said;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "."))
    EXPECT_EQ(entry.path().filename().string().find("npz"), std::string::npos) << entry.path();
}

TEST_F(ProgramTest, HelpExplains) {
  for (const char* verb : {"", "run ", "bench "}) {
    Outcome o = run(std::string(verb) + "--help");
    EXPECT_EQ(o.code, 0);
    EXPECT_NE(o.out.find("Examples:"), std::string::npos) << verb;
    for (size_t at = 0, end; at < o.out.size(); at = end + 1) {
      end = std::min(o.out.find('\n', at), o.out.size());
      EXPECT_LE(end - at, 132u) << o.out.substr(at, end - at);
    }
  }
  EXPECT_NE(run("--help").out.find("compile"), std::string::npos);
  EXPECT_EQ(run("--version").out.rfind("tilewright ", 0), 0u);
}

// A 4x2 picture in binary PPM: left half red, right half blue.
std::string picture() {
  std::string ppm = "P6 4 2 255\n";
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 4; ++x) ppm += x < 2 ? std::string("\xff\0\0", 3) : std::string("\0\0\xff", 3);
  return ppm;
}

TEST_F(ProgramTest, PicturesBecomeTensors) {
  write("p.ppm", picture());
  std::string path = folder_ / "p.ppm";
  std::vector<int64_t> nchw = {1, 3, 2, 4}, nhwc = {1, 2, 4, 3};
  auto t = load_picture(path, {}, kFloat32, nchw);
  ASSERT_TRUE(t.ok()) << t.error().str();
  EXPECT_FLOAT_EQ(static_cast<float>(t->at_double(0)), 1);       // red plane, left
  EXPECT_FLOAT_EQ(static_cast<float>(t->at_double(3)), 0);       // red plane, right
  EXPECT_FLOAT_EQ(static_cast<float>(t->at_double(16 + 3)), 1);  // blue plane, right
  PictureOptions bgr{.color = "bgr"};
  EXPECT_EQ(load_picture(path, bgr, kFloat32, nchw)->at_double(3), 1);
  EXPECT_EQ(load_picture(path, {}, kUInt8, nhwc)->at_int(0), 255);
  PictureOptions normalised{.mean = {0.5, 0.25, 0}, .std = {0.5, 0.5, 0.25}};
  t = load_picture(path, normalised, kFloat32, nhwc);
  EXPECT_FLOAT_EQ(static_cast<float>(t->at_double(0)), 1);
  EXPECT_FLOAT_EQ(static_cast<float>(t->at_double(1)), -0.5);
  EXPECT_FLOAT_EQ(static_cast<float>(t->at_double(11)), 4);
  PictureOptions cut{.shorter = 4, .crop = 4};
  t = load_picture(path, cut, kUInt8, {1, 3, 4, 4});
  ASSERT_TRUE(t.ok()) << t.error().str();
  EXPECT_EQ(t->at_int(0), 255);
  EXPECT_EQ(t->at_int(3), 0);
  EXPECT_FALSE(load_picture(path, {.crop = 3}, kFloat32, nchw).ok());
  EXPECT_FALSE(load_picture(path, {}, kFloat32, {10}).ok());
  EXPECT_FALSE(load_picture(folder_ / "m.so", {}, kFloat32, nchw).ok());
}

TEST_F(ProgramTest, ResizingMatchesTheFiltersOfPillowAndOpenCV) {
  // A ramp 0..70 in steps of 10, shrunk to 4: the triangle of support 2 averages neighbours, two taps take the middle
  // pair.
  std::string ppm = "P5 8 1 255\n";
  for (int i = 0; i < 8; ++i) ppm += static_cast<char>(i * 10);
  write("ramp.pgm", ppm);
  auto wide = load_picture(folder_ / "ramp.pgm", {}, kUInt8, {1, 1, 1, 4});
  auto narrow = load_picture(folder_ / "ramp.pgm", {.antialias = false}, kUInt8, {1, 1, 1, 4});
  ASSERT_TRUE(wide.ok() && narrow.ok());
  const int two_taps[] = {5, 25, 45, 65};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(narrow->at_int(i), two_taps[i]);
  EXPECT_EQ(wide->at_int(1), 25);
  EXPECT_EQ(wide->at_int(0), 7);  // (3*0 + 3*10 + 1*20) / 7
}

TEST_F(ProgramTest, PicturesWorkOnTheCommandLine) {
  ArtifactSource source = small_model();
  source.plan.inputs[0].shape = {1, 1, 4, 16};
  make_artifact(source, folder_ / "p.so");
  write("p.ppm", picture());
  EXPECT_EQ(run("run p.so --input @p.ppm,mean=0.5,std=0.5").code, 0);
  EXPECT_EQ(run("run p.so --input x=@p.ppm,resize=16x4,scale=0.01,color=gray,layout=nchw,filter=bilinear").code, 0);
  expect_error("run p.so --input @p.ppm,resize=8x4", 2, "error[E505 ShapeMismatch]");
  expect_error("run p.so --input @p.ppm,rotate=90", 1, "rotate");
  expect_error("run p.so --input @p.ppm,mean=1,2,3", 1, "3 values");
  expect_error("run p.so --input @out.txt", 2, "cannot be decoded");
}

TEST_F(ProgramTest, BenchShowsKernelsBesideTheirRooflines) {
  Outcome o = run("bench m.so --kernels --time 0.05 --warmup-time 0.01 --threads 1");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("peak on 1 thread: "), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("rank correlation of predicted and measured"), std::string::npos) << o.out;
  o = run("bench m.so --kernels --json --time 0.05 --warmup-time 0.01 --threads 2");
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* key :
       {"\"gflops\":", "\"L2_gbps\":", "\"share_of_roofline\":", "\"predicted_us\":", "\"rank_correlation\":"})
    EXPECT_NE(o.out.find(key), std::string::npos) << o.out;
}

TEST_F(ProgramTest, RunTakesTheVariantOfTheGivenShape) {
  ArtifactSource source = small_model();
  plan::Plan other = source.plan;  // the same kernels, said to be of another shape with as many elements
  other.inputs[0].shape = other.outputs[0].shape = {64, 1};
  source.plan.variants = {other};
  make_artifact(source, folder_ / "v.so");
  write("tall.npy", *write_npy(Tensor::zeros(kFloat32, {64, 1})));
  write("none.npy", *write_npy(Tensor::zeros(kFloat32, {32, 2})));
  Outcome o = run("run v.so --input @tall.npy");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("y  float32 64x1"), std::string::npos) << o.out;
  o = run("run v.so");
  EXPECT_NE(o.out.find("y  float32 4x16"), std::string::npos) << o.out;
  expect_error("run v.so --input @none.npy", 2, "the model was compiled for x 4x16; or x 64x1");
}

}  // namespace
}  // namespace tilewright::cli
