// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "codegen/backend.h"
#include "driver/cli/commands.h"
#include "driver/cli/explain.h"
#include "driver/tuned.h"
#include "driver/vm.h"

namespace tilewright::driver {
namespace {

std::string human_bytes(double n) {
  const char* units[] = {"B", "KiB", "MiB", "GiB"};
  int u = 0;
  for (; n >= 1024 && u < 3; ++u) n /= 1024;
  return u == 0 ? format("{:.0f} B", n) : format("{:.1f} {}", n, units[u]);
}

struct Flags : CompileFlags {
  std::string output, form, weights_file, records;
  bool system_lib = false, json = false, timing = false, explain = false;
  std::string interface, executor, planner = "greedy_by_size";
  std::vector<std::string> pools, constant_pools;
  int64_t workspace_alignment = 16, constant_alignment = 16;
  bool tensors_in_pools = false;
  bool unbounded = false;  // --bound none

  Result<std::optional<AheadOfTime>> ahead_of_time(OutputForm form_of_output) const;
};

// "sram" or "sram=65536". Error: InvalidArgument.
Result<lower::MemoryPool> parse_pool(const std::string& text) {
  const size_t eq = text.find('=');
  lower::MemoryPool pool{text.substr(0, eq)};
  const std::string size = eq == std::string::npos ? "" : text.substr(eq + 1);
  if (eq != std::string::npos) {
    auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), pool.limit);
    if (error != std::errc() || end != size.data() + size.size() || pool.limit < 0) pool.name.clear();
  }
  if (pool.name.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' is no memory pool", text), {},
                      "write a name, or name=bytes: --pool sram=65536");
  return pool;
}

// Options for programs without the runtime: if an interface is requested, or a Model Library Format other than the
// graph executor's.
Result<std::optional<AheadOfTime>> Flags::ahead_of_time(OutputForm form_of_output) const {
  const bool library = form_of_output == OutputForm::kModelLibrary, source = form_of_output == OutputForm::kSource;
  const bool wanted = !interface.empty() || !pools.empty() || !constant_pools.empty() || tensors_in_pools;
  auto wrong = [](const char* what, const char* hint) {
    return Diagnostic(ErrorCode::kInvalidArgument, what, {}, hint);
  };
  if (!executor.empty() && !library) return wrong("--executor is for --format mlf", "leave it out");
  if (wanted && !library && !source)
    return wrong("an interface and memory pools are for C files and Model Library Formats",
                 "write --format mlf -o net.tar, or --target c -o net.c");
  if (wanted && executor == "graph")
    return wrong("the graph executor has no interface of its own", "use --executor aot");
  if (!(wanted || library) || executor == "graph") return std::optional<AheadOfTime>();
  AheadOfTime out;
  out.packed = interface == "packed";
  for (const std::string& text : pools) out.workspace.push_back(TW_TRY(parse_pool(text)));
  for (const std::string& text : constant_pools) out.constants.push_back(TW_TRY(parse_pool(text)));
  out.workspace_alignment = workspace_alignment, out.constant_alignment = constant_alignment;
  out.tensors_in_pools = tensors_in_pools, out.algorithm = planner;
  return std::optional<AheadOfTime>(std::move(out));
}

