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
  bool metadata = false;  // appends a "#[metadata]" section with the constants, as the classic stack does
  bool spans = false;     // prints "/* from conv1+bn1 */", too
  bool classic_names =
      false;  // variables whose names do not begin with a letter are named v..., as in the classic stack
  std::function<std::string(const Expr&)> annotate;  // replaces these comments by its result
};

struct ModuleText {
  std::string text;
  std::vector<Tensor> constants;  // meta[relay.Constant][i]
};

ModuleText print_module(const Module& module, const TextOptions& options = {});
// One expression with the bindings it needs, for messages and tests.
std::string print_expr(const Expr& e, const TextOptions& options = {});

struct ParseOptions {
  std::string origin = "text";  // file name used in messages
  // Missing constants become zeros where the text gives their type, as in classic listings without metadata.
  bool zero_missing_constants = false;
  bool spans = false;  // expressions get their position, "text:3:7", as span
  // Accepts undefined functions, operators as values, and values that do not have their declared type: the caller joins
  // the parts and infers types.
  bool open = false;
  std::vector<std::string> virtual_devices;  // meta[VirtualDevice][i], each as VirtualDevice(...)
};

// Errors, located at "origin:line:column": ParseError for the grammar; TypeMismatch and UnknownOp from building the
// calls. Constants come from `constants`, or from the text's own metadata section if present.
Result<Module> parse_module(std::string_view text, std::span<const Tensor> constants = {},
                            const ParseOptions& options = {});
// The expression of a text without definitions; lines "free_var %x: T;" declare its free variables. Same errors.
Result<Expr> parse_expression(std::string_view text, std::span<const Tensor> constants = {},
                              const ParseOptions& options = {});

}  // namespace tilewright::relay
