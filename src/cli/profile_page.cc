// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_page.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/tensor.h"
#include "runtime/classic/graph_json.h"
#include "runtime/profile.h"

namespace tilewright::cli {
namespace {

using runtime::json_string;

std::string number(double v) { return std::isfinite(v) ? format("{:.6g}", v) : "0"; }

template <class List, class F>
std::string array_of(const List& list, F text) {
  std::string out = "[";
  for (const auto& item : list) out += (out.size() > 1 ? ",\n" : "") + text(item);
  return out + "]";
}

// The steps and inputs that each step reads, as "s3" or "i0".
std::vector<std::vector<std::string>> sources(const plan::Plan& plan) {
  const runtime::Graph graph = runtime::graph_of(plan);
  std::vector<std::vector<std::string>> out(plan.steps.size());
  for (const runtime::GraphNode& node : graph.nodes) {
    if (!node.is_call) continue;
    for (const auto& [from, output] : node.inputs) {
      const runtime::GraphNode& source = graph.nodes[from];
      if (!source.is_call && from >= plan.inputs.size()) continue;  // weights are not shown
      std::string name = format("{}{}", source.is_call ? "s" : "i", source.index);
      if (std::find(out[node.index].begin(), out[node.index].end(), name) == out[node.index].end())
        out[node.index].push_back(std::move(name));
    }
  }
  return out;
}

}  // namespace

std::string profile_page_data(const plan::Plan& plan, const std::vector<KernelRow>& rows, const MachinePeak& peak) {
  const auto from = sources(plan);
  std::string steps = "[";
  for (size_t i = 0; i < rows.size() && i < plan.steps.size(); ++i) {
    const KernelRow& row = rows[i];
    const plan::Step& step = plan.steps[i];
    std::string buffers = array_of(step.buffers, [&](uint32_t number_of) {
      const plan::Buffer& b = plan.buffers[number_of];
      return format("{{\"name\":{},\"space\":\"{}\",\"dtype\":\"{}\",\"shape\":\"{}\",\"bytes\":{},\"layout\":{}}}",
                    json_string(b.name), plan::name_of(b.space), b.dtype.str(), shape_str(b.shape), b.bytes,
                    json_string(b.layout));
    });
    steps += format(
        "{}{{\"name\":{},\"nodes\":{},\"kernel\":{},\"kind\":\"{}\",\"implementation\":{},\"min_us\":{},\"median_us\":{"
        "},\"mean_us\":{},\"busy_us\":{},"
        "\"roofline_us\":{},\"bound\":{},\"predicted_us\":{},\"flops\":{},\"bytes\":{},\"parallel\":{},\"outputs\":{},"
        "\"from\":{},\"buffers\":{}}}",
        i ? ",\n" : "", json_string(step.name), json_string(step.source), json_string(plan::callee_of(plan, step)),
        plan::name_of(step.kind), json_string(step.implementation), number(row.step->min_us),
        number(row.step->median_us), number(row.step->mean_us), number(row.step->busy_us), number(row.roofline_us),
        json_string(row.bound), number(row.step->predicted_us), number(step.flops), number(step.bytes), step.parallel,
        step.outputs, array_of(from[i], [](const std::string& s) { return json_string(s); }), buffers);
  }
  steps += "]";
  // An arena buffer is live from the first step that accesses it to the last.
  std::string memory = "[";
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const plan::Buffer& buffer = plan.buffers[b];
    if (buffer.space != plan::Space::kArena) continue;
    size_t first = std::numeric_limits<size_t>::max(), last = 0;
    for (size_t s = 0; s < plan.steps.size(); ++s)
      if (std::find(plan.steps[s].buffers.begin(), plan.steps[s].buffers.end(), b) != plan.steps[s].buffers.end())
        first = std::min(first, s), last = s;
    if (first > last) continue;
    memory += format(
        "{}{{\"name\":{},\"device\":{},\"offset\":{},\"bytes\":{},\"first\":{},\"last\":{},\"shape\":\"{}\",\"dtype\":"
        "\"{}\"}}",
        memory.size() > 1 ? ",\n" : "", json_string(buffer.name), buffer.device, buffer.offset, buffer.bytes, first,
        last, shape_str(buffer.shape), buffer.dtype.str());
  }
  memory += "]";
  auto tensor = [](const plan::TensorInfo& t) {
    return format("{{\"name\":{},\"dtype\":\"{}\",\"shape\":\"{}\"}}", json_string(t.name), t.dtype.str(),
                  shape_str(t.shape));
  };
  std::vector<uint64_t> arenas = {plan.arena_bytes};
  arenas.insert(arenas.end(), plan.device_arena_bytes.begin(), plan.device_arena_bytes.end());
  return format(
      "{{\"model\":{},\"target\":{},\"compiler\":{},\"threads\":{},\"peak_gflops\":{},\"levels\":{},\"arenas\":{},"
      "\"weights_bytes\":{},\"inputs\":{},\"outputs\":{},\n\"steps\":{},\n\"memory\":{}}}",
      json_string(plan.model_name), json_string(plan.target), json_string(plan.compiler_version), peak.threads,
      number(peak.gflops),
      array_of(peak.levels,
               [](const MemoryLevel& level) {
                 return format("{{\"name\":{},\"gbps\":{}}}", json_string(level.name), number(level.gbps));
               }),
      array_of(arenas, [](uint64_t bytes) { return format("{}", bytes); }), plan.params_bytes,
      array_of(plan.inputs, tensor), array_of(plan.outputs, tensor), steps, memory);
}

std::string profile_page(const plan::Plan& plan, const std::vector<KernelRow>& rows, const MachinePeak& peak) {
  // Names come from the model: none may close the enclosing script element.
  std::string data;
  for (char c : profile_page_data(plan, rows, peak)) {
    if (c == '<')
      data += "\\u003c";
    else
      data += c;
  }
  std::string page = kPageHtml;
  return page.replace(page.find(kPageData), std::char_traits<char>::length(kPageData), data);
}

}  // namespace tilewright::cli
