// SPDX-License-Identifier: Apache-2.0
// Nothing: the target of this file owns the precompiled header of the tests.
