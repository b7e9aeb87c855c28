// SPDX-License-Identifier: Apache-2.0
// The code generator "dnnl" with modules of type "dnnl_json": functions run by oneDNN, and "dnnl_c_src", which writes
// them as C (docs/external-codegen.md). A plug-in of compiler and runtime, so that neither depends on oneDNN.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugins/dnnl_source.h"
#include "plugins/dnnl_steps.h"
#include "plugins/graph_plugin.h"

namespace {

namespace onednn = tilewright::plugins::onednn;
using dnnl::memory;
using onednn::Dims;
using onednn::kNone;
using onednn::PostOp;
using onednn::Step;
using tilewright::plugins::damaged;
using tilewright::plugins::Graph;

memory::format_tag plain(size_t rank) {
  using T = memory::format_tag;
  static const T kTags[] = {T::a, T::a, T::ab, T::abc, T::abcd, T::abcde, T::abcdef};
  if (rank >= std::size(kTags)) throw std::runtime_error("oneDNN takes tensors of up to six dimensions here");
  return kTags[rank];
}
memory::desc plain_desc(Dims dims) {
  if (dims.empty()) dims = {1};
  return {dims, memory::data_type::f32, plain(dims.size())};
}
memory::desc any_desc(const Dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::any}; }

// Memory in large pages where it is large: weights and maps are read as streams, which cross a small page every 64
// lines.
using Pages = std::unique_ptr<void, void (*)(void*)>;
Pages pages(size_t bytes) {
  constexpr size_t kSmall = 4096, kLarge = 2 << 20;
  const size_t alignment = bytes >= kLarge ? kLarge : kSmall;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  Pages out(std::aligned_alloc(alignment, rounded), std::free);
  if (out == nullptr) throw std::bad_alloc();
  if (alignment == kLarge) madvise(out.get(), rounded, MADV_HUGEPAGE);  // a wish
  return out;
}

// Memory of reordered constants, in few pieces, of up to `most` bytes together unless one needs more.
class Constants {
 public:
  explicit Constants(size_t most) : most_(most) {}
  void* take(size_t bytes) {
    constexpr size_t kPiece = 32 << 20, kAlignment = 4096;
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > left_) {
      left_ = std::max(bytes, std::min(kPiece, most_));
      pieces_.push_back(pages(left_));
      next_ = static_cast<char*>(pieces_.back().get());
    }
    char* out = next_;
    next_ += bytes;
    left_ -= bytes;
    return out;
  }

 private:
  std::vector<Pages> pieces_;
  char* next_ = nullptr;
  size_t left_ = 0;
  const size_t most_;
};

// Memory of intermediate values, which those that are never alive at once share.
class Blocks {
 public:
  // The smallest free block that holds so many bytes, or a new one.
  size_t take(size_t bytes) {
    size_t best = kNone;
    for (size_t i = 0; i < blocks_.size(); ++i)
      if (blocks_[i].free && blocks_[i].bytes >= bytes && (best == kNone || blocks_[i].bytes < blocks_[best].bytes))
        best = i;
    if (best == kNone) {
      best = blocks_.size();
      blocks_.push_back({pages(bytes), bytes, true});
    }
    blocks_[best].free = false;
    return best;
  }
  void release(size_t block) { blocks_[block].free = true; }
  void* address(size_t block) const { return blocks_[block].data.get(); }

 private:
  struct Block {
    Pages data;
    size_t bytes;
    bool free;
  };
  std::vector<Block> blocks_;
};

// The function: values by graph entry, and primitives in execution order.
class Plan {
 public:
  Plan(const Graph& graph, std::vector<std::string>& constants)
      : graph_(graph),
        reader_(graph),
        stream_(engine_),
        constants_(graph.bytes()),
        block_of_(graph.nodes().size(), kNone) {
    size_t constant = 0;
    for (size_t i = 0; i < nodes().size(); ++i) {
      const memory::desc desc = plain_desc(shape_of(i));
      switch (nodes()[i].kind) {
        case Graph::Kind::kInput:
          values_.push_back(memory(desc, engine_, nullptr));
          break;
        case Graph::Kind::kConstant:
          values_.push_back(memory(desc, engine_, constants[constant++].data()));
          break;
        case Graph::Kind::kKernel:
          values_.push_back(kernel(reader_.step_of(i)));
          if (onednn::dims_of(values_.back().get_desc()) != onednn::dims_of(desc))
            damaged("a kernel has another shape than its node");
          release_after(i);
          break;
      }
    }
    for (size_t node : graph_.heads()) {
      memory out(plain_desc(shape_of(node)), engine_, nullptr);
      dnnl::reorder copy(values_[node], out);
      run_.push_back({copy, {{DNNL_ARG_FROM, values_[node]}, {DNNL_ARG_TO, out}}});
      outputs_.push_back(out);
    }
  }

