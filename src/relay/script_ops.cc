// SPDX-License-Identifier: Apache-2.0
#include "relay/script_ops.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

struct ScriptOps {
  std::shared_mutex lock;
  std::map<std::string, OpDef, std::less<>> ops;  // records stay where they are
  std::map<const OpDef*, std::shared_ptr<const ScriptRelation>> relations;
  std::map<std::string, std::shared_ptr<const ScriptGradient>, std::less<>> gradients;
  std::deque<std::string> texts;
};
ScriptOps& script_ops() {
  static auto* const kOps = new ScriptOps;  // never freed: relations may belong to an interpreter that has ended
  return *kOps;
}
Result<std::vector<Value>> no_reference(const EvalArgs&) {
  return type_error("an operator that a script defines has no reference result");
}

}  // namespace

const char* kept_text(std::string text) {
  std::unique_lock held(script_ops().lock);
  return script_ops().texts.emplace_back(std::move(text)).c_str();
}

OpDef* define_script_op(const std::string& name, const std::string& doc) {
  if (find_op(name)) return nullptr;
  OpDef def;
  def.name = kept_text(name);
  def.doc = kept_text(doc);
  def.evaluate = no_reference;
  std::unique_lock held(script_ops().lock);
  return &script_ops().ops.emplace(name, std::move(def)).first->second;
}

void set_script_relation(const OpDef& op, ScriptRelation relation) {
  std::unique_lock held(script_ops().lock);
  script_ops().relations[&op] = std::make_shared<const ScriptRelation>(std::move(relation));
}

void set_script_gradient(const std::string& op, ScriptGradient gradient) {
  std::unique_lock held(script_ops().lock);
  if (gradient)
    script_ops().gradients[op] = std::make_shared<const ScriptGradient>(std::move(gradient));
  else
    script_ops().gradients.erase(op);
}

std::shared_ptr<const ScriptGradient> find_script_gradient(std::string_view op) {
  std::shared_lock held(script_ops().lock);
  auto it = script_ops().gradients.find(op);
  return it == script_ops().gradients.end() ? nullptr : it->second;
}

ScriptAttrs::ScriptAttrs(std::vector<std::pair<std::string, AttrValue>> values) : values_(std::move(values)) {
  std::sort(values_.begin(), values_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

void ScriptAttrs::visit(AttrVisitor& visitor) {
  for (auto& attribute : values_)
    std::visit([&](auto& v) { visitor.visit(attribute.first.c_str(), &v); }, attribute.second);
}

OpDef* find_script_op(std::string_view name) {
  std::shared_lock held(script_ops().lock);
  auto it = script_ops().ops.find(name);
  return it == script_ops().ops.end() ? nullptr : &it->second;
}

Result<Type> script_op_type(const OpDef& def, const TypeArgs& args) {
  std::shared_ptr<const ScriptRelation> relation;  // only the pointer is copied: a copy of a relation needs its lock
  {
    std::shared_lock held(script_ops().lock);
    if (auto it = script_ops().relations.find(&def); it != script_ops().relations.end()) relation = it->second;
  }
  return relation ? (*relation)(args) : Result<Type>(type_error("no relation gives the type of its calls"));
}

}  // namespace tilewright::relay
