// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tilewright {

// This build's version, "0.1.0": returned by the C interface, and stored in every artifact.
const char* version();

}  // namespace tilewright