// Writes a model as a program: its sizes, or inputs that sizes depend on, are known only at run time.
int write_program(const Flags& flags, std::optional<runtime::vm::Program> program, const BuildOptions& options,
                  const std::string& output) {
  if (Status ready = make_ready(&*program, options); !ready.ok()) return fail(ready.error());
  auto written = export_program(*program, std::filesystem::path(flags.model).stem().string(), output);
  if (!written.ok()) return fail(written.error());
  if (flags.json) {
    nlohmann::json j{{"output", output},
                     {"kind", "vm"},
                     {"target", program->target},
                     {"outputs", program->outputs},
                     {"open_regions", program->open_regions()},
                     {"runs_alone", program->runs_alone()}};
    for (const auto& t : program->inputs)
      j["inputs"].push_back({{"name", t.name}, {"dtype", t.dtype.str()}, {"shape", t.shape}});
    std::printf("%s\n", j.dump(2).c_str());
    return kExitOk;
  }
  if (flags.quiet) return kExitOk;
  int regions = 0, evaluated = 0, ready = 0;
  std::map<std::string, int> functions;
  for (const auto& r : program->regions) {
    if (r.format == "host")
      ++functions[r.source.substr(0, r.source.find('\n'))];
    else
      ++(r.format == "evaluate" ? evaluated : r.library.empty() ? regions : ready);
  }
  std::printf("%s: a VM program: sizes, control flow or values that only a run can tell (--explain says which); ",
              output.c_str());
  std::string parts;
  auto part = [&](int count, const char* what) {
    if (count > 0) parts += format("{}{} region{} {}", parts.empty() ? "" : ", ", count, count == 1 ? "" : "s", what);
  };
  part(regions, "compiled when sizes are first met");
  part(ready, "with kernels");
  part(evaluated, "evaluated");
  if (program->runs_alone()) parts += format("{}the runtime alone runs it", parts.empty() ? "" : ": ");
  std::printf("%s\n", parts.c_str());
  const bool free = std::any_of(program->inputs.begin(), program->inputs.end(), [](const auto& t) {
    return std::any_of(t.shape.begin(), t.shape.end(), [](int64_t d) { return d < 0; });
  });
  if (program->open_regions() > 0)
    std::printf(
        "note: sizes are compiled where the program meets them; without the compiler there, libtilewright_vm.so "
        "interprets them, which is slow%s\n",
        free ? "; --bound NAME=LOW..HIGH for each free size makes a library that needs neither" : "");
  if (flags.explain) {
    for (const auto& t : program->inputs)
      if (std::any_of(t.shape.begin(), t.shape.end(), [](int64_t d) { return d < 0; }))
        std::printf("free sizes: input %s\n", t.name.c_str());
    for (const auto& [name, count] : functions) std::printf("function of the runtime: %s x%d\n", name.c_str(), count);
    if (evaluated) std::printf("evaluated on texts: %d\n", evaluated);
    std::printf("%s", runtime::vm::bytecode_text(program->executable).c_str());
  }
  for (const auto& t : program->inputs)
    std::printf("input  %s: %s %s\n", t.name.c_str(), t.dtype.str().c_str(),
                runtime::vm::free_shape_str(t.shape).c_str());
  for (const auto& name : program->outputs) std::printf("output %s\n", name.c_str());
  return kExitOk;
}

// A written library and its report.
struct Written {
  const Built& built;
  std::string output;
  std::shared_ptr<const tune::RecordChooser> records;  // may be null
  double seconds;
  uintmax_t bytes;
};

nlohmann::json as_json(const Flags& flags, const Written& made) {
  const auto& plan = made.built.lowered.plan;
  nlohmann::json j{{"output", made.output},
                   {"target", plan.target},
                   {"seconds", made.seconds},
                   {"kernels", plan.kernels.size()},
                   {"steps", plan.steps.size()},
                   {"groups_taken_apart", made.built.lowered.taken_apart.size()},
                   {"weights_bytes", plan.params_bytes},
                   {"arena_bytes", plan.arena_bytes},
                   {"file_bytes", made.bytes}};
  for (const auto* list : {&plan.inputs, &plan.outputs})
    for (const auto& t : *list)
      j[list == &plan.inputs ? "inputs" : "outputs"].push_back(
          {{"name", t.name}, {"dtype", t.dtype.str()}, {"shape", t.shape}});
  for (const Built& other : made.built.others) {
    const plan::Plan& p = other.lowered.plan;
    j["other_targets"].push_back({{"target", p.target}, {"kernels", p.kernels.size()}, {"steps", p.steps.size()}});
  }
  for (const auto& variant : plan.variants) {
    nlohmann::json inputs;
    for (const auto& t : variant.inputs)
      inputs.push_back({{"name", t.name}, {"dtype", t.dtype.str()}, {"shape", t.shape}});
    j["variants"].push_back(
        {{"inputs", inputs}, {"steps", variant.steps.size()}, {"arena_bytes", variant.arena_bytes}});
  }
  if (made.records) {
    const tune::RecordUse use = made.records->use();
    j["records"] = {
        {"used", use.used}, {"other_machines", use.other_machines}, {"unknown", use.unknown}, {"untuned", use.untuned}};
  }
  if (flags.explain) j["layers"] = explain_json(made.built.lowered, made.records.get());
  if (flags.timing)
    for (const auto& p : made.built.passes)
      j["passes"].push_back({{"name", p.name}, {"ran", p.ran}, {"changed", p.changed}, {"ms", p.milliseconds}});
  return j;
}

