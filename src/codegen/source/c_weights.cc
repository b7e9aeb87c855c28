// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_weights.h"

#include <algorithm>

#include "base/format.h"
#include "codegen/source/c_types.h"

namespace tilewright::codegen {
namespace {

constexpr size_t kWeightLine = 110;

// An element's text; packed elements are written byte by byte, small floats as bits.
std::string c_element(const Tensor& t, int64_t i) {
  const DataType type = t.dtype();
  if (type.bits < 8 || type.bits == 8)
    return format("{}", type.is_int() && type.bits == 8 ? static_cast<int>(t.at_int(i))
                                                        : static_cast<int>(std::to_integer<unsigned>(t.raw()[i])));
  if (is_bits_float(type)) {
    const auto low = std::to_integer<unsigned>(t.raw()[2 * i]), high = std::to_integer<unsigned>(t.raw()[2 * i + 1]);
    return format("{:#x}", high << 8 | low);
  }
  const std::string text = type.is_float() ? c_float(t.at_double(i), type) : c_integer(t.at_int(i), type);
  return text[0] == '(' && text.find(')') + 1 == text.size() ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::string c_weight(const plan::Param& param, const std::string& name, const Tensor& data, bool aligned) {
  const int64_t count = data.dtype().bits < 8 ? static_cast<int64_t>(data.bytes()) : data.size();
  std::string out = format("/* {}: {} {}{} */\nstatic const {} {}[{}]{} = {{", c_comment(param.name), param.dtype.str(),
                           shape_str(param.shape), param.layout.empty() ? "" : " " + c_comment(param.layout),
                           c_storage_type(data.dtype()), name, std::max<int64_t>(1, count),
                           aligned ? " __attribute__((aligned(64)))" : "");
  if (count == 0) return out + "0};\n";
  size_t column = kWeightLine;
  for (int64_t i = 0; i < count; ++i) {
    const std::string text = c_element(data, i) + (i + 1 < count ? "," : "");
    if (column + text.size() > kWeightLine) out += "\n  ", column = 2;
    out += text, column += text.size();
  }
  return out + "};\n\n";
}

}  // namespace tilewright::codegen
