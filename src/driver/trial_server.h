// SPDX-License-Identifier: Apache-2.0
// The process that measures kernels for a tuner (tune/measurer.h).
#pragma once
#include "tune/trial.h"

namespace tilewright::driver {

// Answers batches on a socket until the other end closes it; the exit code.
int serve_trials(int channel);

}  // namespace tilewright::driver