void print(const Flags& flags, const Written& made) {
  const auto& plan = made.built.lowered.plan;
  if (flags.explain) std::printf("%s\n", explain_text(made.built.lowered, made.records.get()).c_str());
  if (flags.quiet) return;
  std::printf("%s: %zu kernels in %zu steps, weights %s, arena %s, file %s, %.2f s\n", made.output.c_str(),
              plan.kernels.size(), plan.steps.size(), human_bytes(static_cast<double>(plan.params_bytes)).c_str(),
              human_bytes(static_cast<double>(plan.arena_bytes)).c_str(),
              human_bytes(static_cast<double>(made.bytes)).c_str(), made.seconds);
  std::printf("target: %s\n", plan.target.c_str());
  for (const Built& other : made.built.others)
    std::printf("target: %s, %zu kernels\n", other.lowered.plan.target.c_str(), other.lowered.plan.kernels.size());
  if (!made.built.others.empty())
    std::printf("the best that a processor can run is taken when the library is loaded\n");
  if (made.records) std::printf("records: %s\n", made.records->use().line().c_str());
  if (made.built.target.machine.source == MachineModel::Source::kAssumed)
    std::printf(
        "note: no table has the processor '%s', so kernels are chosen as for a usual one; on that machine `tilewright "
        "calibrate` measures what they should be chosen by\n",
        made.built.target.mcpu.c_str());
  if (!plan.variants.empty())
    std::printf("%zu %s; an input's shape picks one when the model runs\n", 1 + plan.variants.size(),
                plan.metadata.count(plan::kBoundsKey) ? "plans" : "input shapes");
  // Of bounded variants, show only the first and last plan.
  const auto bounds = plan.metadata.find(plan::kBoundsKey);
  const size_t last = plan.variants.size();
  if (bounds != plan.metadata.end()) std::printf("bounds: %s\n", bounds->second.c_str());
  for (size_t v = 0; v <= last; ++v) {
    if (bounds != plan.metadata.end() && v != 0 && v != last) continue;
    for (const auto& t : plan::variant_of(plan, v).inputs)
      std::printf("input  %s: %s %s\n", t.name.c_str(), t.dtype.str().c_str(), shape_str(t.shape).c_str());
  }
  for (const auto& t : plan.outputs)
    std::printf("output %s: %s %s\n", t.name.c_str(), t.dtype.str().c_str(), shape_str(t.shape).c_str());
  if (flags.timing)
    for (const auto& p : made.built.passes)
      if (p.ran) std::printf("%9.2f ms  %s%s\n", p.milliseconds, p.name.c_str(), p.changed ? "" : " (no change)");
}

void note_bounds(const std::vector<Bound>& usual) {
  const bool few = usual.back().parts > 0;
  std::string others;
  for (const Bound& b : usual) others += format("{}--bound {}=LOW..HIGH", others.empty() ? "" : " ", b.name);
  std::printf(
      "note: the model leaves %s free, and %s was taken%s; %s takes other bounds%s, --bound none makes a program "
      "of any size, which is compiled where it runs\n",
      usual.size() == 1 ? "a size" : "sizes", bounds_str(usual).c_str(),
      few ? ", in few ranges, each of which costs what its largest size does" : "", others.c_str(),
      few ? " and finer ranges" : "");
}

