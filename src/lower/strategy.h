// SPDX-License-Identifier: Apache-2.0
// Chooses the implementation and configuration of an anchor operator. Each operator has a list of implementations with
// priorities (the classic op strategy and plevel); a KernelChooser picks an applicable one and one of its
// configurations, by default the best by the cost model. The choice is made before buffers are planned and never
// revised.
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

// A configuration of an implementation: its canonical text (topi/config.h), empty if there is nothing to choose, and
// its predicted cost.
struct Config {
  std::string text;
  topi::Cost cost;
};

// A configuration with the form of the weight that its kernel reads: equal forms of one constant have the same bytes.
struct FormedConfig {
  std::string form;  // empty: the constant unpacked
  Config config;
  double time;  // microseconds, by which choices are ranked
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
  // The shapes of the anchor's result and arguments.
  std::vector<int64_t> out_shape() const;
  std::vector<int64_t> arg_shape(size_t i) const;
  DataType arg_dtype(size_t i) const;
  template <class A>
  const A& attrs() const {
    return *attrs_as<A>(anchor.call->attrs);
  }
  // Whether an argument is a constant that may be packed: no other argument position uses it.
  bool constant(size_t anchor_arg) const;
};

// Whether the group consists of its anchor only.
bool whole_group(const Problem& problem);
// Whether register tiles can compute a product: operands have one dtype, accumulated in one as wide as the result.
bool has_tiles(const Problem& problem);
// Whether they compute it in words (topi/words.h): unsigned bytes by constant signed ones, or int16 by constant int16,
// in int32, or bfloat16 by constant bfloat16, in float32.
bool has_words(const Problem& problem);
// The product of an activation and a constant matrix that is packed into panels; nothing for other anchors.
std::optional<topi::GemmProblem> packed_product(const Problem& problem);
// Whether another kernel takes rows of the weights of a packed product.
bool is_looked_up(const Problem& problem);

// The priority of implementations for what has no other.
constexpr int kLastResort = 1;

// Made by lower/implementation.h.
struct Implementation {
  const char* op = nullptr;
  const char* name = nullptr;
  int plevel = 0;
  // At most `most` configurations for a problem, the best guess first; none where it does not apply.
  std::vector<Config> (*configs)(const Problem&, size_t most) = nullptr;
  // The Choice for a configuration's text; null if no such kernel exists for the problem.
  std::shared_ptr<Choice> (*instantiate)(const Problem&, const std::string& config) = nullptr;
  // Whether configurations depend on the halos of operands, which other groups' kernels decide. Such an implementation
  // is asked again once halos are known (Graph::placed), and must answer with the same halos.
  bool by_place = false;
  // The best configuration for each form of its weight (the second operand); null: there is one form only.
  std::vector<FormedConfig> (*forms)(const Problem&) = nullptr;
};
std::span<const Implementation> attention_implementations();
std::span<const Implementation> byte_implementations();
std::span<const Implementation> conv_implementations();
std::span<const Implementation> conv_transpose_implementations();
std::span<const Implementation> matmul_implementations();
std::span<const Implementation> matrix_implementations();
std::span<const Implementation> pool_implementations();
std::span<const Implementation> rank_implementations();
std::span<const Implementation> recurrent_implementations();
std::span<const Implementation> reduce_implementations();
std::span<const Implementation> sparse_implementations();
std::span<const Implementation> vision_implementations();
std::span<const Implementation> winograd_implementations();
std::span<const Implementation> direct_implementations();  // used last
std::vector<const Implementation*> implementations_of(std::string_view op);
// Implementation::forms, or its best configuration if there is only one form.
std::vector<FormedConfig> formed_configs(const Implementation& implementation, const Problem& problem);

// An applicable implementation with its best configurations, the guess first. A chooser that needs more asks the
// implementation.
struct Candidate {
  const Implementation* implementation = nullptr;
  std::vector<Config> configs;
};

// A chosen implementation and configuration, and how to emit the group's kernel.
struct Choice {
  const Implementation* kernel = nullptr;  // null for groups without candidates
  std::string implementation;              // "conv2d_nchwc.direct"
  std::string configuration;               // Config::text
  topi::Cost cost;
  std::vector<Candidate> candidates;  // all applicable implementations, including this one
  // The halo that the kernel reads around each group input (may have fewer entries than inputs).
  std::vector<Halo> halos;
  // Constants to repack before buffers are planned: group input -> packing.
  std::vector<std::pair<int, Pack>> repacks;
  // Additional tables for the kernel: they become inputs of the group, behind its own.
  std::vector<Tensor> tables;
  std::function<tir::Stmt(const GroupScope&, const topi::KernelContext&)> emit;
  bool parallel = true;
  bool streams = false;       // each element of the results is stored once, in order and vectors, and not read
  int64_t scratch_bytes = 0;  // per thread: KernelContext::scratch
  DataType scratch_dtype = kFloat32;
};

// A candidate, and any of its configurations, listed or not.
struct Decision {
  size_t candidate = 0;
  std::string config;
};

// Decides among candidates, at least one. The default takes the highest plevel, then the lowest estimated time, in the
// first configuration; other choosers (a user's script, a tuner's records) fall back to it.
class KernelChooser {
 public:
  virtual ~KernelChooser() = default;
  virtual Decision choose(const Problem& problem, std::span<const Candidate> candidates) const;
};

// Errors: UnsupportedOp, naming operator, types and the model's node; InvalidArgument if the chooser names an invalid
// configuration.
Result<std::shared_ptr<const Choice>> choose_implementation(const Graph& graph, const Group& group,
                                                            const Target& target, const KernelChooser& chooser);
// Chooses again once the halos of operands are known (Implementation::by_place), with the same implementation.
Result<std::shared_ptr<const Choice>> choose_in_place(const Graph& graph, const Group& group, const Target& target,
                                                      const KernelChooser& chooser);
// For groups without an anchor: one loop nest per result over its compute definition.
std::shared_ptr<Choice> injective_choice(const Graph& graph, const Group& group, const Target& target);

// Whether rows of a group's results are whole vectors. Others share cache lines: of stores past the caches each would
// write a part of a line, which takes longer than the whole.
bool stores_whole_vectors(const Graph& graph, const Group& group, const Target& target);

// Collapses leading dimensions of a view so that `keep` remain (the merged one included); null if strides do not allow
// it.
std::optional<topi::View> collapse_leading(const topi::View& view, size_t keep);

}  // namespace tilewright::lower
