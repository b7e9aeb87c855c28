// SPDX-License-Identifier: Apache-2.0
#include "ir/target.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/format.h"
#include "ir/target_kind.h"

namespace tilewright {

std::span<const char* const> target_kinds() {
  static constexpr const char* kKinds[] = {"llvm", "c", "stackvm"};
  return kKinds;
}

std::string Target::str() const {
  std::string out = kind;
  if (!mtriple.empty()) out += " -mtriple=" + mtriple;
  if (!mcpu.empty()) out += " -mcpu=" + mcpu;
  for (size_t i = 0; i < mattr.size(); ++i) out += (i ? "," : " -mattr=") + mattr[i];
  if (vector_width > 0) out += format(" -vector-width={}", vector_width);
  if (!mabi.empty()) out += " -mabi=" + mabi;
  if (!mfloat_abi.empty()) out += " -mfloat-abi=" + mfloat_abi;
  if (num_cores > 0) out += format(" -num-cores={}", num_cores);
  if (strict_math) out += " -math=strict";
  if (bfloat16_products) out += " -math=bf16";
  return out;
}

Result<Target> parse_target(std::string_view text) {
  std::istringstream words{std::string(text)};
  Target target;
  std::string word;
  if (!(words >> target.kind)) target.kind = "llvm";
  if (target.kind == "portable") return parse_target(kPortableTargets);  // a list of targets
  if (const auto kinds = target_kinds(); std::find(kinds.begin(), kinds.end(), target.kind) == kinds.end())
    return Diagnostic(ErrorCode::kUnknownTarget, format("target kind '{}' is not known", target.kind), {},
                      "use a target such as \"llvm\", \"llvm -mcpu=x86-64-v3\", \"c\" or \"stackvm\"");
  auto option = [&](const char* name, std::string* value) {
    std::string prefix = format("-{}=", name);
    if (word.rfind(prefix, 0) == 0) {
      *value = word.substr(prefix.size());
      return true;
    }
    return false;
  };
  while (words >> word) {
    std::string attributes, math, width, said;
    if (option("mtriple", &target.mtriple)) continue;
    if (option("mcpu", &target.mcpu)) {
      if (target.mcpu.find(',') == std::string::npos) continue;
      return Diagnostic(ErrorCode::kUnknownTarget,
                        format("-mcpu={} is a list of processors, and one is wanted here", target.mcpu), {},
                        "a list is for compiling a model into a library, an object or an archive");
    }
    if (option("vector-width", &width)) {
      auto [end, error] = std::from_chars(width.data(), width.data() + width.size(), target.vector_width);
      if (error != std::errc() || end != width.data() + width.size() ||
          (target.vector_width != 128 && target.vector_width != 256 && target.vector_width != 512))
        return Diagnostic(ErrorCode::kUnknownTarget, format("-vector-width={} is not known", width), {},
                          "use -vector-width=128, 256 or 512");
      continue;
    }
    // Descriptions of a board in classic targets do not affect code.
    if (option("keys", &said) || option("device", &said) || option("model", &said)) continue;
    if (option("mabi", &target.mabi)) continue;
    if (option("mfloat-abi", &target.mfloat_abi)) {
      if (target.mfloat_abi == "hard" || target.mfloat_abi == "soft" || target.mfloat_abi == "softfp") continue;
      return Diagnostic(ErrorCode::kUnknownTarget, format("-mfloat-abi={} is not known", target.mfloat_abi), {},
                        "use -mfloat-abi=hard, soft or softfp");
    }
    if (option("num-cores", &said)) {
      const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), target.num_cores);
      if (error == std::errc() && end == said.data() + said.size() && target.num_cores > 0) continue;
      return Diagnostic(ErrorCode::kUnknownTarget, format("-num-cores={} is no number of cores", said), {},
                        "write a whole number such as -num-cores=4");
    }
    if (option("mattr", &attributes)) {
      std::istringstream list(attributes);
      for (std::string a; std::getline(list, a, ',');) {
        if (a.size() < 2 || (a[0] != '+' && a[0] != '-'))
          return Diagnostic(ErrorCode::kUnknownTarget, format("'{}' in -mattr is not a feature", a), {},
                            "write features as +name or -name, separated by commas");
        target.mattr.push_back(a);
      }
      continue;
    }
    if (option("math", &math)) {
      if (math != "strict" && math != "default" && math != "bf16")
        return Diagnostic(ErrorCode::kUnknownTarget, format("-math={} is not known", math), {},
                          "use -math=strict, -math=bf16 or -math=default");
      target.strict_math = math == "strict";
      target.bfloat16_products = math == "bf16";
      continue;
    }
    return Diagnostic(
        ErrorCode::kUnknownTarget, format("target option '{}' is not known", word), {},
        "known options: -mcpu=, -mattr=, -mtriple=, -mabi=, -mfloat-abi=, -num-cores=, -vector-width=, -math=");
  }
  return target;
}

std::vector<std::string> split_targets(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string kind, before, after, cpus;
  words >> kind;
  if (kind == "portable") {
    std::string rest;
    std::getline(words, rest);
    return split_targets(kPortableTargets + rest);
  }
  bool listed = false;
  const std::string_view option = "-mcpu=";
  for (std::string word; words >> word;) {
    const bool list = !listed && word.rfind(option, 0) == 0 && word.find(',') != std::string::npos;
    if (list) cpus = word.substr(option.size()), listed = true;
    if (!list) (listed ? after : before) += " " + word;
  }
  if (!listed) return {std::string(text)};
  std::vector<std::string> out;
  for (size_t at = 0; at <= cpus.size();) {
    const size_t end = std::min(cpus.find(',', at), cpus.size());
    out.push_back(format("{}{} {}{}{}", kind, before, option, cpus.substr(at, end - at), after));
    at = end + 1;
  }
  return out;
}

}  // namespace tilewright