int run(Flags flags) {
  flags.unbounded = flags.bounds == std::vector<std::string>{"none"};
  if (flags.unbounded) flags.bounds.clear();
  auto options = flags.options();
  if (!options.ok()) return fail(options.error());
  if (Status good = check_options(*options); !good.ok()) return fail(good.error());
  auto target = parse_target(split_targets(flags.target)[0]);
  const char* ending = !target.ok()                                     ? ".so"
                       : codegen::backend_of(*target).makes_source()    ? ".c"
                       : codegen::backend_of(*target).makes_byte_code() ? ".stackvm"
                                                                        : ".so";
  std::string output =
      flags.output.empty() ? std::filesystem::path(flags.model).stem().string() + ending : flags.output;
  auto form = output_form(output, flags.form);
  if (!form.ok()) return fail(form.error());
  if (flags.model.ends_with(".ll") || flags.model.ends_with(".bc")) {
    Status made = compile_ir_file(flags.model, output, *form);
    return made.ok() ? static_cast<int>(kExitOk) : fail(made.error());
  }
  options->form = flags.form;
  options->system_lib = flags.system_lib;
  options->weights_file = flags.weights_file;
  options->keep_modules = *form == OutputForm::kModelLibrary;
  auto interface = flags.ahead_of_time(*form);
  if (!interface.ok()) return fail(interface.error());
  options->ahead_of_time = *interface;
  if (*form == OutputForm::kModelLibrary && !*interface) options->graph_in_c = GraphInC{};
  std::shared_ptr<const tune::RecordChooser> records;
  if (!flags.records.empty()) {
    auto chooser = records_of_file(flags.records);
    if (!chooser.ok()) return fail(chooser.error());
    options->chooser = records = *chooser;
  }
  ProgressLine line(flags.quiet || flags.json);
  options->progress = line.callback();
  auto start = std::chrono::steady_clock::now();
  std::vector<Bound> usual;
  const bool may_be_vm = can_be_vm(output, *options);
  auto compiled = flags.unbounded || records ? compile_model(flags.model, *options, may_be_vm)
                                             : compile_within_usual_bounds(flags.model, *options, may_be_vm, &usual);
  if (!compiled.ok() || compiled->program) line.clear();
  if (!compiled.ok()) return fail(std::move(compiled).error().at(flags.model));
  if (compiled->program)
    if (Status good = check_program_options(*options); !good.ok()) return fail(std::move(good).error().at(flags.model));
  if (compiled->program && records)
    return fail(
        Diagnostic(ErrorCode::kUnsupportedModel,
                   "the model becomes a VM program, whose kernels are compiled when it runs and take no records",
                   flags.model, "fix the sizes with --shape, or leave --records out"));
  if (compiled->program) return write_program(flags, std::move(compiled->program), *options, output);
  std::optional<Built> built = std::move(compiled->ordinary);
  if (records) note_records(*records, &built->lowered);
  if (options->progress) options->progress("link", 0);
  auto written = export_library_and_release(&*built, output, *form, options->progress);
  line.clear();
  if (!written.ok()) return fail(written.error());
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::error_code ignored;
  auto size = std::filesystem::file_size(output, ignored);
  if (flags.json)
    std::printf("%s\n", as_json(flags, {*built, output, records, seconds, size}).dump(2).c_str());
  else
    print(flags, {*built, output, records, seconds, size});
  if (!usual.empty() && !flags.quiet && !flags.json) note_bounds(usual);
  return kExitOk;
}

}  // namespace