  void call(tilewright::Args args) {
    const std::vector<size_t>& inputs = graph_.inputs();
    for (size_t i = 0; i < args.size(); ++i) {
      const DLTensor& t = args[i].tensor();
      memory& value = i < inputs.size() ? values_[inputs[i]] : outputs_[i - inputs.size()];
      value.set_data_handle(static_cast<char*>(t.data) + t.byte_offset);
    }
    for (auto& [view, base] : views_) view.set_data_handle(base.get_data_handle());
    for (auto& [primitive, arguments] : run_) primitive.execute(stream_, arguments);
    stream_.wait();
  }

 private:
  const std::vector<Graph::Node>& nodes() const { return graph_.nodes(); }
  const Dims& shape_of(size_t node) const { return nodes()[node].shape; }
  bool is_constant(size_t node) const { return nodes()[node].kind == Graph::Kind::kConstant; }

  // Memory of a node, or with kNone of the step that is being made.
  memory fresh(const memory::desc& desc, size_t node) {
    const size_t block = blocks_.take(desc.get_size());
    if (node == kNone)
      of_step_.push_back(block);
    else
      block_of_[node] = block;
    return {desc, engine_, blocks_.address(block)};
  }
  // What the step alone used, and values that it was the last to read.
  void release_after(size_t index) {
    for (size_t block : of_step_) blocks_.release(block);
    of_step_.clear();
    for (size_t read : nodes()[index].inputs)
      if (reader_.last_use()[read] == index && block_of_[read] != kNone) {
        blocks_.release(block_of_[read]);
        block_of_[read] = kNone;
      }
  }

  // The value in the layout that a primitive prefers: constants are reordered once, now.
  memory laid_out(const memory& value, const memory::desc& wanted, bool once) {
    if (value.get_desc() == wanted) return value;
    memory out = once ? memory(wanted, engine_, constants_.take(wanted.get_size())) : fresh(wanted, kNone);
    dnnl::reorder copy(value, out);
    if (once) {
      copy.execute(stream_, {{DNNL_ARG_FROM, value}, {DNNL_ARG_TO, out}});
      stream_.wait();
    } else {
      run_.push_back({copy, {{DNNL_ARG_FROM, value}, {DNNL_ARG_TO, out}}});
    }
    return out;
  }
  // A view of the memory with another shape; its address may change with each call.
  memory seen_as(const memory& value, const memory::desc& desc, bool once) {
    const memory flat = laid_out(value, plain_desc(onednn::dims_of(value.get_desc())), once);
    if (flat.get_desc().get_size() != desc.get_size()) damaged("an operand has another size than its operator");
    memory view(desc, engine_, flat.get_data_handle());
    views_.emplace_back(view, flat);
    return view;
  }

  // The attributes of a primitive with post-ops; their operands join `arguments`.
  dnnl::primitive_attr attributes(const Step& step, std::unordered_map<int, memory>* arguments) {
    dnnl::post_ops post;
    for (const PostOp& op : step.tail) {
      switch (op.kind) {
        case PostOp::Kind::kEltwise:
          onednn::append_eltwise(&post, op.function.cpp(), op.alpha, op.beta);
          break;
        case PostOp::Kind::kSum:
          post.append_sum(1.0f);
          break;
        case PostOp::Kind::kBinaryAdd:
          (*arguments)[DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.len()) | DNNL_ARG_SRC_1] =
              seen_as(values_[op.operand], plain_desc(op.seen), is_constant(op.operand));
          post.append_binary(dnnl::algorithm::binary_add, plain_desc(op.seen));
          break;
      }
    }
    dnnl::primitive_attr attr;
    attr.set_post_ops(post);
    return attr;
  }

  // The result's memory, initialised with the addend: that value's own memory if nothing reads it later.
  memory result_of(const memory::desc& desc, const Step& step) {
    if (step.sum == kNone) return fresh(desc, step.node);
    if (step.sum_may_be_written && values_[step.sum].get_desc() == desc) {
      std::swap(block_of_[step.node], block_of_[step.sum]);
      return values_[step.sum];
    }
    memory out = fresh(desc, step.node);
    run_.push_back({dnnl::reorder(values_[step.sum], out), {{DNNL_ARG_FROM, values_[step.sum]}, {DNNL_ARG_TO, out}}});
    return out;
  }

  memory emit(const dnnl::primitive& primitive, std::unordered_map<int, memory> arguments) {
    memory out = arguments.at(DNNL_ARG_DST);
    run_.push_back({primitive, std::move(arguments)});
    return out;
  }

  memory kernel(const Step& step);
  memory convolution(const Step& step);
  memory product(const Step& step);
  memory binary(const Step& step);

  const Graph& graph_;
  const onednn::StepReader reader_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  Blocks blocks_;
  Constants constants_;
  std::vector<size_t> block_of_, of_step_;  // block_of_: by node
  std::vector<memory> values_, outputs_;
  std::vector<std::pair<memory, memory>> views_;  // views with the memory they refer to
  std::vector<std::pair<dnnl::primitive, std::unordered_map<int, memory>>> run_;
};

