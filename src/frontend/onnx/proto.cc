// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/proto.h"

#include <algorithm>
#include <exception>
#include <set>

#include "frontend/onnx/file_map.h"
#include "frontend/onnx/wire.h"

namespace tilewright::onnx {

std::string ReadState::place() const {
  std::string out;
  for (const auto& part : path) out += (out.empty() ? "" : ", ") + part;
  return out;
}

const char* attribute_kind_name(AttributeKind kind) {
  static constexpr const char* kNames[] = {"undefined",      "float", "int",     "string",  "tensor", "graph",
                                           "floats",         "ints",  "strings", "tensors", "graphs", "sparse tensor",
                                           "sparse tensors", "type",  "types"};
  return kNames[static_cast<int>(kind)];
}

const Attribute* Node::find(std::string_view attribute) const {
  for (const auto& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

std::string Node::label() const {
  std::string shown = name;
  for (size_t i = 0; shown.empty() && i < outputs.size(); ++i) shown = outputs[i];
  return format("'{}' ({})", shown, op_type);
}

namespace {

using protozero::pbf_reader;

class Reader {
 public:
  explicit Reader(ReadState& state) : state_(state) {}

  Graph graph(pbf_reader m) {
    if (++state_.depth > kMaxGraphDepth) state_.fail("subgraphs are nested too deeply", ErrorCode::kLimitExceeded);
    Graph g;
    std::set<std::string> initializers;
    auto add_initializer = [&](NamedTensor t) {
      if (t.name.empty()) state_.fail("an initializer has no name");
      if (!initializers.insert(t.name).second) state_.fail(format("two initializers are named '{}'", t.name));
      g.initializers.push_back(std::move(t));
    };
    while (m.next()) switch (m.tag_and_type()) {
        case bytes_field(1): {
          Place place(state_, format("node {}", g.nodes.size()));
          g.nodes.push_back(node(m.get_message()));
          break;
        }
        case bytes_field(2):
          g.name = read_text(m, state_);
          break;
        case bytes_field(5): {
          if (!state_.options.initializers) {
            m.skip();
            break;
          }
          Place place(state_, format("initializer {}", g.initializers.size()));
          add_initializer(parse_tensor(m.get_message(), state_));
          break;
        }
        case bytes_field(15): {
          Place place(state_, "sparse initializer");
          add_initializer(parse_sparse_tensor(m.get_message(), state_));
          break;
        }
        case bytes_field(11):
          g.inputs.push_back(parse_value_info(m.get_message(), state_, "input"));
          break;
        case bytes_field(12):
          g.outputs.push_back(parse_value_info(m.get_message(), state_, "output"));
          break;
        case bytes_field(13):
          g.value_info.push_back(parse_value_info(m.get_message(), state_, "value_info"));
          break;
        default:
          m.skip();
      }
    check_names(g.inputs, "inputs");
    check_names(g.outputs, "outputs");
    --state_.depth;
    return g;
  }

  Model model(pbf_reader m) {
    Model out;
    bool has_graph = false;
    while (m.next()) switch (m.tag_and_type()) {
        case varint_field(1):
          out.ir_version = m.get_int64();
          break;
        case bytes_field(2):
          out.producer = read_text(m, state_);
          break;
        case bytes_field(7): {
          if (has_graph) state_.fail("the model has two graphs");
          has_graph = true;
          Place place(state_, "graph");
          out.graph = graph(m.get_message());
          break;
        }
        case bytes_field(8):
          opset(m.get_message(), &out.opsets);
          break;
        case bytes_field(14): {
          auto [key, value] = entry(m.get_message());
          if (!out.metadata.emplace(key, value).second) state_.fail(format("the metadata has the key '{}' twice", key));
          break;
        }
        case bytes_field(25): {
          Place place(state_, format("function {}", out.functions.size()));
          out.functions.push_back(function(m.get_message()));
          break;
        }
        default:
          m.skip();
      }
    if (!has_graph) state_.fail("the file holds no ONNX graph (empty, truncated or of another format)");
    std::set<std::string> functions;
    for (const auto& f : out.functions)
      if (!functions.insert(f.domain + "\n" + f.name + "\n" + f.overload).second)
        state_.fail(format("two functions are named '{}'", f.name));
    // IR versions 1 and 2 have no opset imports: the standard domain is at version 1.
    if (out.opsets.empty() && out.ir_version < 3) out.opsets[""] = 1;
    if (out.opsets.empty()) state_.fail("the model imports no operator set");
    return out;
  }

 private:
  void check_names(const std::vector<ValueInfo>& values, const char* what) {
    std::set<std::string> seen;
    for (const auto& v : values) {
      if (v.name.empty()) state_.fail(format("one of the graph's {} has no name", what));
      if (!seen.insert(v.name).second) state_.fail(format("two of the graph's {} are named '{}'", what, v.name));
    }
  }

  Node node(pbf_reader m) {
    if (++state_.nodes > kMaxNodes)
      state_.fail(format("the model has more than {} nodes", kMaxNodes), ErrorCode::kLimitExceeded);
    Node n;
    while (m.next()) switch (m.tag_and_type()) {
        case bytes_field(1):
          n.inputs.push_back(read_text(m, state_));
          break;
        case bytes_field(2):
          n.outputs.push_back(read_text(m, state_));
          break;
        case bytes_field(3):
          n.name = read_text(m, state_);
          state_.path.back() += format(" '{}'", n.name);
          break;
        case bytes_field(4):
          n.op_type = read_text(m, state_);
          break;
        case bytes_field(5): {
          Place place(state_, format("attribute {}", n.attributes.size()));
          n.attributes.push_back(attribute(m.get_message()));
          break;
        }
        case bytes_field(7):
          n.domain = normal_domain(read_text(m, state_));
          break;
        case bytes_field(8):
          n.overload = read_text(m, state_);
          break;
        default:
          m.skip();
      }
    if (n.op_type.empty()) state_.fail("a node names no operator");
    std::set<std::string> seen;
    for (const auto& a : n.attributes)
      if (!seen.insert(a.name).second) state_.fail(format("the node has the attribute '{}' twice", a.name));
    return n;
  }

  static std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

  // IR version 1 has no type field: the kind follows from the field that is filled.
  static AttributeKind kind_of(const Attribute& a, int filled) {
    if (filled & 1) return AttributeKind::kFloat;
    if (filled & 2) return AttributeKind::kInt;
    if (filled & 4) return AttributeKind::kString;
    if (!a.tensors.empty()) return a.tensors.size() == 1 ? AttributeKind::kTensor : AttributeKind::kTensors;
    if (!a.graphs.empty()) return a.graphs.size() == 1 ? AttributeKind::kGraph : AttributeKind::kGraphs;
    if (!a.floats.empty()) return AttributeKind::kFloats;
    if (!a.ints.empty()) return AttributeKind::kInts;
    if (!a.strings.empty()) return AttributeKind::kStrings;
    if (!a.types.empty()) return a.types.size() == 1 ? AttributeKind::kType : AttributeKind::kTypes;
    return AttributeKind::kUndefined;
  }

  Attribute attribute(pbf_reader m) {
    Attribute a;
    int declared = 0, filled = 0;
    auto subgraph = [&](pbf_reader body) {
      Place place(state_, "subgraph");
      a.graphs.push_back(std::make_shared<const Graph>(graph(body)));
    };
    auto tensor = [&](pbf_reader body, bool sparse) {
      Place place(state_, "tensor");
      a.tensors.push_back((sparse ? parse_sparse_tensor(body, state_) : parse_tensor(body, state_)).data);
    };
    while (m.next()) switch (m.tag_and_type()) {
        case bytes_field(1):
          a.name = read_text(m, state_);
          state_.path.back() += format(" '{}'", a.name);
          break;
        case fixed32_field(2):
          a.f = m.get_float();
          filled |= 1;
          break;
        case varint_field(3):
          a.i = m.get_int64();
          filled |= 2;
          break;
        case bytes_field(4): {
          auto view = m.get_view();
          a.s.assign(view.data(), view.size());
          filled |= 4;
          break;
        }
        case bytes_field(5):
          tensor(m.get_message(), false);
          break;
        case bytes_field(6):
          subgraph(m.get_message());
          break;
        case fixed32_field(7):
          a.floats.push_back(m.get_float());
          break;
        case bytes_field(7):
          append_all(&a.floats, m.get_packed_float());
          break;
        case varint_field(8):
          a.ints.push_back(m.get_int64());
          break;
        case bytes_field(8):
          append_all(&a.ints, m.get_packed_int64());
          break;
        case bytes_field(9): {
          auto view = m.get_view();
          a.strings.emplace_back(view.data(), view.size());
          break;
        }
        case bytes_field(10):
          tensor(m.get_message(), false);
          break;
        case bytes_field(11):
          subgraph(m.get_message());
          break;
        case bytes_field(14):
          a.types.push_back(parse_type(m.get_message(), state_));
          break;
        case bytes_field(15):
          a.types.push_back(parse_type(m.get_message(), state_));
          break;
        case varint_field(20):
          declared = m.get_int32();
          break;
        case bytes_field(21):
          a.reference = read_text(m, state_);
          break;
        case bytes_field(22):
          tensor(m.get_message(), true);
          break;
        case bytes_field(23):
          tensor(m.get_message(), true);
          break;
        default:
          m.skip();
      }
    if (a.name.empty()) state_.fail("an attribute has no name");
    if (declared < 0 || declared > static_cast<int>(AttributeKind::kTypes))
      state_.fail(format("{} is not an attribute type", declared));
    a.kind = declared ? static_cast<AttributeKind>(declared) : kind_of(a, filled);
    if (!a.reference.empty()) return a;
    bool one_tensor = a.kind == AttributeKind::kTensor || a.kind == AttributeKind::kSparseTensor;
    if ((one_tensor && a.tensors.size() != 1) || (a.kind == AttributeKind::kGraph && a.graphs.size() != 1) ||
        (a.kind == AttributeKind::kType && a.types.size() != 1))
      state_.fail(format("the attribute is declared as {} but does not hold one", attribute_kind_name(a.kind)));
    return a;
  }

  std::pair<std::string, std::string> entry(pbf_reader m) {
    std::pair<std::string, std::string> out;
    while (m.next()) switch (m.tag_and_type()) {
        case bytes_field(1):
          out.first = read_text(m, state_);
          break;
        // Limit of 64 MiB: metadata values may hold whole vocabularies and label files.
        case bytes_field(2):
          out.second = read_text(m, state_, 64 << 20);
          break;
        default:
          m.skip();
      }
    return out;
  }

  void opset(pbf_reader m, std::map<std::string, int64_t>* out) {
    std::string domain;
    int64_t version = 0;
    while (m.next()) switch (m.tag_and_type()) {
        case bytes_field(1):
          domain = normal_domain(read_text(m, state_));
          break;
        case varint_field(2):
          version = m.get_int64();
          break;
        default:
          m.skip();
      }
    if (version < 1 || version > 10'000)
      state_.fail(format("operator set '{}' has the impossible version {}", domain, version));
    auto [it, fresh] = out->emplace(domain, version);
    if (!fresh && it->second != version) state_.fail(format("operator set '{}' is imported in two versions", domain));
  }

  Function function(pbf_reader m) {
    Function f;
    while (m.next()) switch (m.tag_and_type()) {
        case bytes_field(1):
          f.name = read_text(m, state_);
          state_.path.back() += format(" '{}'", f.name);
          break;
        case bytes_field(4):
          f.inputs.push_back(read_text(m, state_));
          break;
        case bytes_field(5):
          f.outputs.push_back(read_text(m, state_));
          break;
        case bytes_field(6):
          f.attributes.push_back(read_text(m, state_));
          break;
        case bytes_field(7): {
          Place place(state_, format("node {}", f.nodes.size()));
          f.nodes.push_back(node(m.get_message()));
          break;
        }
        case bytes_field(9):
          opset(m.get_message(), &f.opsets);
          break;
        case bytes_field(10):
          f.domain = normal_domain(read_text(m, state_));
          break;
        case bytes_field(11): {
          Place place(state_, "attribute");
          f.defaults.push_back(attribute(m.get_message()));
          break;
        }
        case bytes_field(13):
          f.overload = read_text(m, state_);
          break;
        default:
          m.skip();
      }
    if (f.name.empty()) state_.fail("a function has no name");
    return f;
  }

  ReadState& state_;
};

}  // namespace

Result<Model> read_model(const SharedBytes& bytes, const std::string& folder, const ReadOptions& options) {
  ReadState state;
  state.source = bytes;
  state.folder = folder;
  state.external_allowed = !folder.empty();
  state.options = options;
  return guarded<Model>(state, [&] {
    pbf_reader message(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size());
    Model model = Reader(state).model(message);
    model.files.push_back(state.source);
    for (const auto& [name, file] : state.external) model.files.push_back(file);
    return model;
  });
}

Result<Model> read_model(const std::string& path, const ReadOptions& options) {
  SharedBytes bytes = TW_TRY(map_file(path));
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  auto model = read_model(bytes, folder, options);
  if (model) return model;
  Diagnostic error = std::move(model).error();
  error.where = path + (error.where.empty() ? "" : ": " + error.where);
  return error;
}

}  // namespace tilewright::onnx
