// SPDX-License-Identifier: Apache-2.0
// The text form of graph modules: the classic Relay text, version 0.0.5. Constants other than scalars are kept aside
// and written as meta[relay.Constant][i]. Beyond the classic form: symbolic dims in types, names in quotes (%"input:0")
// when they are not identifiers, and the model's own metadata as #[metadata("key") = "value"] lines.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

struct TextOptions {
  bool types = true;      // "/* ty=... */" after each operation
  bool metadata = false;  // a "#[metadata]" section at the end holds the constants, as the classic stack writes them
  bool spans = false;     // "/* from conv1+bn1 */" too
  std::function<std::string(const Expr&)> annotate;  // what it gives is written in the place of these comments
};

struct ModuleText {
  std::string text;
  std::vector<Tensor> constants;  // meta[relay.Constant][i]
};

ModuleText print_module(const Module& module, const TextOptions& options = {});
// One expression with what it needs above it, for messages and tests.
std::string print_expr(const Expr& e, const TextOptions& options = {});

struct ParseOptions {
  std::string origin = "text";  // the file's name in messages
  // Constants that were not given become zeros when the text says their type, as in classic listings without metadata.
  bool zero_missing_constants = false;
  bool spans = false;  // expressions get the place they stand at, "text:3:7", as their span
  // Functions that the text does not define, operators as values, and values that are not of the type they say are
  // taken as they are: whoever joins the parts infers types.
  bool open = false;
  std::vector<std::string> virtual_devices;  // meta[VirtualDevice][i], each as VirtualDevice(...)
};

// Errors, placed "origin:line:column": ParseError for the grammar; TypeMismatch and UnknownOp from building the calls.
// Constants come from `constants`, or from the text's own metadata section when it has one.
Result<Module> parse_module(std::string_view text, std::span<const Tensor> constants = {},
                            const ParseOptions& options = {});
// The expression of a text without definitions; lines "free_var %x: T;" name its free variables. Same errors.
Result<Expr> parse_expression(std::string_view text, std::span<const Tensor> constants = {},
                              const ParseOptions& options = {});

}  // namespace tilewright::relay
