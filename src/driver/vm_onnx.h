// SPDX-License-Identifier: Apache-2.0
// ONNX graphs as VM bytecode. The nodes between two decisions become a region, compiled for the shapes it meets; what
// decides (If, Loop, Scan, SequenceMap on computed values), what makes results of a size that data say (NonZero, ...),
// sequences, optionals and texts become instructions and calls of the runtime's own functions.
#pragma once
#include <string>

#include "base/result.h"
#include "frontend/onnx/graph_parts.h"
#include "frontend/onnx/proto.h"
#include "runtime/vm/program.h"

namespace tilewright::driver {

// Fills in the program's code, regions, outputs and `shared` (the model's bytes); `program` has its inputs already.
// Errors: MalformedModel, UnsupportedOp (all nodes without a converter at once), UnsupportedModel.
Status compile_graph_to_vm(const onnx::Model& model, std::string_view bytes, runtime::vm::Program* program);

}  // namespace tilewright::driver
