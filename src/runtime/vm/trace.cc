// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/trace.h"

#include <algorithm>
#include <map>

#include "base/format.h"

namespace tilewright::runtime::vm {
namespace {

struct Row {
  std::string name, source;
  int64_t calls = 0, total_ns = 0, least_ns = INT64_MAX;
};

std::vector<Row> rows_of(const std::vector<TraceEvent>& events) {
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const TraceEvent& e : events) {
    Row& r = rows[{e.name, e.source}];
    r.name = e.name, r.source = e.source;
    const int64_t ns = e.time.end_ns - e.time.begin_ns;
    ++r.calls, r.total_ns += ns, r.least_ns = std::min(r.least_ns, ns);
  }
  std::vector<Row> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  std::stable_sort(out.begin(), out.end(), [](const Row& a, const Row& b) { return a.total_ns > b.total_ns; });
  return out;
}

double us(int64_t ns) { return static_cast<double>(ns) * 1e-3; }
std::string cut(const std::string& s, size_t n) { return s.size() <= n ? s : s.substr(0, n - 2) + ".."; }

}  // namespace

std::string trace_table(const std::vector<TraceEvent>& events) {
  const auto rows = rows_of(events);
  int64_t total = 0;
  for (const Row& r : rows) total += r.total_ns;
  std::string out =
      format("{:<40} {:>7} {:>11} {:>10} {:>6}  {}\n", "step", "calls", "total us", "min us", "share", "nodes");
  for (const Row& r : rows)
    out += format(
        "{:<40} {:>7} {:>11.1f} {:>10.1f} {:>5.1f}%  {}\n", cut(r.name, 40), r.calls, us(r.total_ns), us(r.least_ns),
        total > 0 ? 100.0 * static_cast<double>(r.total_ns) / static_cast<double>(total) : 0.0, cut(r.source, 60));
  return out + format("{} calls of {} steps, {:.1f} us\n", events.size(), rows.size(), us(total));
}

std::string trace_json(const std::vector<TraceEvent>& events) {
  std::string out = "{\"steps\":[";
  bool first = true;
  for (const Row& r : rows_of(events)) {
    out +=
        format("{}\n{{\"name\":{},\"source\":{},\"calls\":{},\"total_us\":{:.3f},\"min_us\":{:.3f}}}", first ? "" : ",",
               json_string(r.name), json_string(r.source), r.calls, us(r.total_ns), us(r.least_ns));
    first = false;
  }
  return out + "\n]}\n";
}

std::string trace_chrome(const std::vector<TraceEvent>& events) {
  int64_t origin = INT64_MAX;
  for (const TraceEvent& e : events) origin = std::min(origin, e.time.begin_ns);
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  for (size_t i = 0; i < events.size(); ++i) {
    const TraceEvent& e = events[i];
    out += format(
        "{}\n{{\"name\":{},\"cat\":\"step\",\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{"
        "\"nodes\":{}}}}}",
        i ? "," : "", json_string(e.name), us(e.time.begin_ns - origin), us(e.time.end_ns - e.time.begin_ns),
        json_string(e.source));
  }
  return out + "\n]}\n";
}

}  // namespace tilewright::runtime::vm
