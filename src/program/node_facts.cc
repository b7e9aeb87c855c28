// SPDX-License-Identifier: Apache-2.0
#include "program/node_facts.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::program {
namespace {

using namespace relay;

// Operands whose values, not only shapes, determine what a node compiles to.
struct ValueOperands {
  std::string_view op;
  uint32_t operands;  // one bit per operand
  bool host = false;  // implemented as a host function
};
constexpr uint32_t bits(std::initializer_list<int> list) {
  uint32_t out = 0;
  for (int i : list) out |= 1u << i;
  return out;
}
constexpr ValueOperands kValueOperands[] = {
    {"Reshape", bits({1}), true},
    {"Expand", bits({1}), true},
    {"Tile", bits({1, 2}), true},
    {"ConstantOfShape", bits({0}), true},
    {"Range", bits({0, 1, 2}), true},
    {"Slice", bits({1, 2, 3, 4}), true},
    {"Pad", bits({1, 3}), true},
    {"OneHot", bits({1})},
    {"Resize", bits({1, 2, 3})},
    {"Upsample", bits({1})},
    {"Squeeze", bits({1})},
    {"Unsqueeze", bits({1})},
    {"Split", bits({1})},
    {"CumSum", bits({1})},
    {"CumProd", bits({1})},
    {"Trilu", bits({1})},
    {"DFT", bits({1, 2})},
    {"STFT", bits({1, 3})},
    {"HannWindow", bits({0})},
    {"HammingWindow", bits({0})},
    {"BlackmanWindow", bits({0})},
    {"MelWeightMatrix", bits({0, 1, 2, 3, 4})},
    {"CenterCropPad", bits({1})},
    {"Col2Im", bits({1, 2})},
    {"AffineGrid", bits({1})},
    {"Dropout", bits({1, 2})},
    {"MaxUnpool", bits({2})},
    {"ReduceSum", bits({1})},
    {"ReduceMean", bits({1})},
    {"ReduceMax", bits({1})},
    {"ReduceMin", bits({1})},
    {"ReduceProd", bits({1})},
    {"ReduceL1", bits({1})},
    {"ReduceL2", bits({1})},
    {"ReduceLogSum", bits({1})},
    {"ReduceLogSumExp", bits({1})},
    {"ReduceSumSquare", bits({1})},
    {"GroupQueryAttention", bits({6})},
};
constexpr std::string_view kHostOps[] = {"NonZero",           "Compress",           "Unique",
                                         "NonMaxSuppression", "SequenceAt",         "SequenceInsert",
                                         "SequenceErase",     "SequenceLength",     "ConcatFromSequence",
                                         "SplitToSequence",   "OptionalHasElement", "OptionalGetElement",
                                         "ImageDecoder"};
constexpr std::string_view kEvaluateOps[] = {"StringConcat",   "StringSplit",     "StringNormalizer",
                                             "RegexFullMatch", "TfIdfVectorizer", "LabelEncoder",
                                             "CategoryMapper", "DictVectorizer",  "CastMap"};
constexpr std::string_view kNoText[] = {
    "Equal",       "Shape", "Size", "RegexFullMatch", "TfIdfVectorizer", "SequenceLength", "OptionalHasElement",
    "ImageDecoder"};

template <class List>
bool contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// An attribute of the node, or null.
const char* setting(const OnnxNodeAttrs& n, std::string_view name) {
  for (const std::string& s : n.settings)
    if (s.size() > name.size() && s[name.size()] == '=' && s.compare(0, name.size(), name) == 0)
      return s.c_str() + name.size() + 1;
  return nullptr;
}
bool is_integer(const char* text) {
  if (*text == '-') ++text;
  return *text &&
         std::all_of(text, text + std::char_traits<char>::length(text), [](char c) { return c >= '0' && c <= '9'; });
}

bool makes_text(const OnnxNodeAttrs& n, int64_t output, bool of_text) {
  if (n.op == "Cast") return setting(n, "to") && std::string_view(setting(n, "to")) == "8";
  if (n.op == "StringSplit") return output == 0;
  if (n.op == "StringConcat" || n.op == "StringNormalizer") return true;
  if (n.op == "Unique") return of_text && output == 0;  // the others are places and counts
  if (n.op == "CategoryMapper") return !of_text;
  if (n.op == "DictVectorizer") return of_text && !setting(n, "string_vocabulary");  // such keys have numbers
  if (n.op == "CastMap") return setting(n, "cast_to") && std::string_view(setting(n, "cast_to")) == "TO_STRING";
  if (n.op == "TreeEnsembleClassifier" || n.op == "LinearClassifier" || n.op == "SVMClassifier")
    return output == 0 && setting(n, "classlabels_strings") != nullptr;
  if (n.op == "LabelEncoder") {
    const char* tensor = setting(n, "values_tensor");
    return setting(n, "values_strings") || (tensor && kString.str() == tensor);
  }
  return of_text && !contains(kNoText, n.op);
}

const OnnxNodeAttrs* onnx_node(const Expr& e) {
  const auto* call = as<CallNode>(e);
  return call ? attrs_as<OnnxNodeAttrs>(call->attrs) : nullptr;
}

// Whether the type determines every size.
bool is_fixed(const Type& type) {
  if (const auto* t = as_tensor(type)) return static_shape(t->shape).has_value();
  const auto* tuple = as_tuple(type);
  return tuple && std::all_of(tuple->fields.begin(), tuple->fields.end(), is_fixed);
}

bool is_text(const Type& type) {
  if (const auto* t = as_tensor(type)) return t->dtype.is_string();
  const auto* tuple = as_tuple(type);
  return tuple && std::any_of(tuple->fields.begin(), tuple->fields.end(), is_text);
}

}  // namespace

