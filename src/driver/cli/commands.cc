// SPDX-License-Identifier: Apache-2.0
#include "driver/cli/commands.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "base/format.h"
#include "codegen/kernel_cache.h"

namespace tilewright::driver {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnknownPass:
    case ErrorCode::kUnknownTarget:
      return kExitUsage;
    case ErrorCode::kAccuracyExceeded:
      return kExitMismatch;
    case ErrorCode::kCodegenFailed:
    case ErrorCode::kLinkFailed:
    case ErrorCode::kCannotWrite:
      return kExitBuild;
    case ErrorCode::kInternal:
    case ErrorCode::kVerifyFailed:
      return kExitInternal;
    default:
      return kExitInput;
  }
}

int fail(const Diagnostic& diagnostic) {
  std::fprintf(stderr, "%s\n", diagnostic.str().c_str());
  return exit_code(diagnostic.code);
}

Result<std::pair<std::string, std::vector<int64_t>>> parse_shape(const std::string& text) {
  auto bad = [&](const std::string& why) {
    return Diagnostic(ErrorCode::kInvalidArgument, format("--shape {}: {}", text, why), {}, "write --shape input=1x3x224x224");
  };
  size_t eq = text.rfind('=');
  if (eq == std::string::npos || eq == 0) return bad("no input name");
  std::vector<int64_t> dims;
  for (size_t at = eq + 1; at <= text.size();) {
    size_t end = std::min(text.find('x', at), text.size());
    int64_t d = 0;
    auto [p, err] = std::from_chars(text.data() + at, text.data() + end, d);
    if (err != std::errc() || p != text.data() + end || d < 0) return bad(format("'{}' is not a size", text.substr(at, end - at)));
    dims.push_back(d);
    at = end + 1;
  }
  return std::pair{text.substr(0, eq), dims};
}

Result<std::pair<std::string, std::string>> parse_constant(const std::string& text) {
  const size_t eq = text.find('=');
  if (eq == std::string::npos || eq == 0)
    return Diagnostic(ErrorCode::kInvalidArgument, format("--constant {}: no input name", text), {}, "write --constant name=1,3,640,640");
  return std::pair{text.substr(0, eq), text.substr(eq + 1)};
}

void CompileFlags::add_to(CLI::App* app) {
  app->add_option("--target", target, "What to generate code for, for instance \"llvm -mcpu=x86-64-v3\"; default: this machine");
  app->add_option("--math", math, "'strict' leaves out algorithms that reassociate products (Winograd); 'default' bounds their error")
      ->check(CLI::IsMember({"strict", "default"}));
  app->add_option("--opt-level,-O", opt_level, "0 to 4; default 3")->check(CLI::Range(0, 4));
  app->add_option("--shape", shapes, "Size of an input, name=1x3x224x224; needed where the model leaves sizes free");
  app->add_option("--constant", constants, "Values of an input that becomes part of the model: name=1,3,640,640 or name=@tensor.pb");
  app->add_option("--require-pass", required, "Run a pass whatever the level");
  app->add_option("--disable-pass", disabled, "Leave a pass out");
  app->add_option("--dump-ir", dump_ir, "Write the module after each pass into this folder");
  app->add_option("--jobs,-j", jobs, "Code generation threads; default: one per core")->check(CLI::Range(0, 1024));
  app->add_flag("--no-kernel-cache", no_kernel_cache, "Compile every kernel anew and keep none (TILEWRIGHT_CACHE_DIR says where they are kept)");
  app->add_flag("--quiet,-q", quiet, "Say nothing but errors");
}

Result<BuildOptions> CompileFlags::options() const {
  BuildOptions o;
  o.target = math.empty() ? target : target + " -math=" + math;
  o.opt_level = opt_level;
  o.jobs = jobs;
  if (!no_kernel_cache) o.kernel_cache = codegen::default_kernel_cache_folder();
  o.dump_ir = dump_ir;
  o.required_passes = required;
  o.disabled_passes = disabled;
  for (const auto& text : shapes) {
    auto [name, dims] = TW_TRY(parse_shape(text));
    o.shapes[name] = dims;
  }
  for (const auto& text : constants) {
    auto [name, value] = TW_TRY(parse_constant(text));
    o.constants[name] = value;
  }
  return o;
}

ProgressLine::ProgressLine(bool quiet) : active_(!quiet && isatty(2)) {}
Progress ProgressLine::callback() {
  if (!active_) return {};
  return [](const char* stage, double fraction) {
    if (fraction > 0)
      std::fprintf(stderr, "\r\033[K%s %3.0f%%", stage, fraction * 100);
    else
      std::fprintf(stderr, "\r\033[K%s ...", stage);
    std::fflush(stderr);
  };
}
void ProgressLine::clear() {
  if (active_) std::fprintf(stderr, "\r\033[K");
}

}  // namespace tilewright::driver
