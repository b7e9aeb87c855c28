// SPDX-License-Identifier: Apache-2.0
// The exit codes of the tilewright program (docs/cli.md).
#pragma once
#include "base/result.h"

namespace tilewright {

enum ExitCode {
  kExitOk = 0,
  kExitUsage = 1,
  kExitInput = 2,
  kExitMismatch = 3,
  kExitBuild = 4,
  kExitInternal = 70,
  kExitInterrupted = 130
};
ExitCode exit_code(ErrorCode code);

}  // namespace tilewright
