// SPDX-License-Identifier: Apache-2.0
// Reads an operator's attributes from a JSON node.
#include <algorithm>

#include "base/format.h"
#include "relay/classic/json_nodes.h"

namespace tilewright::relay {
namespace {

// Fills an attribute struct from a node. Numbers and dtypes are stored in the node, all else as references.
class FieldReader : public AttrVisitor {
 public:
  FieldReader(const JsonNodes& nodes, int64_t id) : nodes_(nodes), id_(id) {}
  std::string problem;
  std::vector<std::string> known;
  void visit(const char* name, bool* v) override {
    if (auto n = number(name)) *v = *n != 0;
  }
  void visit(const char* name, int64_t* v) override {
    if (auto n = number(name)) *v = *n;
  }
  void visit(const char* name, double* v) override {
    if (!has(name)) return;
    if (auto x = JsonNodes::real(nodes_.attr(id_, name)))
      *v = *x;
    else
      problem = name;
  }
  void visit(const char* name, std::string* v) override {
    if (!has(name)) return;
    std::string_view n = name;
    bool dtype = n.size() >= 5 && n.substr(n.size() - 5) == "dtype";
    int64_t reference = nodes_.reference(id_, name);
    if (dtype)
      *v = nodes_.attr(id_, name);
    else if (nodes_.kind(reference) == "runtime.String")
      *v = nodes_.text(reference);
    else if (reference)
      problem = name;
  }
  void visit(const char* name, DataType* v) override {
    if (!has(name)) return;
    auto parsed = parse_dtype(nodes_.attr(id_, name));
    if (parsed.ok())
      *v = *parsed;
    else if (!nodes_.attr(id_, name).empty())
      problem = name;
  }
  void visit(const char* name, std::optional<int64_t>* v) override {
    if (int64_t id = reference(name)) {
      int64_t value = 0;
      if (item(id, &value))
        *v = value;
      else
        problem = name;
    }
  }
  void visit(const char* name, std::vector<int64_t>* v) override { list(name, v); }
  void visit(const char* name, std::optional<std::vector<int64_t>>* v) override {
    if (!reference(name)) return;
    v->emplace();
    list(name, &**v);
  }
  void visit(const char* name, std::vector<double>* v) override { list(name, v); }
  void visit(const char* name, std::vector<std::string>* v) override { list(name, v); }
  void visit(const char* name, std::vector<std::vector<int64_t>>* v) override { list(name, v); }

 private:
  bool has(const char* name) {
    known.emplace_back(name);
    return nodes_.has_attr(id_, name);
  }
  int64_t reference(const char* name) { return has(name) ? nodes_.reference(id_, name) : 0; }
  std::optional<int64_t> number(const char* name) {
    if (!has(name)) return std::nullopt;
    auto value = JsonNodes::integer(nodes_.attr(id_, name));
    if (!value) problem = name;
    return value;
  }
  bool item(int64_t id, int64_t* out) {
    auto value = JsonNodes::integer(nodes_.attr(id, "value"));
    if (nodes_.kind(id) != "IntImm" || !value) return false;
    *out = *value;
    return true;
  }
  bool item(int64_t id, double* out) {
    auto value = JsonNodes::real(nodes_.attr(id, "value"));
    if ((nodes_.kind(id) != "FloatImm" && nodes_.kind(id) != "IntImm") || !value) return false;
    *out = *value;
    return true;
  }
  bool item(int64_t id, std::string* out) {
    *out = nodes_.text(id);
    return nodes_.kind(id) == "runtime.String";
  }
  template <class T>
  bool item(int64_t id, std::vector<T>* out) {
    if (nodes_.kind(id) != "Array") return false;
    out->clear();
    for (int64_t part : nodes_.list(id)) {
      T value{};
      if (!item(part, &value)) return false;
      out->push_back(std::move(value));
    }
    return true;
  }
  template <class T>
  void list(const char* name, std::vector<T>* v) {
    int64_t id = reference(name);
    if (!id) return;
    // A single number in place of a list: split's indices_or_sections gives the number of parts.
    int64_t single = 0;
    if (std::is_same_v<T, int64_t> && item(id, &single)) {
      sections = single;
      return;
    }
    if (!item(id, v)) problem = name;
  }

 public:
  std::optional<int64_t> sections;

 private:
  const JsonNodes& nodes_;
  int64_t id_;
};

}  // namespace

Result<AttrsRef> read_attributes(const JsonNodes& nodes, const OpDef& op, int64_t id) {
  AttrsRef out = op.make_attrs ? op.make_attrs() : AttrsRef();
  if (!id || !out) return out;
  FieldReader reader(nodes, id);
  auto* fresh = const_cast<AttrsNode*>(out.get());  // not shared yet
  fresh->visit(reader);
  if (!reader.problem.empty())
    return json_error(format("the attribute {} of {} has a value of the wrong kind", reader.problem, op.name), id);
  if (reader.sections && std::string_view(op.name) == "split") {
    struct Sections : FieldReader {
      using FieldReader::FieldReader;
      void visit(const char* name, int64_t* v) override {
        if (std::string_view(name) == "sections") *v = *sections;
      }
    } set(nodes, id);
    set.sections = reader.sections;
    fresh->visit(set);
  }
  // Fields of the classic structs that have no meaning here.
  static constexpr std::string_view kIgnored[] = {"auto_scheduler_rewritten_layout", "meta_schedule_original_shape"};
  for (const std::string& name : nodes.attr_names(id)) {
    bool known = std::find(reader.known.begin(), reader.known.end(), name) != reader.known.end() ||
                 std::find(std::begin(kIgnored), std::end(kIgnored), name) != std::end(kIgnored);
    std::string value = nodes.attr(id, name.c_str());
    if (!known && value != "0" && !value.empty())
      return json_error(format("{} has no attribute '{}'", op.name, name.substr(0, 64)), id);
  }
  return out;
}

}  // namespace tilewright::relay
