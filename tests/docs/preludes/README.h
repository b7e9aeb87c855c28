// SPDX-License-Identifier: Apache-2.0
#include <vector>
static std::vector<float> pixels(3 * 224 * 224, 0.5f);
static void use(float) {}
