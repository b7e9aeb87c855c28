// SPDX-License-Identifier: Apache-2.0
// Model Library Format, version 7: a tar of what a firmware's build takes of a model.
#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace tilewright::driver {

struct Built;

// One or several models, of different names, in one file. The time in it is $SOURCE_DATE_EPOCH's, or 1970: the same
// models give the same bytes. Errors: InvalidArgument (two of one name), UnsupportedModel, CannotWrite, LinkFailed.
Status write_model_library(std::span<const Built* const> models, const std::string& path);

}  // namespace tilewright::driver