Command add_compile(CLI::App* app) {
  auto* cmd = app->add_subcommand("compile", "Compile a model to a native library");
  auto flags = std::make_shared<Flags>();
  cmd->add_option("model", flags->model,
                  "An ONNX model, or a Relay module as text or JSON; or LLVM IR that a compilation wrote (.ll, .bc)")
      ->required();
  cmd->add_option("-o,--output", flags->output,
                  "The file to write; default: the model's name with .so. Also .o or .a (for a linker), .tar (mod.so, "
                  "mod.json, mod.params), .ll, .bc or .s (everything as LLVM IR, bitcode or assembly); .c with "
                  "--target c; .stackvm with --target stackvm");
  cmd->add_option(
      "--format", flags->form,
      "What to write, whatever the name: library, object, archive, package, ir, bitcode, assembly, source, stackvm; "
      "objects "
      "(a tar of lib0.o and, of imported modules, devc.o) or objects-c (devc.c); mlf (a Model Library Format)");
  cmd->add_flag("--system-lib", flags->system_lib,
                "The object is for a program that asks the runtime for the model by its name (docs/cpp.md)");
  cmd->add_option(
      "--weights", flags->weights_file,
      "Write the weights into this file, which models share that have some of them in common, and name it in "
      "the output; C source is given its address");
  flags->add_to(cmd);
  cmd->add_option("--bound", flags->bounds,
                  "Smallest and largest size of a dimension that the model leaves free, by its name or as input.0: "
                  "batch=1..8. The library runs at every size between, without the compiler. A batch that nothing is "
                  "said of is 1..8, tokens are 1..512 in few ranges; `none` leaves them free")
      ->type_name("NAME=LOW..HIGH")
      ->allow_extra_args(false);
  cmd->add_option(
         "--records", flags->records,
         "What `tune` or the classic stack's tuners measured: kernels are chosen by it where it says something")
      ->type_name("FILE");
  cmd->add_option("--interface-api", flags->interface,
                  "Of a C file or a Model Library Format: c (tvmgen_NAME_run with structs) or packed")
      ->check(CLI::IsMember({"c", "packed"}));
  cmd->add_option("--executor", flags->executor, "Of a Model Library Format: aot (the default) or graph")
      ->check(CLI::IsMember({"aot", "graph"}));
  cmd->add_option("--pool", flags->pools,
                  "Memory that the program gives a run in C, NAME or NAME=BYTES; several: the first with room is used");
  cmd->add_option("--constant-pool", flags->constant_pools, "The same for the weights");
  cmd->add_option("--workspace-byte-alignment", flags->workspace_alignment, "Of buffers in their pools; default 16");
  cmd->add_option("--constant-byte-alignment", flags->constant_alignment, "Of weights in their pools; default 16");
  cmd->add_flag("--workspace-io", flags->tensors_in_pools, "Inputs and outputs lie in the pools, too");
  cmd->add_option("--memory-planner", flags->planner, "greedy_by_size, greedy_by_conflicts or hill_climb");
  cmd->add_flag("--json", flags->json, "Print the result as JSON");
  cmd->add_flag("--explain", flags->explain,
                "List for each layer the kernels that apply, their predicted times, and what was chosen");
  cmd->add_flag("--timing", flags->timing, "List the time of each pass");
  cmd->footer(
      "Examples:\n"
      "  tilewright compile resnet50.onnx -o resnet50.so\n"
      "  tilewright compile model.onnx -o model.so --shape images=1x3x640x640\n"
      "  tilewright compile model.onnx -o model.a                      # link it into a program: docs/cpp.md\n"
      "  tilewright compile model.onnx -o model.tar --format objects   # lib0.o, devc.o\n"
      "  tilewright compile rec.onnx -o rec.so --shape 'x=1x3x48x{160,320,640}'   # three widths in one library\n"
      "  tilewright compile resnet18.onnx -o resnet18.so --bound batch=1..8     # every batch from 1 to 8\n"
      "  tilewright compile resize.onnx -o resize.so --constant sizes=1,3,640,640\n"
      "  tilewright compile net.relay --params net.params -o net.so      # what the classic stack saved\n"
      "  tilewright compile model.onnx --records model.log.json          # what `tilewright tune` found\n"
      "  tilewright compile model.onnx -o model.c --target c             # one C99 file: docs/c.md\n"
      "  tilewright compile model.onnx -o model.tar --target c --format mlf   # for firmware: docs/aot.md\n"
      "  tilewright compile model.onnx -o avx2.so --target \"llvm -mcpu=x86-64-v3\"\n"
      "  tilewright compile model.onnx -o everywhere.so --target portable   # SSE4.2, AVX2 and AVX-512 in one "
      "library\n");
  return [flags] { return run(*flags); };
}

}  // namespace tilewright::driver
