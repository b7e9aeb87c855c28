// SPDX-License-Identifier: Apache-2.0
#include "ir/target.h"

#include <algorithm>
#include <sstream>

#include "base/format.h"
#include "ir/target_kind.h"

namespace tilewright {

std::span<const char* const> target_kinds() {
  static constexpr const char* kKinds[] = {"llvm", "c"};
  return kKinds;
}

std::string Target::str() const {
  std::string out = kind;
  if (!mtriple.empty()) out += " -mtriple=" + mtriple;
  if (!mcpu.empty()) out += " -mcpu=" + mcpu;
  for (size_t i = 0; i < mattr.size(); ++i) out += (i ? "," : " -mattr=") + mattr[i];
  if (strict_math) out += " -math=strict";
  return out;
}

Result<Target> parse_target(std::string_view text) {
  std::istringstream words{std::string(text)};
  Target target;
  std::string word;
  if (!(words >> target.kind)) target.kind = "llvm";
  if (const auto kinds = target_kinds(); std::find(kinds.begin(), kinds.end(), target.kind) == kinds.end())
    return Diagnostic(ErrorCode::kUnknownTarget, format("target kind '{}' is not known", target.kind), {},
                      "use a target such as \"llvm\", \"llvm -mcpu=x86-64-v3\" or \"c\"");
  auto option = [&](const char* name, std::string* value) {
    std::string prefix = format("-{}=", name);
    if (word.rfind(prefix, 0) == 0) {
      *value = word.substr(prefix.size());
      return true;
    }
    return false;
  };
  while (words >> word) {
    std::string attributes, math;
    if (option("mcpu", &target.mcpu) || option("mtriple", &target.mtriple)) continue;
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
      if (math != "strict" && math != "default")
        return Diagnostic(ErrorCode::kUnknownTarget, format("-math={} is not known", math), {},
                          "use -math=strict or -math=default");
      target.strict_math = math == "strict";
      continue;
    }
    return Diagnostic(ErrorCode::kUnknownTarget, format("target option '{}' is not known", word), {},
                      "known options: -mcpu=, -mattr=, -mtriple=, -math=");
  }
  return target;
}

}  // namespace tilewright
