// SPDX-License-Identifier: Apache-2.0
// fuzz-room: tune
// fuzz-seeds: tests/data/autotvm
// Logs of tuning records, and what a measuring process says: read or refused; what is read is written as it was.
#include <cstdlib>
#include <string>
#include <vector>

#include "tune/trial.h"

using namespace tilewright;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  seeds->push_back("{\"kind\":\"done\",\"results\":[{\"costs\":[0.5],\"error\":0,\"message\":\"\",\"seconds\":1}]}");
  seeds->push_back("{\"kind\":\"running\",\"trial\":3}");
  tune::Batch batch;
  batch.module = {"fn () {}", {{kFloat32, {2, 3}}}};
  batch.trials = {{"conv2d_nchwc.direct", "a=1"}};
  seeds->push_back(to_line(batch));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (auto log = tune::parse_log(text, "fuzz"); log.ok())
    for (const tune::Record& record : log->records) {
      const std::string line = to_line(record);
      auto again = tune::parse_record(line, "again");
      // A failed trial's times are written as the classic stack's one for all of them.
      if (!again.ok() || to_line(*again) != line) __builtin_trap();
    }
  const std::string line = text.substr(0, text.find('\n'));
  if (auto batch = tune::parse_batch(line); batch.ok())
    if (!tune::parse_batch(to_line(*batch)).ok()) __builtin_trap();
  (void)tune::parse_message(line);
  return 0;
}
