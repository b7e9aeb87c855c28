// SPDX-License-Identifier: Apache-2.0
// TypeProto and ValueInfoProto: the types of a graph's inputs, outputs and values.
#include "base/format.h"
#include "frontend/onnx/proto.h"
#include "frontend/onnx/wire.h"

namespace tilewright::onnx {

std::string ValueType::str() const {
  switch (kind) {
    case kTensor:
    case kSparse: {
      std::string out = elem ? elem->str() : "?";
      if (!shape) return out + "[...]";
      out += "[";
      for (size_t i = 0; i < shape->size(); ++i) {
        const auto& d = (*shape)[i];
        out += (i ? "," : "") + (d.value ? std::to_string(*d.value) : d.param.empty() ? "?" : d.param);
      }
      return out + "]";
    }
    case kSequence:
      return "sequence(" + (element ? element->str() : "?") + ")";
    case kOptional:
      return "optional(" + (element ? element->str() : "?") + ")";
    case kMap:
      return format("map({}, {})", elem ? elem->str() : "?", element ? element->str() : "?");
    case kOpaque:
      return "opaque";
    case kNone:
      break;
  }
  return "?";
}

namespace {

using protozero::pbf_reader;

ValueType read_type(pbf_reader m, ReadState& state, int depth);

ValueType::DimInfo read_dim(pbf_reader m, ReadState& state) {
  ValueType::DimInfo d;
  while (m.next()) switch (m.tag_and_type()) {
      // Some exporters write -1 for "unknown".
      case varint_field(1): {
        int64_t value = m.get_int64();
        if (value >= 0) d.value = value;
        break;
      }
      case bytes_field(2):
        d.param = read_text(m, state);
        break;
      default:
        m.skip();
    }
  return d;
}

void read_tensor_type(pbf_reader m, ReadState& state, ValueType* t, ValueType::Kind kind) {
  t->kind = kind;
  while (m.next()) switch (m.tag_and_type()) {
      case varint_field(1): {
        int64_t number = m.get_int32();
        t->elem = element_type(number);
        if (!t->elem && number != 0) state.fail(format("{} is not an element type", number));
        break;
      }
      case bytes_field(2): {
        t->shape.emplace();
        auto shape = m.get_message();
        while (shape.next()) {
          if (shape.tag_and_type() != bytes_field(1)) {
            shape.skip();
            continue;
          }
          if (static_cast<int64_t>(t->shape->size()) == kMaxRank)
            state.fail(format("a type has more than {} dimensions", kMaxRank), ErrorCode::kLimitExceeded);
          t->shape->push_back(read_dim(shape.get_message(), state));
        }
        break;
      }
      default:
        m.skip();
    }
}

void read_element_type(pbf_reader m, ReadState& state, ValueType* t, ValueType::Kind kind, int depth) {
  t->kind = kind;
  while (m.next()) {
    if (m.tag_and_type() == bytes_field(1))
      t->element = std::make_shared<const ValueType>(read_type(m.get_message(), state, depth + 1));
    else
      m.skip();
  }
}

void read_map_type(pbf_reader m, ReadState& state, ValueType* t, int depth) {
  t->kind = ValueType::kMap;
  while (m.next()) switch (m.tag_and_type()) {
      case varint_field(1): {
        const int64_t number = m.get_int32();
        t->elem = element_type(number);
        if (!t->elem && number != 0) state.fail(format("{} is not a type of keys", number));
        break;
      }
      case bytes_field(2):
        t->element = std::make_shared<const ValueType>(read_type(m.get_message(), state, depth + 1));
        break;
      default:
        m.skip();
    }
}

ValueType read_type(pbf_reader m, ReadState& state, int depth) {
  if (depth > 16) state.fail("a type is nested too deeply", ErrorCode::kLimitExceeded);
  ValueType t;
  while (m.next()) switch (m.tag_and_type()) {
      case bytes_field(1):
        read_tensor_type(m.get_message(), state, &t, ValueType::kTensor);
        break;
      case bytes_field(8):
        read_tensor_type(m.get_message(), state, &t, ValueType::kSparse);
        break;
      case bytes_field(4):
        read_element_type(m.get_message(), state, &t, ValueType::kSequence, depth);
        break;
      case bytes_field(9):
        read_element_type(m.get_message(), state, &t, ValueType::kOptional, depth);
        break;
      case bytes_field(5):
        read_map_type(m.get_message(), state, &t, depth);
        break;
      case bytes_field(7):
        m.skip();
        t.kind = ValueType::kOpaque;
        break;
      default:
        m.skip();
    }
  return t;
}

}  // namespace

ValueType parse_type(pbf_reader message, ReadState& state) { return read_type(message, state, 0); }

ValueInfo parse_value_info(pbf_reader message, ReadState& state, const char* what) {
  Place place(state, what);
  ValueInfo v;
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        v.name = read_text(message, state);
        state.path.back() += format(" '{}'", v.name);
        break;
      case bytes_field(2):
        v.type = parse_type(message.get_message(), state);
        break;
      default:
        message.skip();
    }
  return v;
}

}  // namespace tilewright::onnx
