// SPDX-License-Identifier: Apache-2.0
#include "relay/virtual_device.h"

#include <algorithm>

#include "base/format.h"
#include "relay/ops/program/attrs_device.h"

namespace tilewright::relay {

std::string VirtualDevice::text() const {
  if (unconstrained()) return "VirtualDevice(?)";
  std::string out;
  auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (type) add(format("device_type={}, virtual_device_id={}", type, id));
  if (!target.empty()) add("target=" + quoted(target));
  if (!host.empty()) add("host=" + quoted(host));
  if (!memory_scope.empty()) add("memory_scope=" + quoted(memory_scope));
  return "VirtualDevice(" + out + ")";
}

std::optional<VirtualDevice> joined(const VirtualDevice& a, const VirtualDevice& b) {
  auto agree = [](const auto& x, const auto& y, const auto& open) { return x == open || y == open || x == y; };
  const std::string none;
  const bool targets = agree(a.target, b.target, none) && (a.target.empty() || b.target.empty() || a.host == b.host);
  if (!agree(a.type, b.type, int64_t{0}) || !agree(a.id, b.id, int64_t{-1}) || !targets ||
      !agree(a.memory_scope, b.memory_scope, none))
    return std::nullopt;
  VirtualDevice out = a;
  if (!out.type) out.type = b.type;
  if (out.id < 0) out.id = b.id;
  if (out.target.empty()) {
    out.target = b.target;
    out.host = b.host;
  }
  if (out.memory_scope.empty()) out.memory_scope = b.memory_scope;
  return out;
}

VirtualDevice completed(VirtualDevice known, const VirtualDevice& fallback) {
  if (!known.type) known.type = fallback.type;
  const bool same = known.type == fallback.type;
  if (known.id < 0) known.id = same ? fallback.id : 0;
  if (!same) return known;
  if (known.target.empty()) {
    known.target = fallback.target;
    known.host = fallback.host;
  }
  if (known.memory_scope.empty()) known.memory_scope = fallback.memory_scope;
  return known;
}

// The classic printer writes a target as its fields, with its own quoting; this compiler determines target features
// itself.
static Status skip_classic_value(Lexer& lexer) {
  for (int depth = 0;;) {
    const Token& token = lexer.peek();
    if (token.kind == Token::kEnd) return lexer.error(token.begin, "a virtual device ends too early");
    if (depth == 0 && (token.is(",") || token.is(")"))) return Ok{};
    if (token.is("(") || token.is("{")) ++depth;
    if (token.is(")") || token.is("}")) --depth;
    lexer.next();
  }
}

Result<VirtualDevice> parse_virtual_device(Lexer& lexer) {
  auto wanted = [&](std::string_view text) -> Status {
    Token token = lexer.next();
    if (token.is(text) || token.is_name(text)) return Ok{};
    return lexer.error(token.begin, format("{} stands where '{}' was expected", describe(token), text));
  };
  TW_TRY_STATUS(wanted("VirtualDevice"));
  TW_TRY_STATUS(wanted("("));
  VirtualDevice out;
  if (lexer.peek().is("?")) lexer.next();
  while (!lexer.peek().is(")")) {
    const Token name = lexer.next();
    TW_TRY_STATUS(wanted("="));
    const size_t at = lexer.peek().begin;
    if (lexer.peek().is_name("Target") || lexer.peek().kind == Token::kBad) {
      TW_TRY_STATUS(skip_classic_value(lexer));
      if (!lexer.peek().is(",")) break;
      lexer.next();
      continue;
    }
    const Literal value = TW_TRY(parse_literal(lexer));
    const bool number = name.is_name("device_type") || name.is_name("virtual_device_id");
    if (value.kind != (number ? Literal::kInt : Literal::kString))
      return lexer.error(at, format("a virtual device has no {} of this kind", name.text));
    if (name.is_name("device_type"))
      out.type = value.integer;
    else if (name.is_name("virtual_device_id"))
      out.id = value.integer;
    else if (name.is_name("target"))
      out.target = value.text;
    else if (name.is_name("host"))
      out.host = value.text;
    else if (name.is_name("memory_scope"))
      out.memory_scope = value.text;
    else
      return lexer.error(name.begin, format("a virtual device has no field {}", describe(name)));
    if (!lexer.peek().is(",")) break;
    lexer.next();
  }
  TW_TRY_STATUS(wanted(")"));
  return out;
}

Result<VirtualDevice> parse_virtual_device(const std::string& text) {
  if (text.empty()) return VirtualDevice{};
  Lexer lexer(text, "virtual device");
  return parse_virtual_device(lexer);
}

VirtualDevice device_of(const AttrsRef& on_device) {
  const auto* a = attrs_as<OnDeviceAttrs>(on_device);
  TW_ICHECK(a, "attributes of another operator");
  return {a->device_type, a->device_type ? a->device_id : -1, a->target, a->host, a->memory_scope};
}

std::pair<VirtualDevice, VirtualDevice> devices_of(const AttrsRef& device_copy) {
  const auto* a = attrs_as<DeviceCopyAttrs>(device_copy);
  TW_ICHECK(a, "attributes of another operator");
  return {{a->src_dev_type, a->src_dev_type ? a->src_dev_id : -1, a->src_target, a->src_host, a->src_memory_scope},
          {a->dst_dev_type, a->dst_dev_type ? a->dst_dev_id : -1, a->dst_target, a->dst_host, a->dst_memory_scope}};
}

AttrsRef on_device_attrs(const VirtualDevice& device, bool constrain_result, bool constrain_body) {
  return make_attrs<OnDeviceAttrs>([&](auto& a) {
    a.device_type = device.type;
    a.device_id = std::max<int64_t>(device.id, 0);
    a.target = device.target;
    a.host = device.host;
    a.memory_scope = device.memory_scope;
    a.constrain_result = constrain_result;
    a.constrain_body = constrain_body;
  });
}

AttrsRef device_copy_attrs(const VirtualDevice& from, const VirtualDevice& to) {
  return make_attrs<DeviceCopyAttrs>([&](auto& a) {
    a.src_dev_type = from.type;
    a.src_dev_id = std::max<int64_t>(from.id, 0);
    a.src_target = from.target;
    a.src_host = from.host;
    a.src_memory_scope = from.memory_scope;
    a.dst_dev_type = to.type;
    a.dst_dev_id = std::max<int64_t>(to.id, 0);
    a.dst_target = to.target;
    a.dst_host = to.host;
    a.dst_memory_scope = to.memory_scope;
  });
}

std::vector<NamedLiteral> device_literals(const std::string& name, const VirtualDevice& device, size_t at) {
  const bool own = name == kDeviceAttr;
  const std::string before = own ? "" : name.substr(0, name.find("virtual_device"));
  auto number = [&](const char* field, int64_t value) {
    Literal literal;
    literal.kind = Literal::kInt;
    literal.integer = value;
    literal.real = static_cast<double>(value);
    return NamedLiteral{before + field, literal, at};
  };
  auto text = [&](const char* field, const std::string& value) {
    Literal literal;
    literal.kind = Literal::kString;
    literal.text = value;
    return NamedLiteral{before + field, literal, at};
  };
  return {number(own ? "device_type" : "dev_type", device.type),
          number(own ? "device_id" : "dev_id", std::max<int64_t>(device.id, 0)), text("target", device.target),
          text("host", device.host), text("memory_scope", device.memory_scope)};
}

Result<FunctionDevices> devices_of(const FunctionNode& function) {
  FunctionDevices out;
  out.params.resize(function.params.size());
  if (auto it = function.attrs.find(kDeviceAttr); it != function.attrs.end())
    if (const auto* text = std::get_if<std::string>(&it->second)) out.result = TW_TRY(parse_virtual_device(*text));
  if (auto it = function.attrs.find(kParamDevicesAttr); it != function.attrs.end())
    if (const auto* texts = std::get_if<std::vector<std::string>>(&it->second))
      for (size_t i = 0; i < texts->size() && i < out.params.size(); ++i)
        out.params[i] = TW_TRY(parse_virtual_device((*texts)[i]));
  return out;
}

}  // namespace tilewright::relay