memory Plan::kernel(const Step& step) {
  const memory& from = values_[step.data];
  const memory::desc desc = from.get_desc();
  switch (step.kind) {
    case Step::Kind::kConvolution:
      return convolution(step);
    case Step::Kind::kProduct:
      return product(step);
    case Step::Kind::kBinary:
      return binary(step);
    case Step::Kind::kPool: {
      const auto made =
          onednn::pooling(engine_, step.algorithm.cpp(), desc, any_desc(step.out), step.window, step.slide);
      return emit(dnnl::pooling_forward(made),
                  {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, fresh(made.dst_desc(), step.node)}});
    }
    case Step::Kind::kSoftmax:
      return emit(dnnl::softmax_forward(onednn::softmax(engine_, desc, step.axis)),
                  {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, fresh(desc, step.node)}});
    case Step::Kind::kEltwise:
      break;
  }
  return emit(dnnl::eltwise_forward(onednn::eltwise(engine_, step.algorithm.cpp(), desc, step.alpha, step.beta)),
              {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, fresh(desc, step.node)}});
}

memory Plan::convolution(const Step& step) {
  std::unordered_map<int, memory> arguments;
  const dnnl::primitive_attr attr = attributes(step, &arguments);
  const memory::desc bias = any_desc({step.out[1]});
  const auto made = onednn::convolution(engine_, any_desc(step.in), any_desc(step.weights),
                                        step.bias == kNone ? nullptr : &bias, any_desc(step.out), step.slide, attr);
  arguments[DNNL_ARG_SRC] = laid_out(values_[step.data], made.src_desc(), is_constant(step.data));
  const bool fixed = is_constant(step.other);
  const memory weights =
      step.weights.size() == 4 ? values_[step.other] : seen_as(values_[step.other], plain_desc(step.weights), fixed);
  arguments[DNNL_ARG_WEIGHTS] = laid_out(weights, made.weights_desc(), fixed);
  if (step.bias != kNone) arguments[DNNL_ARG_BIAS] = seen_as(values_[step.bias], plain_desc({step.out[1]}), true);
  arguments[DNNL_ARG_DST] = result_of(made.dst_desc(), step);
  return emit(dnnl::convolution_forward(made), std::move(arguments));
}

memory Plan::product(const Step& step) {
  std::unordered_map<int, memory> arguments;
  const dnnl::primitive_attr attr = attributes(step, &arguments);
  const memory::desc bias = any_desc({step.out[1]});
  const auto made = onednn::inner_product(engine_, any_desc(step.in), any_desc(step.weights),
                                          step.bias == kNone ? nullptr : &bias, any_desc(step.out), attr);
  arguments[DNNL_ARG_SRC] = laid_out(values_[step.data], made.src_desc(), is_constant(step.data));
  arguments[DNNL_ARG_WEIGHTS] = laid_out(values_[step.other], made.weights_desc(), is_constant(step.other));
  if (step.bias != kNone) arguments[DNNL_ARG_BIAS] = seen_as(values_[step.bias], plain_desc({step.out[1]}), true);
  arguments[DNNL_ARG_DST] = result_of(made.dst_desc(), step);
  return emit(dnnl::inner_product_forward(made), std::move(arguments));
}

memory Plan::binary(const Step& step) {
  const memory from = values_[step.data];
  const bool fixed = is_constant(step.other);
  const memory other = shape_of(step.other) == step.out ? laid_out(values_[step.other], from.get_desc(), fixed)
                                                        : seen_as(values_[step.other], plain_desc(step.weights), fixed);
  const auto made = onednn::binary(engine_, step.algorithm.cpp(), from.get_desc(), other.get_desc(), from.get_desc());
  return emit(dnnl::binary(made),
              {{DNNL_ARG_SRC_0, from}, {DNNL_ARG_SRC_1, other}, {DNNL_ARG_DST, fresh(from.get_desc(), step.node)}});
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const tw_external_codegen* tw_compiler_plugin(uint64_t* count) {
  static const tilewright::ExternalCodegen as_json = tilewright::plugins::graph_codegen<Plan>("dnnl");
  static const tilewright::ExternalCodegen as_source = onednn::source_codegen("dnnl_c_src", as_json);
  static const tw_external_codegen list[] = {as_json.as_c(), as_source.as_c()};
  *count = std::size(list);
  return list;
}

__attribute__((visibility("default"))) int32_t tw_runtime_plugin(void) {
  return tilewright::plugins::register_graph_loader<Plan>("dnnl");
}

}  // extern "C"
