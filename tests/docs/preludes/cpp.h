// SPDX-License-Identifier: Apache-2.0
#ifdef __cplusplus
#include <vector>
static std::vector<float> pixels(3 * 224 * 224, 0.5f);
#else
#include <stdlib.h>
static float pixels[3 * 224 * 224], scores[1000];
#endif