Expr Aliases::resolve(Expr e) {
  while (true) {
    if (const auto* let = as<LetNode>(e)) {
      values_.emplace(let->var.get(), let->value);
      e = let->body;
    } else if (auto it = values_.find(e.get()); it != values_.end()) {
      e = it->second;
    } else if (const auto* node = onnx_node(e); node && node->op == "Identity" && node->domain.empty()) {
      e = as<CallNode>(e)->args.at(0);
    } else {
      return e;
    }
  }
}

Known NodeFacts::known(const Expr& of) {
  const Expr e = aliases.resolve(of);
  auto it = known_.find(e.get());
  if (it != known_.end()) return it->second;
  const Known found = find_known(e);
  return known_[e.get()] = found;
}

Known NodeFacts::find_known(const Expr& e) {
  if (e->kind == ExprKind::kConstant) return Known::kConstant;
  if (const auto* get = as<TupleGetItemNode>(e)) return known(get->tuple);
  const auto* tuple = as<TupleNode>(e);
  if (const auto* branch = as<IfNode>(e))
    return settled(e) ? std::min({known(branch->condition), known(branch->then_branch), known(branch->else_branch)})
                      : Known::kNo;
  if (!tuple && !called_op(e)) return Known::kNo;
  if (!tuple) {
    if (treatment(e).kind != Treatment::kRegion) return Known::kNo;
    const auto* node = onnx_node(e);
    if (is_call_to(e, "shape_of") || is_call_to(e, "ndarray_size") ||
        (node && node->domain.empty() && (node->op == "Shape" || node->op == "Size")))
      return Known::kShape;
  }
  const auto& operands = tuple ? tuple->fields : as<CallNode>(e)->args;
  Known least = operands.empty() && !tuple ? Known::kNo : Known::kConstant;
  for (const Expr& operand : operands) least = std::min(least, known(operand));
  return least;
}

bool NodeFacts::settled(const Expr& branch) {
  auto it = settled_.find(branch.get());
  if (it != settled_.end()) return it->second;
  const bool found = find_settled(*as<IfNode>(branch));
  return settled_[branch.get()] = found;
}

bool NodeFacts::find_settled(const IfNode& branch) {
  // If both sides have equal fixed sizes, the branch is compiled once, not per value of the input.
  if (known(branch.condition) == Known::kInput && is_fixed(branch.then_branch->type) &&
      is_fixed(branch.else_branch->type) && type_equal(branch.then_branch->type, branch.else_branch->type))
    return false;
  const bool several = as_tuple(branch.type) != nullptr;
  return known(branch.condition) != Known::kNo && is_part_of_region(branch.then_branch, several) &&
         is_part_of_region(branch.else_branch, several);
}

// `several`: the side is a tuple of results. A tuple that is a single result is a sequence, which regions cannot
// return.
bool NodeFacts::is_part_of_region(const Expr& side, bool several) {
  const std::vector<Expr> all = post_order(side);
  for (const Expr& e : all)
    if (const auto* let = as<LetNode>(e)) aliases.bind(let->var, let->value);
  for (const Expr& e : all) {
    if (e->kind == ExprKind::kIf && !settled(e)) return false;
    if (const auto* call = as<CallNode>(e)) {
      if (!called_op(e) || text(e)) return false;
      const Treatment& t = treatment(e);
      if (t.kind != Treatment::kRegion) return false;
      for (size_t i : t.values)
        if (known(call->args[i]) == Known::kNo) return false;
    } else if (e->kind != ExprKind::kVar && e->kind != ExprKind::kConstant && e->kind != ExprKind::kOp &&
               e->kind != ExprKind::kTuple && e->kind != ExprKind::kTupleGetItem && e->kind != ExprKind::kLet &&
               e->kind != ExprKind::kIf) {
      return false;
    }
    known(e);
  }
  auto is_tensor = [&](const Expr& result) {
    const Expr e = aliases.resolve(result);
    return e->kind != ExprKind::kTuple && !as_tuple(e->type) && !text(e);
  };
  const Expr root = aliases.resolve(side);
  const auto* tuple = as<TupleNode>(root);
  return several ? tuple && std::all_of(tuple->fields.begin(), tuple->fields.end(), is_tensor) : is_tensor(root);
}

