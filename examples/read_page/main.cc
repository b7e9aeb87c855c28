// SPDX-License-Identifier: Apache-2.0
// Reads the text of a picture. Links the Tilewright runtime (and stb for picture files), nothing of the
// compiler.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>

#include "reader.h"

namespace {

using namespace read_page;

constexpr const char* kUsage =
    R"(read_page DETECTOR.so CLASSIFIER.so RECOGNISER.so... PICTURE [-o BOXES.png] [--threads N] [--repeat N]

Prints each line of text with its confidence. The recogniser may be compiled for several widths, in one
library or in several.
  -o FILE.png   write the picture with the boxes drawn
  --threads N   threads of each network (default: the cores)
  --repeat N    read N times and report the fastest (default 1)
)";

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Arguments {
  std::vector<std::string> files;
  std::string boxes;
  int threads = 0, repeat = 1;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value = word == "-o" || word == "--threads" || word == "--repeat";
    if (takes_value && i + 1 == argc) return std::nullopt;
    if (word == "-o")
      arguments.boxes = argv[++i];
    else if (word == "--threads")
      arguments.threads = std::atoi(argv[++i]);
    else if (word == "--repeat")
      arguments.repeat = std::max(1, std::atoi(argv[++i]));
    else if (word.starts_with("-"))
      return std::nullopt;
    else
      arguments.files.push_back(word);
  }
  if (arguments.files.size() < 4) return std::nullopt;
  return arguments;
}

int read(const Arguments& arguments) {
  const double started = now_ms();
  std::vector<Network> recognisers;
  uintmax_t bytes = 0;
  Network detector(arguments.files[0], arguments.threads), classifier(arguments.files[1], arguments.threads);
  for (size_t i = 2; i + 1 < arguments.files.size(); ++i)
    for (Network& network : Network::sizes(arguments.files[i], arguments.threads))
      recognisers.push_back(std::move(network));
  const size_t networks = arguments.files.size() - 1;
  for (size_t i = 0; i < networks; ++i) bytes += std::filesystem::file_size(arguments.files[i]);
  const double loaded = now_ms();
  Reader reader(std::move(detector), std::move(classifier), std::move(recognisers));

  Picture picture = read_picture(arguments.files.back());
  std::vector<Line> lines;
  Timing best;
  double best_total = 0;
  for (int i = 0; i < arguments.repeat; ++i) {
    Timing timing;
    lines = reader.read(picture, &timing);
    const double total = timing.detect + timing.classify + timing.recognise;
    if (i == 0 || total < best_total) best = timing, best_total = total;
  }
  for (const Line& line : lines) std::printf("%5.2f  %s\n", line.confidence, line.text.c_str());
  if (lines.empty()) std::printf("no text found\n");
  std::printf("\n%zu networks, %.1f MB, loaded in %.1f ms\n", arguments.files.size() - 1, double(bytes) / 1e6,
              loaded - started);
  std::printf("picture %d x %d, %zu lines: %.1f ms in the networks (detect %.1f, classify %.1f, recognise %.1f)\n",
              picture.width, picture.height, lines.size(), best_total, best.detect, best.classify, best.recognise);
  if (!arguments.boxes.empty()) {
    const float thickness = std::max(1.5f, float(picture.width) / 400);
    for (const Line& line : lines) draw_outline(picture, line.corners, {220, 30, 60}, thickness);
    write_png(picture, arguments.boxes);
    std::printf("boxes drawn in %s\n", arguments.boxes.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse(argc, argv);
  if (!arguments) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    return read(*arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "read_page: %s\n", error.what());
    return 1;
  }
}
