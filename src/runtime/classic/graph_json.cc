// SPDX-License-Identifier: Apache-2.0
#include "runtime/classic/graph_json.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/format.h"
#include "runtime/profile.h"

namespace tilewright::runtime {
namespace {

using Entry = std::pair<size_t, size_t>;

std::string unique_name(std::string wanted, std::set<std::string>* used_names) {
  if (used_names->insert(wanted).second) return wanted;
  for (int i = 1;; ++i)
    if (std::string name = format("{}_{}", wanted, i); used_names->insert(name).second) return name;
}

// Tracks which node last wrote each byte of the arena and outputs.
class Writers {
 public:
  void write(const plan::Buffer& b, uint32_t buffer, Entry by) {
    // Overwriting part of a range ends the earlier writer's claim to it: memory is reused.
    const uint64_t begin = b.offset, end = b.offset + b.bytes;
    std::vector<Range> left;
    for (const Range& r : ranges_) {
      if (!r.same_space(b) || r.end <= begin || end <= r.begin) {
        left.push_back(r);
        continue;
      }
      if (r.begin < begin) left.push_back(r), left.back().end = begin;
      if (end < r.end) left.push_back(r), left.back().begin = end;
    }
    left.push_back({b.space, b.index, begin, end, buffer, b.device, by});
    ranges_ = std::move(left);
  }
  // The last writer of exactly this buffer, else the writers of all its parts: views consist of what they cover.
  std::vector<Entry> of(const plan::Buffer& b, uint32_t buffer) const {
    for (auto r = ranges_.rbegin(); r != ranges_.rend(); ++r)
      if (r->buffer == buffer) return {r->by};
    std::vector<Entry> out;
    for (const Range& r : ranges_)
      if (r.same_space(b) && r.begin < b.offset + b.bytes && b.offset < r.end &&
          std::find(out.begin(), out.end(), r.by) == out.end())
        out.push_back(r.by);
    return out;
  }

 private:
  struct Range {
    plan::Space space;
    uint32_t index;
    uint64_t begin, end;
    uint32_t buffer, device;
    Entry by;
    bool same_space(const plan::Buffer& b) const {
      return space == b.space && (space == plan::Space::kArena ? device == b.device : index == b.index);
    }
  };
  std::vector<Range> ranges_;
};

std::string entries(const std::vector<Entry>& list) {
  std::string out = "[";
  for (const auto& [node, output] : list) out += format("{}[{}, {}, 0]", out.size() > 1 ? ", " : "", node, output);
  return out + "]";
}

template <class List, class F>
std::string joined(const List& list, F text) {
  std::string out = "[";
  for (const auto& item : list) out += (out.size() > 1 ? ", " : "") + text(item);
  return out + "]";
}

}  // namespace

Graph graph_of(const plan::Plan& plan) {
  Graph g;
  std::set<std::string> used_names;
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    g.nodes.push_back({unique_name(plan.inputs[i].name, &used_names), false, i, {}, {}});
  for (size_t i = 0; i < plan.params.size(); ++i)
    g.nodes.push_back({unique_name(plan.params[i].name, &used_names), false, i, {}, {}});
  Writers writers;
  auto source = [&](uint32_t number) -> std::vector<Entry> {
    const plan::Buffer& b = plan.buffers[number];
    if (b.space == plan::Space::kInput && b.index >= plan.inputs.size()) return {};  // a free size
    if (b.space == plan::Space::kInput) return {{b.index, 0}};
    if (b.space == plan::Space::kParams) {
      for (size_t i = 0; i < plan.params.size(); ++i)
        if (plan.params[i].offset <= b.offset &&
            b.offset < plan.params[i].offset + std::max<uint64_t>(plan.params[i].bytes, 1))
          return {{plan.inputs.size() + i, 0}};
      return {};
    }
    return writers.of(b, number);
  };
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::Step& step = plan.steps[s];
    GraphNode node{unique_name(plan::callee_of(plan, step), &used_names), true, s, {}, {}};
    size_t end = step.buffers.size();
    while (end > 0 && plan.buffers[step.buffers[end - 1]].space == plan::Space::kScratch) --end;
    size_t first_output = end - std::min<size_t>(end, step.outputs);
    for (size_t k = 0; k < first_output; ++k)
      for (const Entry& e : source(step.buffers[k])) node.inputs.push_back(e);
    for (size_t k = first_output; k < end; ++k) {
      writers.write(plan.buffers[step.buffers[k]], step.buffers[k], {g.nodes.size(), k - first_output});
      node.outputs.push_back(step.buffers[k]);
    }
    g.nodes.push_back(std::move(node));
  }
  for (uint32_t i = 0; i < plan.outputs.size(); ++i) {
    plan::Buffer whole{plan::Space::kOutput, i, 0, uint64_t{1} << 62, plan.outputs[i].dtype, {}, "", ""};
    auto from = writers.of(whole, UINT32_MAX);
    g.heads.push_back(from.empty() ? Entry{0, 0} : from.back());
  }
  return g;
}

