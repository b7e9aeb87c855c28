// SPDX-License-Identifier: Apache-2.0
#include "tune/space.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/format.h"

namespace tilewright::tune {
namespace {
using nlohmann::json;

// Upper bound on the configurations of one problem.
constexpr size_t kAllConfigurations = 20000;

// Classic names of fields. `elements`: the knob counts elements, the field vectors.
struct KnobName {
  const char *implementation, *field, *knob;
  bool elements;
};
constexpr KnobName kKnobNames[] = {
    {"conv2d_nchwc.direct", "ic_unroll", "tile_ic", false},
    {"conv2d_nchwc.direct", "oc_blocks", "tile_oc", true},
    {"conv2d_nchwc.direct", "tile_width", "tile_ow", false},
    {"depthwise_conv2d_nchwc.direct", "tile_width", "tile_ow", false},
    {"dense.", "mr", "tile_y", false},
    {"dense.", "nr", "tile_x", true},
    {"dense.", "k_unroll", "tile_k", false},
    {"matmul.", "mr", "tile_y", false},
    {"matmul.", "nr", "tile_x", true},
    {"matmul.", "k_unroll", "tile_k", false},
    {"batch_matmul.gemm", "mr", "tile_y", false},
    {"batch_matmul.gemm", "nr", "tile_x", true},
    {"batch_matmul.gemm", "k_unroll", "tile_k", false},
};
// The same for values other than splits.
constexpr KnobName kPlainNames[] = {
    {"conv2d_nchwc.direct", "tile_height", "tile_oh", false},
    {"conv2d_nchwc.direct", "tap_unroll", "unroll_kw", false},
};
// Fields that do not affect register use: every value is compatible with every tile.
struct FreeField {
  const char *implementation, *field;
  std::vector<int> values;
};
const std::vector<FreeField>& free_fields() {
  static const std::vector<FreeField> kFree = {
      {"conv2d_nchwc.direct", "ic_unroll", {1, 2, 4, 8}},
      {"conv2d_nchwc.direct", "tap_unroll", {0, 1}},
      {"conv2d_nchwc.direct", "bands", {1, 2, 4}},
      {"conv2d_nchwc.direct", "chunk", {1, 2, 4, 8}},
      {"dense.", "k_unroll", {1, 2, 4, 8}},
      {"matmul.", "k_unroll", {1, 2, 4, 8}},
      {"batch_matmul.gemm", "k_unroll", {1, 2, 4, 8}},
  };
  return kFree;
}

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

struct Field {
  std::string name, value;
  bool begins = false;  // begins another part of the configuration
};
std::vector<Field> fields_of(const std::string& text) {
  std::vector<Field> out;
  bool begins = true;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    const bool last = text[end - 1] == ';';
    const std::string word = text.substr(at, end - at - (last ? 1 : 0));
    const size_t equals = word.find('=');
    out.push_back({word.substr(0, equals), equals == std::string::npos ? "" : word.substr(equals + 1), begins});
    begins = last, at = end + 1;
  }
  return out;
}

std::optional<int64_t> number_of(const std::string& text) {
  int64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || at != text.data() + text.size()) return std::nullopt;
  return value;
}

// Order of values: numbers by size, then words.
bool before(const std::string& a, const std::string& b) {
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

Knob knob_of(const lower::Implementation& implementation, const Field& field, size_t part, int64_t lanes) {
  Knob knob;
  knob.field = field.name, knob.kind = "ot", knob.name = field.name;
  for (const KnobName& known : kKnobNames)
    if (starts(implementation.name, known.implementation) && field.name == known.field)
      knob.name = known.knob, knob.kind = "sp", knob.scale = known.elements ? lanes : 1;
  for (const KnobName& known : kPlainNames)
    if (starts(implementation.name, known.implementation) && field.name == known.field) knob.name = known.knob;
  if (part > 0) knob.name += format("_{}", part);
  return knob;
}

// Additional values of a free field, for workloads with or without taps.
std::vector<int> free_values(const lower::Implementation& implementation, const std::string& field, bool taps) {
  for (const FreeField& f : free_fields())
    if (starts(implementation.name, f.implementation) && field == f.field)
      return field == "tap_unroll" && !taps ? std::vector<int>{0} : f.values;
  return {};
}

bool has_taps(const lower::Problem& p) {
  const auto kernel = workload_of(p, **lower::implementations_of(p.anchor.op).begin()).args;
  if (kernel.size() < 2 || !kernel[1].is_array() || kernel[1].size() != 3 || kernel[1][1].size() != 4) return false;
  return kernel[1][1][2] != 1 || kernel[1][1][3] != 1;
}

}  // namespace

