// SPDX-License-Identifier: Apache-2.0
#include "ir/machine_profile.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/cache_folder.h"
#include "base/format.h"
#include "base/work_folder.h"

namespace tilewright {
namespace {

constexpr const char* kProfileTitle = "tilewright machine profile 1";

// Every field with its name and plausible range.
template <class P, class F>
void for_each_figure(P& p, F visit) {
  visit("vector_bits", p.vector_bits, 64, 4096);
  visit("gigahertz", p.gigahertz, 0, 20);
  visit("float32_gflops", p.float32_gflops, 0.01, 1e5);
  visit("float64_gflops", p.float64_gflops, 0.01, 1e5);
  visit("int8_gops", p.int8_gops, 0, 1e6);
  visit("l1_gbps", p.l1_gbps, 0.01, 1e5);
  visit("l2_gbps", p.l2_gbps, 0.01, 1e5);
  visit("l3_gbps", p.l3_gbps, 0.01, 1e5);
  visit("dram_gbps", p.dram_gbps, 0.01, 1e5);
  visit("l1_bytes", p.l1_bytes, 1 << 10, 1 << 30);
  visit("l2_bytes", p.l2_bytes, 1 << 10, 1 << 30);
  visit("l3_bytes", p.l3_bytes, 0, int64_t{1} << 40);
  visit("threads", p.threads, 1, 1 << 20);
  visit("thread_us", p.thread_us, 0, 1e6);
}

}  // namespace

std::string to_text(const MachineProfile& profile) {
  std::string out = format("{}\ncpu {}\n", kProfileTitle, profile.cpu);
  for_each_figure(profile,
                  [&](const char* name, auto value, double, double) { out += format("{} {}\n", name, value); });
  return out;
}

Result<MachineProfile> parse_machine_profile(std::string_view text, const std::string& origin) {
  auto bad = [&](const std::string& why) {
    return Diagnostic(ErrorCode::kParseError, format("this is no machine profile: {}", why), origin,
                      "run `tilewright calibrate`, which writes it anew, or remove the file");
  };
  std::istringstream in{std::string(text)};
  MachineProfile profile;
  std::string title, word;
  if (!std::getline(in, title) || title != kProfileTitle)
    return bad(format("it does not begin with '{}'", kProfileTitle));
  if (!(in >> word >> profile.cpu) || word != "cpu") return bad("its second line names no cpu");
  std::string wrong;
  for_each_figure(profile, [&](const char* name, auto& value, double least, double most) {
    if (!wrong.empty()) return;
    if (!(in >> word >> value) || word != name)
      wrong = format("it has no '{}' where one belongs", name);
    else if (!(static_cast<double>(value) >= least && static_cast<double>(value) <= most))
      wrong = format("{} is {}", name, value);
  });
  if (!wrong.empty()) return bad(wrong);
  return profile;
}

std::string machine_profile_path(std::string_view cpu, int vector_bits) {
  const std::string folder = cache_folder("machine");
  return folder.empty() ? folder : format("{}/{}-{}.txt", folder, cpu, vector_bits);
}

Result<std::optional<MachineProfile>> stored_machine_profile(std::string_view cpu, int vector_bits) {
  const std::string path = machine_profile_path(cpu, vector_bits);
  std::ifstream in(path, std::ios::binary);
  if (path.empty() || !in) return std::optional<MachineProfile>();
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  auto profile = TW_TRY(parse_machine_profile(text, path));
  if (profile.cpu != cpu || profile.vector_bits != vector_bits)
    return Diagnostic(ErrorCode::kParseError, format("this is the profile of {}, not of {}", profile.cpu, cpu), path,
                      "run `tilewright calibrate`, which writes it anew, or remove the file");
  return std::optional<MachineProfile>(std::move(profile));
}

Status store_machine_profile(const MachineProfile& profile) {
  const std::string path = machine_profile_path(profile.cpu, static_cast<int>(profile.vector_bits));
  if (path.empty())
    return Diagnostic(ErrorCode::kCannotWrite, "there is no folder for what was measured", {},
                      "set TILEWRIGHT_CACHE_DIR or HOME");
  std::error_code ignored;  // an error will show when the file is written
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  return write_whole(path, to_text(profile));
}

std::string describe(const MachineProfile& p) {
  auto known = [](double value, const char* unit) {
    return value > 0 ? format("{:.1f} {}", value, unit) : std::string("unknown");
  };
  std::string out = format("measured: {}, vectors of {} bits\n", p.cpu, p.vector_bits);
  out += format("  one core computes   float32 {:.0f} GFLOP/s, float64 {:.0f} GFLOP/s, int8 {}, clock {}\n",
                p.float32_gflops, p.float64_gflops, known(p.int8_gops, "GOP/s"), known(p.gigahertz, "GHz"));
  out +=
      format("  one core reads      L1 {:.0f} GB/s ({} KiB), L2 {:.0f} ({} KiB), L3 {:.0f} ({} KiB), memory {:.0f}\n",
             p.l1_gbps, p.l1_bytes >> 10, p.l2_gbps, p.l2_bytes >> 10, p.l3_gbps, p.l3_bytes >> 10, p.dram_gbps);
  out += p.threads > 1 ? format("  {} threads start and meet in {:.2f} us\n", p.threads, p.thread_us)
                       : std::string("  one thread\n");
  return out;
}

void apply(const MachineProfile& profile, MachineModel* machine) {
  machine->source = MachineModel::Source::kMeasured;
  machine->gflops = profile.float32_gflops;
  machine->l1_gbps = profile.l1_gbps, machine->l2_gbps = profile.l2_gbps;
  machine->l3_gbps = profile.l3_gbps, machine->dram_gbps = profile.dram_gbps;
  machine->l1_bytes = profile.l1_bytes, machine->l2_bytes = profile.l2_bytes;
  if (profile.l3_bytes > 0) machine->l3_bytes = profile.l3_bytes;
}

}  // namespace tilewright
