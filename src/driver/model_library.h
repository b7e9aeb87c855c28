// SPDX-License-Identifier: Apache-2.0
// Model Library Format, version 7: a tar with everything that a firmware build needs of a model.
#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace tilewright::driver {

struct Built;

// Writes one or several models with different names. The timestamp is $SOURCE_DATE_EPOCH, or 1970, so that equal models
// give equal bytes. Errors: InvalidArgument (duplicate names), UnsupportedModel, CannotWrite, LinkFailed.
Status write_model_library(std::span<const Built* const> models, const std::string& path);

// Writes a library of functions (driver/functions.h) in the operator style: the code of the C runtime's system library,
// and `loops`, their text. Errors: UnsupportedModel (free sizes, calls of functions by name), CannotWrite, LinkFailed.
Status write_function_library(const Built& functions, const std::string& loops, const std::string& path);

}  // namespace tilewright::driver
