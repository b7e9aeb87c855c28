// SPDX-License-Identifier: Apache-2.0
// Graph modules as the classic stack's JSON (its save_json and load_json, version 0.9.0): {"root", "nodes",
// "b64ndarrays", "attrs"}, a node for every object, references by index. What it wrote is read; what is written here
// has its layout. Texts end in a section of the same form that holds their constants.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

std::string save_json(const Module& module);
// A root that is a function (save_json of an expression) becomes "main". Errors: ParseError with the node as place;
// TypeMismatch and UnknownOp from building the calls. Symbols and `?` come back as the classic stack's Any.
Result<Module> load_json(std::string_view text);

// The metadata section of a text: constants by index, and attributes that the classic stack keeps out of its text.
std::string save_constants(const std::vector<Tensor>& constants);
class TextMetadata {
 public:
  static Result<TextMetadata> load(std::string_view text);
  const std::vector<Tensor>& constants() const { return constants_; }
  // meta[kind][index] as the attributes of a call of `op`. Errors: ParseError where there is no such thing.
  Result<AttrsRef> attributes(const OpDef& op, const std::string& kind, int64_t index) const;
  // meta[VirtualDevice][index] as VirtualDevice(...) without its target. Errors: ParseError where there is no such
  // thing.
  Result<std::string> virtual_device(int64_t index) const;

 private:
  struct Content;
  std::shared_ptr<Content> content_;
  std::vector<Tensor> constants_;
};

}  // namespace tilewright::relay