bool NodeFacts::text(const Expr& of) {
  const Expr e = aliases.resolve(of);
  auto it = text_.find(e.get());
  if (it != text_.end()) return it->second;
  const bool found = find_text(e);
  return text_[e.get()] = found;
}

bool NodeFacts::find_text(const Expr& e) {
  if (is_complete(e->type)) return is_text(e->type);
  auto of_operands = [&](const std::vector<Expr>& operands) {
    return std::any_of(operands.begin(), operands.end(), [&](const Expr& operand) { return text(operand); });
  };
  const auto* get = as<TupleGetItemNode>(e);
  const Expr maker = get ? aliases.resolve(get->tuple) : e;
  if (const auto* node = onnx_node(maker))
    return makes_text(*node, get ? get->index : 0, of_operands(as<CallNode>(maker)->args));
  if (get) return text(maker);
  if (const auto* tuple = as<TupleNode>(e)) return of_operands(tuple->fields);
  if (const auto* branch = as<IfNode>(e)) return text(branch->then_branch) || text(branch->else_branch);
  return called_op(e) && of_operands(as<CallNode>(e)->args);
}

const Treatment& NodeFacts::treatment(const Expr& call) {
  auto it = treatments_.find(call.get());
  return it != treatments_.end() ? it->second : treatments_.emplace(call.get(), find_treatment(call)).first->second;
}

Treatment NodeFacts::find_treatment(const Expr& e) {
  const auto& call = *as<CallNode>(e);
  if (const auto* node = onnx_node(e)) return onnx_treatment(call, *node);
  const OpFacts& op = called_op(e)->facts;
  if (op.sized_by_data) return {Treatment::kHost};
  const bool of_text =
      std::any_of(call.args.begin(), call.args.end(), [&](const Expr& operand) { return text(operand); });
  if (of_text || text(e)) return {Treatment::kEvaluate};
  Treatment t;
  for (size_t i = 0; i < call.args.size() && i < 32; ++i)
    if (op.deciding_operands >> i & 1) t.values.push_back(i);
  return t;
}

Treatment NodeFacts::onnx_treatment(const CallNode& call, const OnnxNodeAttrs& n) {
  // For PyTorch nodes, numeric operands determine what they compile to.
  if (n.domain == "torch") {
    Treatment t;
    for (size_t i = 0; i < call.args.size(); ++i)
      if (setting(n, format("number{}", i))) t.values.push_back(i);
    return t;
  }
  if (!n.domain.empty() && n.domain != "ai.onnx.ml" && n.domain != "ai.onnx.preview.training" &&
      n.op != "GroupQueryAttention")
    return {};
  const bool of_text =
      std::any_of(call.args.begin(), call.args.end(), [&](const Expr& operand) { return text(operand); });
  if (n.op == "SequenceConstruct" || n.op == "SequenceEmpty" || n.op == "Optional" || contains(kHostOps, n.op) ||
      (n.op == "TopK" && n.version >= 10))
    return {Treatment::kHost};
  if (contains(kEvaluateOps, n.op) || of_text) return {Treatment::kEvaluate};
  for (int64_t i = 0; i < n.outputs; ++i)
    if (makes_text(n, i, of_text)) return {Treatment::kEvaluate};
  Treatment t;
  for (const ValueOperands& v : kValueOperands) {
    if (v.op != n.op) continue;
    // A host function is used for computed values, so that nothing is compiled for every new value.
    const char* mode = setting(n, "mode");
    const bool host = v.host && !(n.op == "Reshape" && n.version < 5) && !(n.op == "Slice" && n.version < 10) &&
                      !(n.op == "Tile" && n.version < 6) &&
                      !(n.op == "Pad" && (n.version < 11 || (mode && std::string_view(mode) != "constant")));
    for (size_t i = 0; i < n.operands.size() && i < call.args.size(); ++i) {
      if (n.operands[i] < 0 || n.operands[i] > 31 || !(v.operands >> n.operands[i] & 1)) continue;
      if (host && known(call.args[i]) <= Known::kInput) return {Treatment::kHost};
      t.values.push_back(i);
    }
  }
  return t;
}

std::string host_source(const Expr& e) {
  const auto& attrs = as<CallNode>(e)->attrs;
  if (is_call_to(e, "argwhere")) return "argwhere";
  if (const auto* a = attrs_as<UniqueAttrs>(attrs))
    return format("Unique\nsorted={}{}", a->sorted ? 1 : 0, a->axis ? format("\naxis={}", *a->axis) : "");
  if (const auto* a = attrs_as<HostAttrs>(attrs)) {
    std::string out = a->function;
    for (const std::string& s : a->settings) out += "\n" + s;
    return out;
  }
  const auto& node = *attrs_as<OnnxNodeAttrs>(attrs);
  std::string out = node.op;
  for (const std::string& s : node.settings)
    if (const size_t value = s.find('=');
        value != std::string::npos && (node.op == "ImageDecoder" || is_integer(s.c_str() + value + 1)))
      out += "\n" + s;
  return out;
}

}  // namespace tilewright::program
