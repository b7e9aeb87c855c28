// SPDX-License-Identifier: Apache-2.0
// Input of a run of passes (level, required, disabled, options, target) and its output (a record per pass). An explicit
// object: nothing is global, so that compilations in one process are independent.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ir/target.h"

namespace tilewright {

struct PassInfo {
  std::string name;        // the classic name, for instance "FuseOps"
  int opt_level = 0;       // minimum level of the context for it to run
  std::string doc;         // one line
  bool mandatory = false;  // required by later stages: runs at every level and regardless of bisection
};

// Options by classic key ("relay.FuseOps.max_depth"). Each key has one type; code accesses it through ConfigKey.
using ConfigValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
template <class T>
struct ConfigKey {
  const char* name;
  T fallback;
};
inline constexpr const char *kBoolType = "bool", *kIntType = "int", *kFloatType = "float", *kStringType = "string",
                            *kListType = "list of strings", *kObjectType = "object";
struct ConfigKeyInfo {
  const char* name;
  const char* type;  // one of the type names above
  const char* doc;
};
std::span<const ConfigKeyInfo> all_config_keys();

// Callbacks around every pass that runs. `text` prints the module (a function, since printing is expensive).
class PassInstrument {
 public:
  virtual ~PassInstrument() = default;
  virtual bool should_run(const PassInfo&) { return true; }
  virtual void before(const PassInfo&, const std::function<std::string()>& /*text*/) {}
  virtual void after(const PassInfo&, bool /*changed*/, const std::function<std::string()>& /*text*/) {}
};

struct PassRecord {
  std::string name;
  bool ran = false;
  bool changed = false;
  double milliseconds = 0;  // of the pass, without verifying and dumping
  std::string skipped;      // why it did not run: "disabled", "opt level 3", "bisection", "instrument"
};

struct PassContext {
  int opt_level = 2;
  std::set<std::string> required, disabled;
  std::map<std::string, ConfigValue> config;
  std::optional<Target> target;
  std::vector<std::shared_ptr<PassInstrument>> instruments;
  std::filesystem::path dump_dir;  // when set: one numbered text file per pass that changed something
  int64_t stop_after = -1;         // bisection: number of optional passes to run; -1 for all
  bool verify = true;              // verify the module after each pass that changed it

  // Output of the runner, accumulated over all pipelines run with this context.
  std::vector<PassRecord> log;
  int64_t optional_passes_run = 0;
  int dumped = 0;

  // Sets an option. Errors: InvalidArgument for an unknown key or a wrong type.
  Status set_config(const std::string& key, ConfigValue value);
  template <class T>
  T get(const ConfigKey<T>& key) const {
    auto it = config.find(key.name);
    if (it == config.end()) return key.fallback;
    const T* value = std::get_if<T>(&it->second);
    return value ? *value : key.fallback;
  }
  // Checks that all required and disabled names are in `known`. Error: UnknownPass.
  Status check_names(std::span<const std::string> known) const;
  // Why the pass must be skipped; empty if it runs.
  std::string skip_reason(const PassInfo& pass) const;
  // "pass, ms, changed" lines of the log, the slowest first.
  std::string timing_report() const;
};

// UnknownPass with the nearest names as hint.
Diagnostic unknown_pass(const std::string& name, std::span<const std::string> known);

}  // namespace tilewright
