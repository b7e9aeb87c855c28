// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tilewright {

// This build's version, "0.1.0": what the C interface tells and what every artifact carries of its writer.
const char* version();

}  // namespace tilewright
