// SPDX-License-Identifier: Apache-2.0
#include "lower/strategy.h"

#include <algorithm>

#include "base/format.h"
#include "lower/compute.h"
#include "lower/weight_forms.h"
#include "relay/op.h"

namespace tilewright::lower {
using namespace relay;

std::vector<int64_t> Problem::out_shape() const {
  const auto* t = as_tensor(anchor.expr->type);
  return t ? *static_shape(t->shape) : std::vector<int64_t>{};
}
namespace {
const TensorTypeNode* flat_arg_type(const CallNode& call, size_t i) {
  for (const Expr& arg : call.args) {
    const auto* tuple = as_tuple(arg->type);
    size_t n = tuple ? tuple->fields.size() : 1;
    if (i < n) return as_tensor(tuple ? tuple->fields[i] : arg->type);
    i -= n;
  }
  return nullptr;
}
}  // namespace
std::vector<int64_t> Problem::arg_shape(size_t i) const { return *static_shape(flat_arg_type(*anchor.call, i)->shape); }
DataType Problem::arg_dtype(size_t i) const { return flat_arg_type(*anchor.call, i)->dtype; }
bool whole_group(const Problem& problem) { return problem.group.function->body == problem.anchor.expr; }
bool has_tiles(const Problem& p) {
  const DataType t = p.arg_dtype(0);
  if (!(t.is_float() ? t.bits >= 16 : t.is_integral() && t.bits >= 8) || p.arg_dtype(1) != t) return false;
  return as_tensor(p.anchor.expr->type)->dtype.bits <= topi::accumulator_dtype(t).bits;
}

bool has_words(const Problem& p) {
  const DataType x = p.arg_dtype(0), w = p.arg_dtype(1), out = as_tensor(p.anchor.expr->type)->dtype;
  const bool integers = ((x == kUInt8 && w == kInt8) || (x == kInt16 && w == kInt16)) && out == kInt32;
  return (integers || (x == kBFloat16 && w == kBFloat16 && out == kFloat32)) && p.constant(1);
}

bool Problem::constant(size_t i) const {
  return anchor.inputs[i] >= 0 && input(i).kind == GraphTensor::Kind::kParam &&
         std::count(group.inputs.begin(), group.inputs.end(), group.inputs[static_cast<size_t>(anchor.inputs[i])]) == 1;
}

Decision KernelChooser::choose(const Problem&, std::span<const Candidate> candidates) const {
  auto better = [](const Candidate& a, const Candidate& b) {
    if (a.implementation->plevel != b.implementation->plevel)
      return a.implementation->plevel > b.implementation->plevel;
    return a.configs[0].cost.weighed() < b.configs[0].cost.weighed();
  };
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i)
    if (better(candidates[i], candidates[best])) best = i;
  return {best, candidates[best].configs[0].text};
}

std::vector<const Implementation*> implementations_of(std::string_view op) {
  std::vector<const Implementation*> out;
  for (auto table :
       {attention_implementations(), byte_implementations(), conv_implementations(), conv_transpose_implementations(),
        winograd_implementations(), matmul_implementations(), matrix_implementations(), pool_implementations(),
        rank_implementations(), recurrent_implementations(), reduce_implementations(), sparse_implementations(),
        vision_implementations(), direct_implementations()})
    for (const Implementation& i : table)
      if (op == i.op) out.push_back(&i);
  return out;
}

std::vector<FormedConfig> formed_configs(const Implementation& implementation, const Problem& problem) {
  if (implementation.forms) return implementation.forms(problem);
  std::vector<FormedConfig> out;
  for (Config& config : implementation.configs(problem, 1)) {
    const double time = config.cost.weighed();
    out.push_back({"", std::move(config), time});
  }
  return out;
}

namespace {

// The number of configurations per candidate that reports show.
constexpr size_t kListedConfigurations = 5;

// The implementation's configurations that read one of these forms, the best first.
std::vector<Config> configs_of_forms(const Implementation& implementation, const Problem& problem,
                                     const std::set<std::string>& forms) {
  if (!implementation.forms)
    return forms.contains("") ? implementation.configs(problem, kListedConfigurations) : std::vector<Config>();
  std::vector<FormedConfig> formed = implementation.forms(problem);
  std::stable_sort(formed.begin(), formed.end(),
                   [](const FormedConfig& a, const FormedConfig& b) { return a.time < b.time; });
  std::vector<Config> out;
  for (FormedConfig& one : formed)
    if (forms.contains(one.form)) out.push_back(std::move(one.config));
  return out;
}

// Applicable implementations. If the weight is shared, only
// configurations that read an agreed form; no forms: all.
std::vector<Candidate> candidates_of_forms(const Problem& problem, const std::set<std::string>& agreed) {
  std::vector<Candidate> out;
  for (const Implementation* implementation : implementations_of(problem.anchor.op)) {
    auto configs = agreed.empty() ? implementation->configs(problem, kListedConfigurations)
                                  : configs_of_forms(*implementation, problem, agreed);
    if (!configs.empty()) out.push_back({implementation, std::move(configs)});
  }
  return out;
}

std::vector<Candidate> candidates_for(const Problem& problem) {
  const WeightForms* forms = problem.graph.forms;
  if (forms && problem.anchor.inputs.size() > 1 && problem.constant(1)) {
    const std::set<std::string> agreed = forms->agreed(problem.input(1).data);
    auto out = candidates_of_forms(problem, agreed);
    if (!out.empty()) return out;
  }
  return candidates_of_forms(problem, {});
}

// Reports what an operator still waits for: sizes or values.
Status check_expanded(const Group& group) {
  for (const Expr& e : post_order(group.function->body)) {
    const OpDef* op = called_op(e);
    if (!op || !op->expand || find_compute(op->name) || !implementations_of(op->name).empty()) continue;
    const auto& call = *as<CallNode>(e);
    std::vector<Type> types;
    for (const Expr& operand : call.args) types.push_back(operand->type);
    auto expansion = op->expand(TypeArgs{types, call.args, call.attrs});
    if (!expansion.ok()) return std::move(expansion).error().at(op->name);
  }
  return Ok{};
}

Diagnostic no_kernel(const Problem& p) {
  std::string types;
  for (size_t i = 0; const auto* t = flat_arg_type(*p.anchor.call, i); ++i)
    types += (i ? ", " : "") + format("Tensor[{}, {}]", tilewright::shape_str(t->shape), t->dtype.str());
  return Diagnostic(ErrorCode::kUnsupportedOp,
                    format("no kernel for {}({}) [{}]", p.anchor.op, types, attrs_str(p.anchor.call->attrs)),
                    p.group.source.empty() ? "" : format("node '{}'", p.group.source),
                    "this operator runs in the reference interpreter only; `tilewright ops` lists what compiles");
}

Result<std::shared_ptr<Choice>> chosen(const Problem& problem, std::vector<Candidate> candidates,
                                       const KernelChooser& chooser) {
  const Decision decision = chooser.choose(problem, candidates);
  TW_ICHECK(decision.candidate < candidates.size(), "a chooser names one of the candidates");
  const Implementation& kernel = *candidates[decision.candidate].implementation;
  std::shared_ptr<Choice> choice = kernel.instantiate(problem, decision.config);
  if (!choice)
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("{} has no configuration '{}' here", kernel.name, decision.config),
                      problem.group.source.empty() ? "" : format("node '{}'", problem.group.source),
                      format("one that it has is '{}'", candidates[decision.candidate].configs[0].text));
  choice->kernel = &kernel;
  choice->implementation = kernel.name;
  choice->configuration = decision.config;
  choice->candidates = std::move(candidates);
  return choice;
}

}  // namespace

