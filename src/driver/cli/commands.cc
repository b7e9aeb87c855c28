// SPDX-License-Identifier: Apache-2.0
#include "driver/cli/commands.h"

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdio>

#include "base/format.h"
#include "codegen/kernel_cache.h"
#include "driver/plugin.h"

namespace tilewright::driver {

int fail(const Diagnostic& diagnostic) {
  std::fprintf(stderr, "%s\n", diagnostic.str().c_str());
  return exit_code(diagnostic.code);
}

Status add_shapes(const std::vector<std::string>& texts, BuildOptions* options) {
  constexpr size_t kMostVariants = 64;
  std::map<std::string, std::vector<std::vector<int64_t>>> shapes;  // for each variant
  size_t variants = 1;
  for (const std::string& text : texts) {
    auto bad = [&](const std::string& why) {
      return Diagnostic(ErrorCode::kInvalidArgument, format("--shape {}: {}", text, why), {},
                        "write --shape input=1x3x224x224, or input=1x3x48x{160,320} for several shapes");
    };
    const size_t eq = text.rfind('=');
    if (eq == std::string::npos || eq == 0) return bad("no input name");
    // Each size is a number or a list of numbers.
    std::vector<std::vector<int64_t>> sizes;
    size_t count = 1;
    for (size_t at = eq + 1; at <= text.size();) {
      const bool several = at < text.size() && text[at] == '{';
      const size_t close = several ? text.find('}', at) : std::string::npos;
      if (several && close == std::string::npos) return bad("a list is not closed with }");
      const size_t end = several ? close + 1 : std::min(text.find('x', at), text.size());
      if (several && end < text.size() && text[end] != 'x') return bad("a list is followed by something else than x");
      const size_t last = several ? close : end;
      std::vector<int64_t> list;
      for (size_t from = several ? at + 1 : at; from <= last;) {
        const size_t to = several ? std::min(text.find(',', from), last) : last;
        int64_t d = 0;
        auto [p, err] = std::from_chars(text.data() + from, text.data() + to, d);
        if (err != std::errc() || p != text.data() + to || d < 0)
          return bad(format("'{}' is not a size", text.substr(from, to - from)));
        list.push_back(d);
        from = to + 1;
      }
      if (list.size() > 1 && count > 1 && list.size() != count) return bad("its lists have different lengths");
      count = std::max(count, list.size());
      sizes.push_back(std::move(list));
      at = end + 1;
    }
    if (count > 1 && variants > 1 && count != variants)
      return bad(format("{} shapes, where another input has {}", count, variants));
    variants = std::max(variants, count);
    if (variants > kMostVariants) return bad(format("more than {} shapes", kMostVariants));
    auto& of_input = shapes[text.substr(0, eq)];
    of_input.assign(count, {});
    for (size_t v = 0; v < count; ++v)
      for (const auto& list : sizes) of_input[v].push_back(list[list.size() == 1 ? 0 : v]);
  }
  options->more_shapes.resize(variants - 1);
  for (const auto& [name, list] : shapes)
    for (size_t v = 0; v < variants; ++v)
      (v == 0 ? options->shapes : options->more_shapes[v - 1])[name] = list[list.size() == 1 ? 0 : v];
  return Ok{};
}

Result<std::pair<std::string, std::string>> parse_constant(const std::string& text) {
  const size_t eq = text.find('=');
  if (eq == std::string::npos || eq == 0)
    return Diagnostic(ErrorCode::kInvalidArgument, format("--constant {}: no input name", text), {},
                      "write --constant name=1,3,640,640");
  return std::pair{text.substr(0, eq), text.substr(eq + 1)};
}

void CompileFlags::add_model_to(CLI::App* app) {
  app->add_option(
      "--target", target,
      "What to generate code for, for instance \"llvm -mcpu=x86-64-v3\"; default: this machine. \"portable\", or a "
      "list such as \"llvm -mcpu=x86-64-v3,x86-64-v4\": kernels for each in one library");
  app->add_option("--math", math,
                  "'strict' leaves out algorithms that reassociate products (Winograd); 'default' bounds their error; "
                  "'bf16' rounds what is multiplied by constant weights to bfloat16 where the processor is faster so")
      ->check(CLI::IsMember({"strict", "default", "bf16"}));
  app->add_option("--opt-level,-O", opt_level, "0 to 4; default 3")->check(CLI::Range(0, 4));
  app->add_option("--shape", shapes,
                  "Size of an input, name=1x3x224x224; needed where the model leaves sizes free. "
                  "name=1x3x48x{160,320}: several, in one library");
  app->add_option("--constant", constants,
                  "Values of an input that becomes part of the model: name=1,3,640,640 or name=@tensor.pb");
  app->add_option("--params", params, "The weights of a Relay module: a .params file, bound by name")
      ->type_name("FILE");
  app->add_option("--require-pass", required, "Run a pass whatever the level");
  app->add_option("--disable-pass", disabled, "Leave a pass out");
  app->add_option("--plugin", plugins, "A shared library with code generators of your own (docs/external-codegen.md)")
      ->type_name("FILE");
  app->add_flag("--quiet,-q", quiet, "Say nothing but errors");
}

void CompileFlags::add_to(CLI::App* app) {
  add_model_to(app);
  app->add_option("--dump-ir", dump_ir, "Write the module after each pass into this folder");
  app->add_option("--jobs,-j", jobs, "Code generation threads; default: one per core")->check(CLI::Range(0, 1024));
  app->add_flag("--no-kernel-cache", no_kernel_cache,
                "Compile every kernel anew and keep none (TILEWRIGHT_CACHE_DIR says where they are kept)");
}

Result<BuildOptions> CompileFlags::options() const {
  BuildOptions o;
  o.target = math.empty() ? target : target + " -math=" + math;
  o.opt_level = opt_level;
  o.jobs = jobs;
  if (!no_kernel_cache) o.kernel_cache = codegen::default_kernel_cache_folder();
  o.dump_ir = dump_ir;
  o.params = params;
  o.required_passes = required;
  o.disabled_passes = disabled;
  TW_TRY_STATUS(add_shapes(shapes, &o));
  o.bounds = TW_TRY(parse_bounds(bounds));
  for (const auto& text : constants) {
    auto [name, value] = TW_TRY(parse_constant(text));
    o.constants[name] = value;
  }
  for (const std::string& path : plugins) TW_TRY_STATUS(load_plugin(path, &o.external));
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
