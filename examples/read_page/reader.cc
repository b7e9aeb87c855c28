// SPDX-License-Identifier: Apache-2.0
#include "reader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "text_boxes.h"

namespace read_page {
namespace {

// Lines below this confidence are specks and ruled lines, not text; a line is turned only when the classifier
// is sure.
constexpr float kLeastConfidence = 0.5f, kSureOfTurn = 0.9f;

class Stopwatch {
 public:
  explicit Stopwatch(double* total) : total_(total) {}
  ~Stopwatch() {
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start_;
    *total_ += spent.count();
  }

 private:
  double* total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

float length(Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); }

// Writes (value / 255 - mean) / deviation as planes [3, height, width]; what the picture does not cover
// becomes 0.
void fill_input(Network& network, const Picture& picture, const float (&mean)[3], const float (&deviation)[3]) {
  const int height = int(network.input_shape()[2]), width = int(network.input_shape()[3]);
  float* input = network.input();
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const bool inside = x < picture.width && y < picture.height;
        input[(size_t(c) * height + y) * width + x] =
            inside ? (picture.pixel(x, y)[c] / 255.f - mean[c]) / deviation[c] : 0.f;
      }
}

// The networks were trained on channels in the order blue, green, red; the numbers are those of their
// training.
constexpr float kDetectorMean[3] = {0.485f, 0.456f, 0.406f}, kDetectorDeviation[3] = {0.229f, 0.224f, 0.225f};
constexpr float kHalf[3] = {0.5f, 0.5f, 0.5f};

Picture swap_red_and_blue(Picture picture) {
  for (size_t i = 0; i + 2 < picture.rgb.size(); i += 3) std::swap(picture.rgb[i], picture.rgb[i + 2]);
  return picture;
}

}  // namespace

Reader::Reader(Network detector, Network classifier, std::vector<Network> recognisers)
    : detector_(std::move(detector)), classifier_(std::move(classifier)), recognisers_(std::move(recognisers)) {
  if (recognisers_.empty()) throw std::runtime_error("no recogniser was given");
  std::sort(recognisers_.begin(), recognisers_.end(),
            [](const Network& a, const Network& b) { return a.input_shape()[3] < b.input_shape()[3]; });
  std::istringstream list(recognisers_[0].metadata("character"));
  characters_.push_back("");
  for (std::string character; std::getline(list, character);) characters_.push_back(character);
  characters_.push_back(" ");
  for (const Network& network : recognisers_)
    if (network.output_shape().size() != 3 || network.output_shape()[2] != int64_t(characters_.size()))
      throw std::runtime_error("the recogniser's metadata \"character\" does not fit its output");
}

std::vector<Line> Reader::detect(const Picture& picture, Timing* timing) {
  // The whole picture in the upper left of the detector's input, as large as fits.
  const int height = int(detector_.input_shape()[2]), width = int(detector_.input_shape()[3]);
  const float scale = std::min(float(width) / picture.width, float(height) / picture.height);
  const int w = std::clamp(int(std::lround(picture.width * scale)), 1, width);
  const int h = std::clamp(int(std::lround(picture.height * scale)), 1, height);
  const float right = float(picture.width), bottom = float(picture.height);
  const Quad whole{Point{0, 0}, {right, 0}, {right, bottom}, {0, bottom}};
  fill_input(detector_, cut_out(picture, whole, w, h), kDetectorMean, kDetectorDeviation);
  const float* probability = nullptr;
  {
    Stopwatch watch(&timing->detect);
    probability = detector_.run();
  }
  std::vector<Line> lines;
  for (TextBox& box : find_text_boxes(probability, width, height)) {
    for (Point& corner : box.corners) corner = {corner.x * right / w, corner.y * bottom / h};
    lines.push_back({box.corners, "", 0});
  }
  return lines;
}

bool Reader::stands_on_its_head(const Picture& line, Timing* timing) {
  fill_input(classifier_, line, kHalf, kHalf);
  Stopwatch watch(&timing->classify);
  const float* probability = classifier_.run();  // upright, on its head
  return probability[1] > kSureOfTurn;
}

void Reader::recognise(const Picture& picture, Line* line, Timing* timing) {
  const Quad& q = line->corners;
  const float ratio = std::max(length(q[0], q[1]), 1.f) / std::max(length(q[0], q[3]), 1.f);
  const auto cut_for = [&](const Network& network) {
    const int height = int(network.input_shape()[2]), widest = int(network.input_shape()[3]);
    return cut_out(picture, q, std::clamp(int(std::lround(height * ratio)), 8, widest), height);
  };
  Network* network = &recognisers_.back();
  for (Network& candidate : recognisers_)
    if (candidate.input_shape()[2] * ratio <= float(candidate.input_shape()[3])) {
      network = &candidate;
      break;
    }
  const Picture straight = cut_for(*network);
  spell(*network, straight, line, timing);
  // The classifier is sometimes wrong about long lines, so a turned line must also read better.
  if (!stands_on_its_head(cut_for(classifier_), timing)) return;
  Line turned{q, "", 0};
  spell(*network, turned_by_180(straight), &turned, timing);
  if (turned.confidence > line->confidence) *line = turned;
}

void Reader::spell(Network& network, const Picture& picture, Line* line, Timing* timing) {
  fill_input(network, picture, kHalf, kHalf);
  const float* probability = nullptr;
  {
    Stopwatch watch(&timing->recognise);
    probability = network.run();
  }
  // CTC: the likeliest class of each step; repetitions count once, and blanks separate.
  const int64_t steps = network.output_shape()[1], classes = network.output_shape()[2];
  int64_t previous = 0;
  int count = 0;
  double sum = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const float* row = probability + step * classes;
    const int64_t best = std::max_element(row, row + classes) - row;
    if (best != 0 && best != previous) {
      line->text += characters_[size_t(best)];
      sum += row[best];
      ++count;
    }
    previous = best;
  }
  line->confidence = count ? float(sum / count) : 0.f;
}

std::vector<Line> Reader::read(const Picture& picture, Timing* timing) {
  const Picture swapped = swap_red_and_blue(picture);
  std::vector<Line> lines = detect(swapped, timing);
  for (Line& line : lines) recognise(swapped, &line, timing);
  std::erase_if(lines, [](const Line& line) { return line.confidence < kLeastConfidence; });
  return lines;
}

}  // namespace read_page