Result<std::shared_ptr<const Choice>> choose_implementation(const Graph& graph, const Group& group,
                                                            const Target& target, const KernelChooser& chooser) {
  TW_TRY_STATUS(check_expanded(group));
  // Results without elements need no kernel, and templates do not handle empty tensors.
  if (std::all_of(group.outputs.begin(), group.outputs.end(),
                  [&](int id) { return topi::product(graph.tensors[id].shape) == 0; })) {
    auto nothing = std::make_shared<Choice>();
    nothing->implementation = "nothing";
    nothing->parallel = false;
    nothing->emit = [](const GroupScope&, const topi::KernelContext&) { return tir::seq({}); };
    return std::shared_ptr<const Choice>(std::move(nothing));
  }
  const Anchor anchor = find_anchor(*group.function);
  if (!anchor.call) return std::shared_ptr<const Choice>(injective_choice(graph, group, target));
  const Problem problem{graph, group, anchor, target};
  std::vector<Candidate> candidates = candidates_for(problem);
  if (candidates.empty()) return no_kernel(problem);
  return std::shared_ptr<const Choice>(TW_TRY(chosen(problem, std::move(candidates), chooser)));
}

Result<std::shared_ptr<const Choice>> choose_in_place(const Graph& graph, const Group& group, const Target& target,
                                                      const KernelChooser& chooser) {
  const Choice& before = *group.choice;
  const Anchor anchor = find_anchor(*group.function);
  const Problem problem{graph, group, anchor, target};
  std::vector<Candidate> one{{before.kernel, before.kernel->configs(problem, kListedConfigurations)}};
  TW_ICHECK(!one[0].configs.empty(), "an implementation applies wherever its operands lie");
  std::shared_ptr<Choice> choice = TW_TRY(chosen(problem, one, chooser));
  choice->candidates = before.candidates;
  for (Candidate& candidate : choice->candidates)
    if (candidate.implementation == before.kernel) candidate.configs = std::move(one[0].configs);
  return std::shared_ptr<const Choice>(std::move(choice));
}

bool stores_whole_vectors(const Graph& graph, const Group& group, const Target& target) {
  return std::all_of(group.outputs.begin(), group.outputs.end(), [&](int id) {
    const GraphTensor& t = graph.tensors[id];
    return t.shape.empty() || topi::product(t.shape) == t.shape.back() ||
           t.shape.back() * static_cast<int64_t>(t.dtype.bytes()) * 8 % target.vector_bits == 0;
  });
}

std::optional<topi::View> collapse_leading(const topi::View& view, size_t keep) {
  topi::View out = view;
  while (out.shape.size() > keep) {
    // Merges dimension 0 into dimension 1.
    bool fits = out.shape[0] == 1 || out.shape[1] == 1 || out.strides[0] == out.strides[1] * out.shape[1];
    auto no_halo = [](const std::vector<int64_t>& h) { return h.size() < 2 || (h[0] == 0 && h[1] == 0); };
    if (!fits || !no_halo(out.halo_before) || !no_halo(out.halo_after)) return std::nullopt;
    int64_t stride = out.shape[1] == 1 ? out.strides[0] : out.strides[1];
    if (out.shape[0] == 1) stride = out.strides[1];
    out.shape[1] *= out.shape[0];
    out.strides[1] = stride;
    for (auto* v : {&out.shape, &out.strides, &out.halo_before, &out.halo_after})
      if (!v->empty()) v->erase(v->begin());
  }
  while (out.shape.size() < keep) {
    out.shape.insert(out.shape.begin(), 1);
    out.strides.insert(out.strides.begin(), 0);
    if (!out.halo_before.empty()) out.halo_before.insert(out.halo_before.begin(), 0);
    if (!out.halo_after.empty()) out.halo_after.insert(out.halo_after.begin(), 0);
  }
  return out;
}

}  // namespace tilewright::lower
