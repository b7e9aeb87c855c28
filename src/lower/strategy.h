// SPDX-License-Identifier: Apache-2.0
// Which implementation an anchor operator gets. Per operator a list of implementations with priorities (the classic
// op strategy and plevel); a KernelChooser picks among those that apply, by default the one the cost model likes best.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lower/buffers.h"
#include "lower/group.h"
#include "topi/gemm.h"

namespace tilewright::lower {

// An implementation that applies to a group, for reports.
struct Candidate {
  std::string implementation, configuration;
  int plevel = 0;
  topi::Cost cost;
};

// A chosen implementation with its configuration: what lowering does with one group.
struct Choice {
  std::string implementation;  // "conv2d_nchwc.direct"
  topi::Cost cost;
  // As text, for reports and to tell kernels and packed weights of one implementation apart; empty where there is
  // nothing to choose.
  std::string configuration;
  std::function<std::vector<topi::RankedConfig>()> configurations;  // all that were weighed; may be empty
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
// The product of an activation and a constant matrix that is packed into panels; nothing when the anchor is none.
std::optional<topi::GemmProblem> packed_product(const Problem& problem);

struct Implementation {
  const char* op;
  const char* name;
  int plevel;
  // The configured implementation, or null when it does not apply to this problem.
  std::shared_ptr<Choice> (*configure)(const Problem&);
};
std::span<const Implementation> attention_implementations();
std::span<const Implementation> conv_implementations();
std::span<const Implementation> conv_transpose_implementations();
std::span<const Implementation> matmul_implementations();
std::span<const Implementation> recurrent_implementations();
std::span<const Implementation> reduce_implementations();
std::span<const Implementation> sparse_implementations();
std::span<const Implementation> vision_implementations();
std::span<const Implementation> direct_implementations();  // of last resort
std::vector<const Implementation*> implementations_of(std::string_view op);

// Picks among applicable choices (each with its cost). The tuner supplies one that knows records.
class KernelChooser {
 public:
  virtual ~KernelChooser() = default;
  // The index of the choice to take; the default is the highest plevel, then the lowest estimated time.
  virtual size_t choose(const Problem&, std::span<const std::shared_ptr<Choice>> choices,
                        std::span<const int> plevels) const;
  // Asked first by the default; nothing leaves the choice to it. A copy asks the same.
  std::function<std::optional<size_t>(const Problem&, std::span<const std::shared_ptr<Choice>> choices,
                                      std::span<const int> plevels)>
      prefer;
};

// Errors: UnsupportedOp naming the operator, its types and the model's node.
Result<std::shared_ptr<const Choice>> choose_implementation(const Graph& graph, const Group& group,
                                                            const Target& target, const KernelChooser& chooser);

// A view's leading dimensions run together so that `keep` dimensions remain (leading one included); null when strides
// do not allow it.
std::optional<topi::View> collapse_leading(const topi::View& view, size_t keep);

}  // namespace tilewright::lower
