// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "base/tensor.h"

namespace tilewright::runtime {
namespace {

// Length of a valid UTF-8 sequence at the start of `s`, or 0.
size_t utf8_length(std::string_view s) {
  auto lead = static_cast<unsigned char>(s[0]);
  size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (n > s.size()) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((static_cast<unsigned char>(s[i]) & 0xc0) != 0x80) return 0;
  if (n == 3 && lead == 0xe0 && static_cast<unsigned char>(s[1]) < 0xa0) return 0;
  if (n == 3 && lead == 0xed && static_cast<unsigned char>(s[1]) >= 0xa0) return 0;
  if (n == 4 && lead == 0xf0 && static_cast<unsigned char>(s[1]) < 0x90) return 0;
  if (n == 4 && lead == 0xf4 && static_cast<unsigned char>(s[1]) >= 0x90) return 0;
  return n;
}

std::string shortened(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

std::string argument_shapes(const plan::Plan& plan, const plan::Step& step) {
  std::string out;
  for (uint32_t b : step.buffers) {
    const plan::Buffer& buffer = plan.buffers[b];
    out += (out.empty() ? "" : " ") + buffer.dtype.str() + "[" + shape_str(buffer.shape) + "]";
  }
  return out;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    size_t n = utf8_length(text);
    char c = text[0];
    if (n == 0)
      out += "\\ufffd";
    else if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      out += format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += text.substr(0, n);
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  return out + "\"";
}

Profile::Profile(const plan::Plan& plan, const std::vector<Interval>& times, uint64_t repeats, int threads)
    : model_(plan.model_name), target_(plan.target), threads_(threads), repeats_(repeats) {
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::Step& step = plan.steps[s];
    StepProfile p{step.name, step.source, plan::callee_of(plan, step), argument_shapes(plan, step)};
    p.flops = step.flops, p.bytes = step.bytes, p.predicted_us = step.predicted_us, p.parallel = step.parallel;
    p.implementation = step.implementation;
    for (uint32_t b : step.buffers)
      if (plan.buffers[b].space == plan::Space::kParams) p.weight_bytes += static_cast<double>(plan.buffers[b].bytes);
    std::vector<double> wall;
    for (uint64_t r = 0; r < repeats; ++r) {
      int64_t begin = 0, end = 0;
      p.last.clear();
      for (int t = 0; t < threads; ++t) {
        const Interval& i = times[(r * plan.steps.size() + s) * static_cast<size_t>(threads) + static_cast<size_t>(t)];
        p.last.push_back(i);
        if (i.end_ns == 0) continue;
        begin = begin == 0 ? i.begin_ns : std::min(begin, i.begin_ns);
        end = std::max(end, i.end_ns);
        p.busy_us += static_cast<double>(i.end_ns - i.begin_ns) * 1e-3 / static_cast<double>(repeats);
      }
      wall.push_back(static_cast<double>(end - begin) * 1e-3);
    }
    std::sort(wall.begin(), wall.end());
    p.min_us = wall.front();
    p.median_us = wall[wall.size() / 2];
    p.mean_us = std::accumulate(wall.begin(), wall.end(), 0.0) / static_cast<double>(wall.size());
    total_us_ += p.mean_us;
    steps_.push_back(std::move(p));
  }
}

std::string Profile::table() const {
  std::vector<const StepProfile*> order;
  for (const auto& s : steps_) order.push_back(&s);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->mean_us > b->mean_us; });
  std::string out = format("{:<36} {:>10} {:>10} {:>6} {:>8} {:>7} {:>6} {:>8}  {}\n", "step", "mean us", "min us",
                           "share", "GFLOP/s", "GB/s", "busy", "model", "nodes");
  for (const auto* s : order) {
    auto rate = [&](double amount) { return s->min_us > 0 ? amount / s->min_us * 1e-3 : 0; };
    // Predictions are for one thread; "model" is the achieved fraction of the predicted speed.
    double busy = s->mean_us > 0 ? s->busy_us / s->mean_us / (s->parallel ? threads_ : 1) : 0;
    std::string reached = s->predicted_us > 0 && s->min_us > 0
                              ? format("{:.0f}%", 100 * s->predicted_us / (s->min_us * (s->parallel ? threads_ : 1)))
                              : "-";
    out += format("{:<36} {:>10.1f} {:>10.1f} {:>5.1f}% {:>8.1f} {:>7.1f} {:>5.0f}% {:>8}  {}\n",
                  shortened(s->name, 36), s->mean_us, s->min_us, total_us_ > 0 ? 100 * s->mean_us / total_us_ : 0,
                  rate(s->flops), rate(s->bytes), 100 * busy, reached, shortened(s->source, 60));
  }
  double flops = 0;
  for (const auto& s : steps_) flops += s.flops;
  out += format("{} steps, {:.1f} us, {:.1f} GFLOP/s on {} thread{}, {} repeats\n", steps_.size(), total_us_,
                total_us_ > 0 ? flops / total_us_ * 1e-3 : 0, threads_, threads_ == 1 ? "" : "s", repeats_);
  return out;
}

std::string Profile::json() const {
  std::string out = format("{{\"model\":{},\"target\":{},\"threads\":{},\"repeats\":{},\"total_us\":{:.3f},\"steps\":[",
                           json_string(model_), json_string(target_), threads_, repeats_, total_us_);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto& s = steps_[i];
    out += format(
        "{}\n{{\"name\":{},\"source\":{},\"kernel\":{},\"shapes\":{},\"min_us\":{:.3f},\"median_us\":{:.3f},"
        "\"mean_us\":{:.3f},\"busy_us\":{:.3f},\"flops\":{:.0f},\"bytes\":{:.0f},\"predicted_us\":{:.3f},\"parallel\":{"
        "},\"implementation\":{},\"weight_bytes\":{:.0f}}}",
        i ? "," : "", json_string(s.name), json_string(s.source), json_string(s.kernel), json_string(s.shapes),
        s.min_us, s.median_us, s.mean_us, s.busy_us, s.flops, s.bytes, s.predicted_us, s.parallel,
        json_string(s.implementation), s.weight_bytes);
  }
  return out + "\n]}\n";
}

std::string Profile::trace() const {
  int64_t origin = 0;
  for (const auto& s : steps_)
    for (const auto& i : s.last)
      if (i.end_ns != 0 && (origin == 0 || i.begin_ns < origin)) origin = i.begin_ns;
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  bool first = true;
  for (int t = 0; t < threads_; ++t) {
    out +=
        format("{}\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":\"thread {}\"}}}}",
               first ? "" : ",", t, t);
    first = false;
  }
  for (const auto& s : steps_) {
    for (size_t t = 0; t < s.last.size(); ++t) {
      const Interval& i = s.last[t];
      if (i.end_ns == 0) continue;
      out += format(
          ",\n{{\"name\":{},\"cat\":\"step\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
          "\"args\":{{\"nodes\":{},\"kernel\":{},\"shapes\":{}}}}}",
          json_string(s.name), t, static_cast<double>(i.begin_ns - origin) * 1e-3,
          static_cast<double>(i.end_ns - i.begin_ns) * 1e-3, json_string(s.source), json_string(s.kernel),
          json_string(s.shapes));
    }
  }
  return out + "\n]}\n";
}

Result<std::string> Profile::text(std::string_view form) const {
  if (form == "table") return table();
  if (form == "json") return json();
  if (form == "trace") return trace();
  return Diagnostic(ErrorCode::kInvalidArgument, format("a profile has no form '{}'", form), {},
                    "use table, json or trace");
}

}  // namespace tilewright::runtime
