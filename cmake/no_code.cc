// SPDX-License-Identifier: Apache-2.0
// Nothing: the source of targets that own a precompiled header and no code.