json Knob::value(size_t i) const {
  const std::string& text = values[i];
  const auto number = number_of(text);
  if (kind == "sp" && number) return {-1, *number * scale};
  if (number) return *number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

KnobSpace::KnobSpace(const lower::Problem& problem, const std::vector<const lower::Implementation*>& implementations) {
  const DataType dtype = problem.arg_dtype(0);
  const int64_t lanes = std::max(1, problem.target.lanes(std::max<int>(32, dtype.bits)));
  struct Ranked {
    double cost;
    size_t branch;
    std::vector<size_t> digits;
  };
  std::vector<Ranked> ranked;
  for (const lower::Implementation* implementation : implementations) {
    const std::vector<lower::Config> listed = implementation->configs(problem, kAllConfigurations);
    if (listed.empty()) continue;
    Branch branch;
    branch.implementation = implementation;
    size_t part = 0;
    for (const Field& field : fields_of(listed[0].text)) {
      if (field.begins && !branch.knobs.empty()) ++part;
      if (field.begins) branch.units.push_back(branch.knobs.size());
      branch.knobs.push_back(knob_of(*implementation, field, part, lanes));
      const std::vector<int> more = free_values(*implementation, field.name, has_taps(problem));
      branch.free.push_back(!more.empty());
      for (int value : more) branch.knobs.back().values.push_back(std::to_string(value));
    }
    std::vector<std::vector<Field>> rows;
    for (const lower::Config& config : listed) {
      rows.push_back(fields_of(config.text));
      for (size_t k = 0; k < branch.knobs.size(); ++k) branch.knobs[k].values.push_back(rows.back()[k].value);
    }
    for (Knob& knob : branch.knobs) {
      std::sort(knob.values.begin(), knob.values.end(), before);
      knob.values.erase(std::unique(knob.values.begin(), knob.values.end()), knob.values.end());
      branch.size *= knob.values.size();
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<size_t> digits, tile;
      for (size_t k = 0; k < branch.knobs.size(); ++k) {
        const auto& values = branch.knobs[k].values;
        digits.push_back(static_cast<size_t>(std::lower_bound(values.begin(), values.end(), rows[i][k].value, before) -
                                             values.begin()));
        tile.push_back(branch.free[k] ? 0 : digits.back());
      }
      branch.tiles.insert(tile);
      ranked.push_back({listed[i].cost.weighed(), branches_.size(), std::move(digits)});
    }
    branches_.push_back(std::move(branch));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.cost < b.cost; });
  for (const Ranked& r : ranked) ranked_.push_back(index(r.branch, r.digits));
}

uint64_t KnobSpace::size() const {
  uint64_t all = 0;
  for (const Branch& branch : branches_) all += branch.size;
  return all;
}

bool KnobSpace::worth_tuning() const { return size() > 1; }

std::vector<size_t> KnobSpace::digits(uint64_t index, size_t* which) const {
  for (*which = 0; *which < branches_.size(); ++*which) {
    const Branch& branch = branches_[*which];
    if (index >= branch.size) {
      index -= branch.size;
      continue;
    }
    std::vector<size_t> out;
    for (const Knob& knob : branch.knobs) out.push_back(index % knob.values.size()), index /= knob.values.size();
    return out;
  }
  return {};
}

