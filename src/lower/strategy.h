// SPDX-License-Identifier: Apache-2.0
// Which implementation an anchor operator gets, and in which configuration. Per operator a list of implementations with
// priorities (the classic op strategy and plevel); a KernelChooser picks one of those that apply and one of its
// configurations, by default what the cost model likes best. What was picked is decided before buffers are planned and
// never again.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lower/group.h"
#include "lower/halo.h"
#include "topi/gemm.h"

namespace tilewright::lower {

// A configuration of an implementation: its one text (topi/config.h), empty where there is nothing to choose, and what
// it is predicted to cost.
struct Config {
  std::string text;
  topi::Cost cost;
};

// A configuration, and the form of the weight that its kernel reads: equal forms of one constant are the same bytes.
struct FormedConfig {
  std::string form;  // empty: the constant as it is
  Config config;
  double time;  // microseconds, as choices count them
};

struct Choice;

struct Problem {
  const Graph& graph;
  const Group& group;
  const Anchor& anchor;
  const Target& target;
  const GraphTensor& input(size_t anchor_arg) const {
    return graph.tensors[group.inputs[static_cast<size_t>(anchor.inputs[anchor_arg])]];
  }
  int input_index(size_t anchor_arg) const { return anchor.inputs[anchor_arg]; }
  const GraphTensor& output() const { return graph.tensors[group.outputs[0]]; }
  // Type of the anchor's own result and of its arguments, shapes as numbers.
  std::vector<int64_t> out_shape() const;
  std::vector<int64_t> arg_shape(size_t i) const;
  DataType arg_dtype(size_t i) const;
  template <class A>
  const A& attrs() const {
    return *attrs_as<A>(anchor.call->attrs);
  }
  // The packed form of a constant argument: usable only when no other argument position shares it.
  bool constant(size_t anchor_arg) const;
};

// Whether the group is its anchor alone.
bool whole_group(const Problem& problem);
// Whether register tiles compute a product: both operands have one dtype, whose sums are as wide as the result.
bool has_tiles(const Problem& problem);
// Whether they compute it in words of four bytes (topi/words.h): unsigned bytes by constant signed ones, in int32.
bool has_words(const Problem& problem);
// The product of an activation and a constant matrix that is packed into panels; nothing when the anchor is none.
std::optional<topi::GemmProblem> packed_product(const Problem& problem);

// lower/implementation.h makes these.
struct Implementation {
  const char* op = nullptr;
  const char* name = nullptr;
  int plevel = 0;
  // Its configurations for a problem, the best guess first, at most `most`; none where it does not apply.
  std::vector<Config> (*configs)(const Problem&, size_t most) = nullptr;
  // What lowering does in the configuration of this text; null where there is no such kernel for the problem.
  std::shared_ptr<Choice> (*instantiate)(const Problem&, const std::string& config) = nullptr;
  // Whether its configurations depend on the halos of its operands, which other groups' kernels decide: it is asked
  // again once they are known (Graph::placed), and what it says then has the same halos.
  bool by_place = false;
  // The best configuration for each form that its weight, the second operand, can have; null: it has one form.
  std::vector<FormedConfig> (*forms)(const Problem&) = nullptr;
};
std::span<const Implementation> attention_implementations();
std::span<const Implementation> byte_implementations();
std::span<const Implementation> conv_implementations();
std::span<const Implementation> conv_transpose_implementations();
std::span<const Implementation> matmul_implementations();
std::span<const Implementation> pool_implementations();
std::span<const Implementation> rank_implementations();
std::span<const Implementation> recurrent_implementations();
std::span<const Implementation> reduce_implementations();
std::span<const Implementation> sparse_implementations();
std::span<const Implementation> vision_implementations();
std::span<const Implementation> winograd_implementations();
std::span<const Implementation> direct_implementations();  // of last resort
std::vector<const Implementation*> implementations_of(std::string_view op);
// Implementation::forms, or its best configuration where there is one form.
std::vector<FormedConfig> formed_configs(const Implementation& implementation, const Problem& problem);

// An implementation that applies, with the best of its configurations, the guess first. A chooser that wants more asks
// the implementation for them.
struct Candidate {
  const Implementation* implementation = nullptr;
  std::vector<Config> configs;
};

// A chosen implementation in its configuration: what lowering does with one group.
struct Choice {
  const Implementation* kernel = nullptr;  // null for groups that have no candidates
  std::string implementation;              // "conv2d_nchwc.direct"
  std::string configuration;               // Config::text
  topi::Cost cost;
  std::vector<Candidate> candidates;  // every implementation that applied, this one included
  // Zeros its kernel reads around each group input (may be shorter than the inputs).
  std::vector<Halo> halos;
  // Constants to repack before buffers are planned: group input -> the tensor it reads instead.
  std::vector<std::pair<int, Pack>> repacks;
  // Tables the kernel needs besides: they become inputs of the group after its own.
  std::vector<Tensor> tables;
  std::function<tir::Stmt(const GroupScope&, const topi::KernelContext&)> emit;
  bool parallel = true;
  int64_t scratch_bytes = 0;  // memory each thread has for the kernel, as KernelContext::scratch
  DataType scratch_dtype = kFloat32;
};

// Which candidate, and any configuration of it, listed or not.
struct Decision {
  size_t candidate = 0;
  std::string config;
};

// Picks among candidates, of which there is one at least. This one takes the highest plevel, then the lowest estimated
// time, in the configuration of the first guess; others (a user's script, a tuner's records) fall back on it.
class KernelChooser {
 public:
  virtual ~KernelChooser() = default;
  virtual Decision choose(const Problem& problem, std::span<const Candidate> candidates) const;
};

// Errors: UnsupportedOp naming the operator, its types and the model's node; InvalidArgument where the chooser names a
// configuration that is none.
Result<std::shared_ptr<const Choice>> choose_implementation(const Graph& graph, const Group& group,
                                                            const Target& target, const KernelChooser& chooser);
// The group's choice once the halos of its operands are known (Implementation::by_place): the same implementation.
Result<std::shared_ptr<const Choice>> choose_in_place(const Graph& graph, const Group& group, const Target& target,
                                                      const KernelChooser& chooser);
// One loop nest per result over its compute definition: groups without an anchor.
std::shared_ptr<Choice> injective_choice(const Graph& graph, const Group& group, const Target& target);

// A view's leading dimensions run together so that `keep` dimensions remain (leading one included); null when strides
// do not allow it.
std::optional<topi::View> collapse_leading(const topi::View& view, size_t keep);

}  // namespace tilewright::lower
