// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_shared_kernels.h"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <map>

#include "base/format.h"

namespace tilewright::codegen {
namespace {

// More parameters would mean offsets that are recomputed in innermost loops: a fifth more instructions.
constexpr size_t kMostSizes = 13;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// A text with its integers taken out, and the integers.
struct Shape {
  std::string form;  // '\1' in place of an integer
  std::vector<int32_t> numbers;
};

// Keeps array lengths and complete indices: those of arrays that compilers hold in registers.
Shape shape_of_text(const std::string& text) {
  Shape out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == at) {
      out.form += text[at++];
      continue;
    }
    const bool whole_index = at > 0 && text[at - 1] == '[' && end < text.size() && text[end] == ']';
    int32_t value = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value);
    const bool number = std::isdigit(static_cast<unsigned char>(text[at])) != 0 && error == std::errc() &&
                        stop == text.data() + end && !whole_index;
    if (number)
      out.form += '\1', out.numbers.push_back(value);
    else
      out.form.append(text, at, end - at);
    at = end;
  }
  return out;
}

// The shared definition of kernels with one form: integers that differ become parameters, always-equal ones the same.
class Family {
 public:
  explicit Family(std::vector<std::vector<int32_t>> numbers) : numbers_(std::move(numbers)) {
    for (size_t i = 0; i < numbers_[0].size(); ++i) {
      std::vector<int32_t> column;
      bool equal = true;
      for (const auto& of_kernel : numbers_) {
        column.push_back(of_kernel[i]);
        equal &= of_kernel[i] == numbers_[0][i];
      }
      parameter_.push_back(equal ? SIZE_MAX : places_.try_emplace(std::move(column), places_.size()).first->second);
    }
  }
  size_t parameters() const { return places_.size(); }
  std::string definition(const std::string& form) const {
    std::string out;
    size_t number = 0;
    for (const char c : form)
      if (c != '\1') {
        out += c;
      } else {
        const size_t p = parameter_[number];
        out += p == SIZE_MAX ? format("{}", numbers_[0][number]) : format("size_{}", p);
        ++number;
      }
    std::string parameters;
    for (size_t i = 0; i < places_.size(); ++i) parameters += format(", int32_t size_{}", i);
    return out.insert(out.find(") {\n"), parameters);
  }
  std::string arguments(size_t kernel) const {
    std::vector<int32_t> values(places_.size());
    for (const auto& [column, place] : places_) values[place] = column[kernel];
    std::string out;
    for (const int32_t v : values) out += format(", {}", v);
    return out;
  }

 private:
  std::vector<std::vector<int32_t>> numbers_;  // by kernel
  std::vector<size_t> parameter_;              // parameter for each integer
  std::map<std::vector<int32_t>, size_t> places_;
};

}  // namespace

CSharedKernels share_kernels(std::span<const CKernelText> kernels) {
  struct Member {
    size_t kernel;
    std::vector<int32_t> numbers;
  };
  std::map<std::string, std::vector<Member>> families;
  std::vector<std::string> forms;
  for (size_t i = 0; i < kernels.size(); ++i) {
    // The name stands between "static void " and the parameters.
    std::string text = kernels[i].text;
    const size_t at = text.find(kernels[i].name + "(");
    const std::string tail = at == std::string::npos ? text : text.substr(at + kernels[i].name.size());
    Shape shape = shape_of_text(tail);
    const bool sharable =
        at != std::string::npos && tail.starts_with("(const ") && tail.find(") {\n") != std::string::npos;
    forms.push_back(sharable ? shape.form : format("\2{}", i));
    families[forms.back()].push_back({i, std::move(shape.numbers)});
  }
  CSharedKernels out;
  out.calls.resize(kernels.size());
  auto keep = [&](size_t i) {
    out.first.push_back(i);
    out.definitions.push_back(kernels[i]);
    out.calls[i] = {kernels[i].name, ""};
  };
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::vector<Member>& members = families[forms[i]];
    if (members[0].kernel != i) continue;
    std::vector<std::vector<int32_t>> numbers;
    for (const Member& m : members) numbers.push_back(m.numbers);
    const Family family(std::move(numbers));
    if (members.size() == 1 || family.parameters() > kMostSizes) {
      for (const Member& m : members) keep(m.kernel);
      continue;
    }
    const std::string& text = kernels[i].text;
    const std::string head = text.substr(0, text.find(kernels[i].name + "(") + kernels[i].name.size());
    out.first.push_back(i);
    out.definitions.push_back({kernels[i].name, head + family.definition(forms[i])});
    for (size_t k = 0; k < members.size(); ++k) out.calls[members[k].kernel] = {kernels[i].name, family.arguments(k)};
  }
  return out;
}

}  // namespace tilewright::codegen