uint64_t KnobSpace::index(size_t which, const std::vector<size_t>& digits) const {
  uint64_t out = 0;
  for (size_t k = digits.size(); k-- > 0;) out = out * branches_[which].knobs[k].values.size() + digits[k];
  for (size_t b = 0; b < which; ++b) out += branches_[b].size;
  return out;
}

std::string KnobSpace::text_of(const Branch& branch, const std::vector<size_t>& digits) const {
  std::string out;
  for (size_t k = 0; k < branch.knobs.size(); ++k) {
    const bool begins = std::find(branch.units.begin(), branch.units.end(), k) != branch.units.end();
    out += k == 0 ? "" : begins ? "; " : " ";
    out += branch.knobs[k].field + "=" + branch.knobs[k].values[digits[k]];
  }
  return out;
}

std::optional<Configuration> KnobSpace::get(uint64_t index) const {
  size_t which = 0;
  const std::vector<size_t> all = digits(index, &which);
  if (which == branches_.size()) return std::nullopt;
  const Branch& branch = branches_[which];
  std::vector<size_t> tile = all;
  for (size_t k = 0; k < tile.size(); ++k)
    if (branch.free[k]) tile[k] = 0;
  if (!branch.tiles.count(tile)) return std::nullopt;
  return Configuration{branch.implementation, text_of(branch, all)};
}

std::optional<uint64_t> KnobSpace::index_of(const Configuration& configuration) const {
  for (size_t b = 0; b < branches_.size(); ++b) {
    const Branch& branch = branches_[b];
    if (branch.implementation != configuration.implementation) continue;
    const std::vector<Field> fields = fields_of(configuration.text);
    if (fields.size() != branch.knobs.size()) return std::nullopt;
    std::vector<size_t> digits;
    for (size_t k = 0; k < fields.size(); ++k) {
      const auto& values = branch.knobs[k].values;
      const auto found = std::find(values.begin(), values.end(), fields[k].value);
      if (found == values.end() || fields[k].name != branch.knobs[k].field) return std::nullopt;
      digits.push_back(static_cast<size_t>(found - values.begin()));
    }
    return index(b, digits);
  }
  return std::nullopt;
}

json KnobSpace::entity(uint64_t index) const {
  size_t which = 0;
  const std::vector<size_t> all = digits(index, &which);
  json out = json::array();
  if (which == branches_.size()) return out;
  const Branch& branch = branches_[which];
  if (branches_.size() > 1) out.push_back({"algorithm", "ot", algorithm_of(*branch.implementation)});
  for (size_t k = 0; k < branch.knobs.size(); ++k)
    out.push_back({branch.knobs[k].name, branch.knobs[k].kind, branch.knobs[k].value(all[k])});
  return out;
}

std::optional<uint64_t> KnobSpace::index_of_entity(const json& entity) const {
  if (!entity.is_array()) return std::nullopt;
  for (const json& knob : entity)
    if (!knob.is_array() || knob.size() != 3 || !knob[0].is_string()) return std::nullopt;
  auto value_of = [&](const std::string& name) -> const json* {
    for (const json& knob : entity)
      if (knob[0] == name) return &knob[2];
    return nullptr;
  };
  const json* algorithm = value_of("algorithm");
  for (size_t b = 0; b < branches_.size(); ++b) {
    const Branch& branch = branches_[b];
    if (algorithm ? *algorithm != algorithm_of(*branch.implementation) : branches_.size() > 1) continue;
    if (entity.size() != branch.knobs.size() + (algorithm ? 1 : 0)) continue;
    std::vector<size_t> digits;
    for (const Knob& knob : branch.knobs) {
      const json* value = value_of(knob.name);
      for (size_t i = 0; value && i < knob.values.size(); ++i)
        if (knob.value(i) == *value) {
          digits.push_back(i);
          break;
        }
    }
    if (digits.size() == branch.knobs.size()) return index(b, digits);
  }
  return std::nullopt;
}

}  // namespace tilewright::tune
