// SPDX-License-Identifier: Apache-2.0
#include "relay/operand_types.h"

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
  void visit(const char* name, bool* v) override { numbers[name] = *v; }
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

// Where a deformable convolution reads: two numbers for each tap and place of the result.
Type deformable_offset(const Reader& r, const TensorTypeNode& data) {
  const std::string layout = r.texts.at("data_layout");
  auto kernel = r.lists.find("kernel_size");
  if (layout.size() != 4 || data.shape.size() != 4 || kernel == r.lists.end() || kernel->second.size() != 2) return {};
  std::vector<int64_t> pads = r.lists.at("padding");
  if (pads.size() == 1) pads.assign(4, pads[0]);
  if (pads.size() == 2) pads = {pads[0], pads[1], pads[0], pads[1]};
  const auto &strides = r.lists.at("strides"), &dilation = r.lists.at("dilation");
  if (pads.size() != 4 || strides.size() != 2 || dilation.size() != 2) return {};
  Shape shape(4);
  for (size_t i = 0; i < 4; ++i) {
    const size_t spatial = layout[i] == 'H' ? 0 : 1;
    if (layout[i] == 'C') {
      shape[i] = 2 * kernel->second[0] * kernel->second[1] * r.numbers.at("deformable_groups");
    } else if (layout[i] == 'N') {
      shape[i] = data.shape[i];
    } else {
      if (strides[spatial] < 1) return {};
      const int64_t reach = dilation[spatial] * (kernel->second[spatial] - 1) + 1;
      shape[i] =
          floordiv(data.shape[i] + Dim(pads[spatial] + pads[spatial + 2] - reach), Dim(strides[spatial])) + Dim(1);
    }
  }
  return tensor_type(std::move(shape), data.dtype);
}

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
  if (name == "nn.deformable_conv2d")
    return index == 1 ? deformable_offset(r, *data) : index == 2 ? convolution_weight(r, *data, false) : Type();
  if (index == 1 && name == "nn.matmul" && r.numbers.count("units") && rank > 0) {
    const Dim units(r.numbers.at("units")),
        depth = data->shape[static_cast<size_t>(r.numbers["transpose_a"] && rank > 1 ? rank - 2 : rank - 1)];
    return tensor_type(r.numbers["transpose_b"] ? Shape{units, depth} : Shape{depth, units}, data->dtype);
  }
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
