// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, a hang-up or a polite end: what is half done is removed before the program ends by that signal.
#pragma once

namespace tilewright::cli {

// Calls `clean` then, after those of earlier calls; once that has begun, a later call waits for the end. A signal that
// the program was started to ignore stays ignored.
void clean_up_when_interrupted(void (*clean)());

// The exit code; where the user has interrupted the program it does not return, and the program ends by the signal.
int unless_interrupted(int code);

}  // namespace tilewright::cli
