// SPDX-License-Identifier: Apache-2.0
// The process that measures kernels for the tuner (tune/measurer.h).
#pragma once
#include "tune/trial.h"

namespace tilewright::driver {

// Serves batches on a socket until the peer closes it; returns the exit code.
int serve_trials(int channel);

}  // namespace tilewright::driver
