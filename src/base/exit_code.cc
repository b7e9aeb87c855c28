// SPDX-License-Identifier: Apache-2.0
#include "base/exit_code.h"

#include "base/token_refused.h"

namespace tilewright {

ExitCode exit_code(ErrorCode code) {
  if (code == kTokenRefused) return kExitInput;
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnknownPass:
    case ErrorCode::kUnknownTarget:
      return kExitUsage;
    case ErrorCode::kFileNotFound:
    case ErrorCode::kLimitExceeded:
    case ErrorCode::kMalformedModel:
    case ErrorCode::kUnsupportedOp:
    case ErrorCode::kUnsupportedModel:
    case ErrorCode::kFreeDimension:
    case ErrorCode::kTypeMismatch:
    case ErrorCode::kUnknownOp:
    case ErrorCode::kParseError:
    case ErrorCode::kBadArtifact:
    case ErrorCode::kArtifactVersion:
    case ErrorCode::kCpuMismatch:
    case ErrorCode::kUnknownInput:
    case ErrorCode::kShapeMismatch:
    case ErrorCode::kDtypeMismatch:
    case ErrorCode::kUnknownFunction:
    case ErrorCode::kConnectionLost:
    case ErrorCode::kProtocolError:
    case ErrorCode::kRemoteError:
      return kExitInput;
    case ErrorCode::kAccuracyExceeded:
    case ErrorCode::kTimeLimit:
      return kExitMismatch;
    case ErrorCode::kCannotWrite:
    case ErrorCode::kCodegenFailed:
    case ErrorCode::kLinkFailed:
      return kExitBuild;
    case ErrorCode::kInterrupted:
      return kExitInterrupted;
    case ErrorCode::kVerifyFailed:
    case ErrorCode::kInternal:
      break;
  }
  return kExitInternal;
}

}  // namespace tilewright
