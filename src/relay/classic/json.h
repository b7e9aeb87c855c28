// SPDX-License-Identifier: Apache-2.0
// Modules as the classic stack's JSON (its save_json and load_json, version 0.9.0): {"root", "nodes", "b64ndarrays",
// "attrs"}, one node per object, references by index. Reads what the classic stack wrote, and writes in the same
// layout. The text form uses it, too: its metadata section holds constants in this form.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

std::string save_json(const Module& module);
// A root that is a function (save_json of an expression) becomes "main". Errors: ParseError, located at the node;
// TypeMismatch and UnknownOp from building the calls. Symbols and `?` correspond to the classic stack's Any.
Result<Module> load_json(std::string_view text);

// The metadata section of a text: constants by index, and attributes that the classic stack does not print.
std::string save_constants(const std::vector<Tensor>& constants);
class TextMetadata {
 public:
  static Result<TextMetadata> load(std::string_view text);
  const std::vector<Tensor>& constants() const { return constants_; }
  // meta[kind][index] as the attributes of a call of `op`. Errors: ParseError where there is no such entry.
  Result<AttrsRef> attributes(const OpDef& op, const std::string& kind, int64_t index) const;
  // meta[VirtualDevice][index] as VirtualDevice(...) without its target. Errors: ParseError where there is no such
  // entry.
  Result<std::string> virtual_device(int64_t index) const;

 private:
  struct Content;
  std::shared_ptr<Content> content_;
  std::vector<Tensor> constants_;
};

}  // namespace tilewright::relay
