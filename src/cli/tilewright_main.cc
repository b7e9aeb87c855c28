// SPDX-License-Identifier: Apache-2.0
// The tilewright program.
#include <csignal>

#include "base/work_folder.h"
#include "cli/interrupt.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `tilewright run ... | head` ends silently
  tilewright::cli::clean_up_when_interrupted(tilewright::remove_work_folders);
  return tilewright::cli::unless_interrupted(tilewright::cli::command_line(argc, argv));
}
