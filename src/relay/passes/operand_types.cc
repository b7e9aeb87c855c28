// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/operand_types.h"

#include <map>
#include <string>

#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

// The attributes this looks at, whatever struct they are in.
class Reader : public AttrVisitor {
 public:
  std::map<std::string, int64_t> numbers;
  std::map<std::string, std::vector<int64_t>> lists;
  std::map<std::string, std::string> texts;
  void visit(const char*, bool*) override {}
  void visit(const char* name, int64_t* v) override { numbers[name] = *v; }
  void visit(const char*, double*) override {}
  void visit(const char* name, std::string* v) override { texts[name] = *v; }
  void visit(const char*, DataType*) override {}
  void visit(const char* name, std::optional<int64_t>* v) override {
    if (*v) numbers[name] = **v;
  }
  void visit(const char* name, std::vector<int64_t>* v) override { lists[name] = *v; }
  void visit(const char* name, std::optional<std::vector<int64_t>>* v) override {
    if (*v) lists[name] = **v;
  }
  void visit(const char*, std::vector<double>*) override {}
  void visit(const char*, std::vector<std::string>*) override {}
  void visit(const char*, std::vector<std::vector<int64_t>>*) override {}
};

// Weights of a convolution, by the letters of its layouts; plain ones only.
Type convolution_weight(const Reader& r, const TensorTypeNode& data, bool transposed) {
  auto text = [&](const char* name) {
    auto it = r.texts.find(name);
    return it == r.texts.end() ? std::string() : it->second;
  };
  const std::string data_layout = text("data_layout"), kernel_layout = text("kernel_layout");
  const size_t channel_axis = data_layout.find('C');
  auto channels = r.numbers.find("channels");
  auto kernel = r.lists.find("kernel_size");
  if (channel_axis == std::string::npos || channel_axis >= data.shape.size() ||
      data_layout.size() != data.shape.size() || kernel_layout.size() != data.shape.size() ||
      channels == r.numbers.end() || kernel == r.lists.end())
    return {};
  const int64_t groups = r.numbers.count("groups") ? r.numbers.at("groups") : 1;
  if (groups <= 0 || channels->second <= 0) return {};
  Shape shape;
  size_t spatial = 0;
  // A transposed convolution's kernel starts with the input channels, whatever the classic default "OIHW" says.
  std::string letters = kernel_layout;
  if (transposed && letters.starts_with("OI")) std::swap(letters[0], letters[1]);
  for (char c : letters) {
    if (c == 'O')
      shape.push_back(transposed ? channels->second / groups : channels->second);
    else if (c == 'I')
      shape.push_back(transposed ? data.shape[channel_axis] : floordiv(data.shape[channel_axis], Dim(groups)));
    else if (spatial < kernel->second.size())
      shape.push_back(kernel->second[spatial++]);
    else
      return {};
  }
  return tensor_type(std::move(shape), data.dtype);
}

}  // namespace

Type operand_type(const OpDef& op, const AttrsRef& attrs, size_t index, const Type& type) {
  const auto* data = as_tensor(type);
  if (!data || index == 0 || !attrs) return {};
  Reader r;
  const_cast<AttrsNode*>(attrs.get())->visit(r);  // the visitor only reads
  const std::string name = op.name;
  const auto rank = static_cast<int64_t>(data->shape.size());
  if (index == 1 && name.starts_with("nn.conv") && name.find("contrib") == std::string::npos)
    return convolution_weight(r, *data, name.ends_with("transpose"));
  if (index == 1 && name == "nn.dense" && r.numbers.count("units") && rank > 0)
    return tensor_type({Dim(r.numbers.at("units")), data->shape.back()}, data->dtype);
  if (name == "nn.bias_add" || name == "nn.prelu" || name == "nn.batch_norm" || name == "nn.layer_norm" ||
      name == "nn.instance_norm" || name == "nn.group_norm") {
    auto it = r.numbers.find("axis");
    int64_t axis = it == r.numbers.end() ? 1 : it->second;
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank) return tensor_type({data->shape[static_cast<size_t>(axis)]}, data->dtype);
  }
  return {};
}

}  // namespace tilewright::relay
