// SPDX-License-Identifier: Apache-2.0
// What the message readers share: the position in the file, the shared bytes, and how to fail. Damage is reported by an
// exception that does not leave the readers' entry points; protozero throws as well, for truncated fields.
#pragma once
#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "base/format.h"
#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

struct Damage {
  Diagnostic diagnostic;
};

struct ReadState {
  SharedBytes source;
  std::string folder;
  bool external_allowed = false;
  ReadOptions options;
  std::vector<std::string> path;  // "graph", "node 12", ...
  std::map<std::string, SharedBytes> external;
  int64_t nodes = 0;
  int depth = 0;

  std::string place() const;
  [[noreturn]] void fail(std::string message, ErrorCode code = ErrorCode::kMalformedModel) const {
    throw Damage{Diagnostic(code, std::move(message), place())};
  }
};

// While it lives, adds a component to the path of the position being read.
class Place {
 public:
  Place(ReadState& state, std::string name) : state_(state) { state_.path.push_back(std::move(name)); }
  ~Place() {
    if (!std::uncaught_exceptions()) state_.path.pop_back();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  ReadState& state_;
};

// Field number and wire type as one switch label.
constexpr uint32_t varint_field(uint32_t tag) { return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint); }
constexpr uint32_t bytes_field(uint32_t tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}
constexpr uint32_t fixed32_field(uint32_t tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::fixed32);
}
constexpr uint32_t fixed64_field(uint32_t tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::fixed64);
}

inline std::string read_text(protozero::pbf_reader& m, ReadState& state, size_t limit = kMaxNameBytes) {
  auto view = m.get_view();
  if (view.size() > limit)
    state.fail(format("a name or text of {} bytes is longer than {}", view.size(), limit), ErrorCode::kLimitExceeded);
  return std::string(view.data(), view.size());
}
template <class T, class Range>
void append_all(std::vector<T>* out, const Range& range) {
  for (auto value : range) out->push_back(static_cast<T>(value));
}

NamedTensor parse_tensor(protozero::pbf_reader message, ReadState& state);
NamedTensor parse_sparse_tensor(protozero::pbf_reader message, ReadState& state);
ValueType parse_type(protozero::pbf_reader message, ReadState& state);
// `what` says which role the value has in its graph: "input", "output".
ValueInfo parse_value_info(protozero::pbf_reader message, ReadState& state, const char* what);

// Runs a reader and turns any exception into a diagnostic.
template <class T, class Read>
Result<T> guarded(ReadState& state, Read&& read) {
  try {
    return read();
  } catch (Damage& damage) {
    return std::move(damage.diagnostic);
  } catch (const protozero::exception& e) {
    return Diagnostic(ErrorCode::kMalformedModel, format("the file is damaged or is not ONNX ({})", e.what()),
                      state.place(), "fetch or export the model again");
  } catch (const std::bad_alloc&) {
    return Diagnostic(ErrorCode::kLimitExceeded, "not enough memory to read it", state.place());
  }
}

}  // namespace tilewright::onnx