std::string write_graph_json(const plan::Plan& plan) {
  Graph g = graph_of(plan);
  std::string nodes, args, rows = "0";
  std::vector<std::string> dtypes, storage;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::tuple<int, uint64_t, uint32_t>> places;  // storage ids: one per start of a buffer
  std::vector<int32_t> devices;
  // The device of an input or parameter: that of its first reader.
  auto device_of = [&](plan::Space space, uint32_t index, uint64_t offset) -> uint32_t {
    for (const plan::Buffer& b : plan.buffers)
      if (b.space == space && (space == plan::Space::kInput ? b.index == index : b.offset == offset)) return b.device;
    return 0;
  };
  auto storage_id = [&](plan::Space space, uint64_t offset, uint32_t device) {
    std::tuple<int, uint64_t, uint32_t> place{static_cast<int>(space), offset, device};
    auto at = std::find(places.begin(), places.end(), place);
    if (at == places.end()) at = places.insert(places.end(), place);
    return at - places.begin();
  };
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const GraphNode& n = g.nodes[i];
    nodes += format("{}    {{\n      \"op\": \"{}\",\n      \"name\": {},\n", i ? ",\n" : "",
                    n.is_call ? "tvm_op" : "null", json_string(n.name));
    if (n.is_call) {
      const plan::Step& step = plan.steps[n.index];
      std::string layout;
      for (uint32_t b : n.outputs)
        if (!plan.buffers[b].layout.empty()) layout = plan.buffers[b].layout;
      nodes += format(
          "      \"attrs\": {{\"func_name\": {}, \"num_inputs\": \"{}\", \"num_outputs\": \"{}\", \"flatten_data\": "
          "\"0\"{}}},\n",
          json_string(plan::callee_of(plan, step)), n.inputs.size(), n.outputs.size(),
          layout.empty() ? "" : ", \"out_layout\": " + json_string(layout));
      for (uint32_t number : n.outputs) {
        const plan::Buffer& b = plan.buffers[number];
        shapes.push_back(b.shape);
        dtypes.push_back(b.dtype.str());
        devices.push_back(plan.devices[b.device]);
        storage.push_back(
            format("{}", storage_id(b.space, b.space == plan::Space::kArena ? b.offset : b.index, b.device)));
      }
    } else {
      args += format("{}{}", args.empty() ? "" : ", ", i);
      bool input = i < plan.inputs.size();
      shapes.push_back(input ? plan.inputs[n.index].shape : plan.params[n.index].shape);
      dtypes.push_back((input ? plan.inputs[n.index].dtype : plan.params[n.index].dtype).str());
      const plan::Space space = input ? plan::Space::kInput : plan::Space::kParams;
      const uint32_t device = device_of(space, static_cast<uint32_t>(n.index), input ? 0 : plan.params[n.index].offset);
      devices.push_back(plan.devices[device]);
      storage.push_back(format("{}", storage_id(space, n.index, device)));
    }
    nodes += format("      \"inputs\": {}\n    }}", entries(n.inputs));
    rows += format(", {}", shapes.size());
  }
  std::string shape_text =
      joined(shapes, [](const auto& s) { return joined(s, [](int64_t d) { return format("{}", d); }); });
  std::string dtype_text = joined(dtypes, [](const std::string& s) { return json_string(s); });
  std::string storage_text = joined(storage, [](const std::string& s) { return s; });
  std::string device_text = joined(devices, [](int32_t type) { return format("{}", type); });
  return format(
      "{{\n  \"nodes\": [\n{}\n  ],\n  \"arg_nodes\": [{}],\n  \"heads\": {},\n  \"attrs\": {{\n    \"dltype\": "
      "[\"list_str\", {}],\n"
      "    \"device_index\": [\"list_int\", {}],\n    \"storage_id\": [\"list_int\", {}],\n    \"shape\": "
      "[\"list_shape\", {}]\n  }},\n"
      "  \"node_row_ptr\": [{}]\n}}\n",
      nodes, args, entries(g.heads), dtype_text, device_text, storage_text, shape_text, rows);
}

}  // namespace tilewright::runtime
