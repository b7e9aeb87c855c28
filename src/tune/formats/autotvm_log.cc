// SPDX-License-Identifier: Apache-2.0
#include "tune/formats/autotvm_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include "base/format.h"
#include "base/work_folder.h"

namespace tilewright::tune {
namespace {
using nlohmann::json;

constexpr double kLogVersion = 0.2;
// Version written for classic scripts that check it.
constexpr const char* kClassicVersion = "0.9.0";
constexpr double kFailedCost = 1e9;
constexpr size_t kMostBytes = size_t{1} << 20;  // of a line
constexpr int kMostNesting = 16;

// The nesting depth of brackets, which the JSON parser handles recursively.
int nesting_of(std::string_view text) {
  int depth = 0, most = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      most = std::max(most, ++depth);
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return most;
}

bool is_number(const json& j) { return j.is_number() && std::isfinite(j.get<double>()); }

// Parses the fields; returns what is wrong, or an empty string.
std::string read_fields(const json& j, Record* out) {
  const auto input = j.find("input"), config = j.find("config"), result = j.find("result");
  if (input == j.end() || !input->is_array() || input->size() < 3 || !(*input)[0].is_string() ||
      !(*input)[1].is_string() || !(*input)[2].is_array())
    return "'input' is not [target, task, arguments, ...]";
  if (config == j.end() || !config->is_object() || !config->contains("entity") || !(*config)["entity"].is_array())
    return "'config' has no list 'entity'";
  if (result == j.end() || !result->is_array() || result->size() != 4 || !(*result)[0].is_array() ||
      !(*result)[1].is_number_integer() || !is_number((*result)[2]) || !is_number((*result)[3]))
    return "'result' is not [costs, error, seconds, time]";
  out->target = (*input)[0], out->name = (*input)[1], out->args = (*input)[2];
  const auto index = config->find("index");
  if (index != config->end() && index->is_number_unsigned()) out->index = *index;
  if (config->contains("code_hash")) out->code_hash = (*config)["code_hash"];
  out->entity = (*config)["entity"];
  for (const json& cost : (*result)[0]) {
    if (!is_number(cost) || cost.get<double>() <= 0) return "a cost is not a positive number";
    out->costs.push_back(cost);
  }
  out->error = (*result)[1], out->all_cost = (*result)[2], out->timestamp = (*result)[3];
  return "";
}

}  // namespace

const char* error_text(MeasureError error) {
  static constexpr const char* kNames[] = {"NO_ERROR",       "INSTANTIATION_ERROR", "COMPILE_HOST",
                                           "COMPILE_DEVICE", "RUNTIME_DEVICE",      "WRONG_ANSWER",
                                           "BUILD_TIMEOUT",  "RUN_TIMEOUT",         "UNKNOWN_ERROR"};
  return kNames[static_cast<int>(error)];
}

double Record::cost() const {
  if (costs.empty()) return kFailedCost;
  std::vector<double> sorted = costs;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() > 2) sorted = {sorted.begin() + 1, sorted.end() - 1};
  return std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
}

std::string to_line(const Record& r) {
  nlohmann::ordered_json j;
  j["input"] = {r.target, r.name, r.args, json::object()};
  j["config"] = nlohmann::ordered_json{{"index", r.index}, {"code_hash", r.code_hash}, {"entity", r.entity}};
  j["result"] = {r.error == 0 ? r.costs : std::vector<double>{kFailedCost}, r.error, r.all_cost, r.timestamp};
  j["version"] = kLogVersion;
  j["tvm_version"] = kClassicVersion;
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Record> parse_record(std::string_view line, const std::string& origin) {
  auto bad = [&](const std::string& why) {
    return Diagnostic(ErrorCode::kParseError, format("this is no tuning record: {}", why), origin,
                      "records are lines of JSON as autotvm's log_to_file and `tilewright tune -j` write them");
  };
  if (line.size() > kMostBytes) return bad(format("a line of {} bytes", line.size()));
  if (nesting_of(line) > kMostNesting) return bad("too many brackets within each other");
  const json j = json::parse(line, nullptr, false);
  if (j.is_discarded() || !j.is_object()) return bad("the line is no JSON object");
  Record record;
  if (const std::string why = read_fields(j, &record); !why.empty()) return bad(why);
  return record;
}

Result<Log> parse_log(std::string_view text, const std::string& origin) {
  Log log;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const bool whole = end < text.size();
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line[0] == '#') continue;
    auto record = parse_record(line, format("{}, line {}", origin, number));
    if (record.ok()) {
      log.records.push_back(std::move(*record));
      continue;
    }
    const json j =
        line.size() <= kMostBytes && nesting_of(line) <= kMostNesting ? json::parse(line, nullptr, false) : json();
    if (j.is_object() && (j.contains("v") || j.contains("i"))) {
      ++log.other_versions;
    } else if (!whole) {
      log.cut = true;
    } else {
      return std::move(record).error();
    }
  }
  return log;
}

Result<Log> read_log(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return Diagnostic(ErrorCode::kFileNotFound, "there is no such file of tuning records, or it cannot be read", path,
                      "name a file that `tilewright tune -j` or autotvm's log_to_file wrote");
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  return parse_log(text, path);
}

Status append_record(const std::string& path, const Record& record) {
  const std::string line = to_line(record) + "\n";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return cannot_write(path, std::strerror(errno));
  // If a killed writer left an incomplete line, starts a new one.
  char last = '\n';
  const off_t size = ::lseek(file, 0, SEEK_END);
  const bool cut = size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n';
  const std::string text = cut ? "\n" + line : line;
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const std::string why = std::strerror(errno);
  ::close(file);
  if (!written) return cannot_write(path, why);
  return Ok{};
}

}  // namespace tilewright::tune
