// SPDX-License-Identifier: Apache-2.0
// tilewright micro: turns a Model Library Format into a device program (`run` is part of the runtime:
// src/cli/micro_verb.cc).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/format.h"
#include "driver/cli/commands.h"
#include "driver/micro/project.h"

namespace tilewright::driver {
namespace {

struct MicroFlags {
  std::string folder, library, template_name = "crt";
  std::vector<std::string> options;
  bool force = false;
};

Result<ProjectOptions> project_options_of(const MicroFlags& flags) {
  ProjectOptions out{flags.template_name, {}};
  for (const std::string& text : flags.options) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      return Diagnostic(ErrorCode::kInvalidArgument, format("the project option '{}' has no value", text), "--option",
                        "write --option name=value");
    out.values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

int create(const MicroFlags& flags) {
  auto options = project_options_of(flags);
  if (!options.ok()) return fail(options.error());
  if (const Status made = create_project(flags.library, flags.folder, *options, flags.force); !made.ok())
    return fail(made.error());
  std::printf("%s: a project of the template %s\n", flags.folder.c_str(), flags.template_name.c_str());
  return kExitOk;
}

}  // namespace

Command add_micro(CLI::App* app) {
  auto* cmd = app->add_subcommand("micro", "Make a program for a device of a Model Library Format, build it, run it");
  cmd->require_subcommand(1);
  auto flags = std::make_shared<MicroFlags>();
  auto* make = cmd->add_subcommand("create", "Write a project");
  make->alias("create-project");
  make->add_option("DIR", flags->folder, "The project's folder")->required();
  make->add_option("LIBRARY", flags->library, "What compile --format mlf wrote")->required();
  make->add_option("--template", flags->template_name,
                   "crt (a program of this machine), mps2-an386 (Cortex-M4, also emulated), zephyr, arduino")
      ->capture_default_str();
  std::string help = "NAME=VALUE:";
  for (const ProjectOption& o : project_options()) help += format(" {} ({}; {})", o.name, o.help, o.fallback);
  make->add_option("--option,--project-option", flags->options, help)->allow_extra_args(false);
  make->add_flag("-f,--force", flags->force, "Take the place of a project that is there");
  auto* build = cmd->add_subcommand("build", "Compile a project");
  build->add_option("DIR", flags->folder, "The project's folder")->required();
  cmd->add_subcommand("run", "Run a built project's model")->add_option("DIR", flags->folder, "The project's folder");
  cmd->footer(R"(
Examples:
  tilewright compile net.onnx --target "c -mcpu=cortex-m4" --format mlf -o net.tar
  tilewright micro create board net.tar --template mps2-an386
  tilewright micro build board
  tilewright micro run board --input @x.npy --output @y.npz)");
  return [=]() -> int {
    if (make->parsed()) return create(*flags);
    if (const Status built = build_project(flags->folder); !built.ok()) return fail(built.error());
    return kExitOk;
  };
}

}  // namespace tilewright::driver
