// SPDX-License-Identifier: Apache-2.0
// On SIGINT, SIGHUP and SIGTERM, cleans up unfinished work before the program ends by that signal.
#pragma once

namespace tilewright::cli {

// Registers a clean-up, called after earlier ones; once clean-up has begun, a later call blocks until the end. Signals
// that were ignored at start remain ignored.
void clean_up_when_interrupted(void (*clean)());

// Returns the exit code; after an interruption it does not return, and the program ends by the signal.
int unless_interrupted(int code);

}  // namespace tilewright::cli
