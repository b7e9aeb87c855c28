// SPDX-License-Identifier: Apache-2.0
// Text tests of passes. A file holds
//
//   // passes: FoldConstant, SimplifyExpr      the pipeline
//   // opt_level: 3                            optional
//   // config: relay.FuseOps.max_depth=4       optional
//   // config: relay.ConvertLayout.desired_layouts=nn.conv2d=NHWC,HWIO     lists are separated by ';'
//   // outputs: differ                       optional: the results are not those of the input
//   // vector_bits: 512                      optional: a target with such vectors
//   // math: bf16                            optional: -math=bf16 in that target
//   // error: E301                             instead of an expected module
//   <module>
//   // constants
//   // float32 (2, 2) 1 2 3 4                  meta[relay.Constant][i] in order; one value fills the tensor; "ramp"
//   counts
//   // ----
//   <expected module> or the word unchanged
//   // constants
//
// With TW_UPDATE_TESTS=1 in the environment the expected part is rewritten with what came out.
#pragma once
#include <string>
#include <vector>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {

struct TextCase {
  std::vector<std::string> passes;
  PassContext context;
  std::string error;
  bool same_outputs = true;
  Module input;
  std::string expected;  // the text after "----", trimmed
};

// Fails with what is wrong in the file.
Result<TextCase> read_text_case(const std::string& path);
// A module with its constants' values: what the expected part holds.
std::string text_with_constants(const Module& module);

}  // namespace tilewright::relay
