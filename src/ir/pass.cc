// SPDX-License-Identifier: Apache-2.0
#include "ir/pass.h"

#include <chrono>

#include "base/format.h"
#include "base/work_folder.h"

namespace tilewright::pass_detail {
namespace {

Status write_text(PassContext& context, const std::string& stem, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(context.dump_dir, error);
  auto path = context.dump_dir / format("{:03}_{}.txt", context.dumped, stem);
  TW_TRY_STATUS(write_whole(path.string(), text));
  ++context.dumped;
  return Ok{};
}

Diagnostic in_pass(Diagnostic error, const std::string& name) {
  error.where = "pass " + name + (error.where.empty() ? "" : ": " + error.where);
  return error;
}

// The error of a failed pass; the pass's input is written to a file, so that the failure can be reproduced in
// isolation.
Diagnostic failure(Diagnostic error, const PassInfo& pass, PassContext& context, const Text& whole_before) {
  auto path = context.dump_dir / format("{:03}_{}.failed_on.txt", context.dumped, pass.name);
  const std::string whole = context.dump_dir.empty() ? "" : whole_before();
  if (!whole.empty() && write_text(context, pass.name + ".failed_on", whole).ok())
    error.hint +=
        format("{}tilewright passes --run {} {} repeats it", error.hint.empty() ? "" : "; ", pass.name, path.string());
  return in_pass(std::move(error), pass.name);
}

}  // namespace

Status dump_input(PassContext& context, const Text& text) {
  if (context.dump_dir.empty() || context.dumped > 0) return Ok{};
  return write_text(context, "input", text());
}

Status run_one(const PassInfo& pass, PassContext& context, const std::function<Result<bool>()>& body,
               const std::function<Status()>& verify, const Text& text_before, const Text& whole_before,
               const Text& text) {
  PassRecord record{pass.name};
  record.skipped = context.skip_reason(pass);
  if (!record.skipped.empty()) {
    context.log.push_back(std::move(record));
    return Ok{};
  }
  if (!pass.mandatory) ++context.optional_passes_run;
  for (const auto& instrument : context.instruments) instrument->before(pass, text_before);
  auto start = std::chrono::steady_clock::now();
  Result<bool> changed = [&]() -> Result<bool> {
    try {
      return body();
    } catch (const InternalError& bug) {
      return Diagnostic(ErrorCode::kInternal, bug.what(), {},
                        pass.mandatory ? "" : format("--disable-pass {} may work around it", pass.name));
    }
  }();
  record.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!changed.ok()) return failure(std::move(changed).error(), pass, context, whole_before);
  record.ran = true;
  record.changed = *changed;
  context.log.push_back(record);
  if (record.changed && context.verify) {
    Status sound = verify();
    if (!sound.ok()) return failure(std::move(sound).error(), pass, context, whole_before);
  }
  if (record.changed && !context.dump_dir.empty()) TW_TRY_STATUS(write_text(context, pass.name, text()));
  for (const auto& instrument : context.instruments) instrument->after(pass, record.changed, text);
  return Ok{};
}

}  // namespace tilewright::pass_detail
