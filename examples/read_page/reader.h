// SPDX-License-Identifier: Apache-2.0
// Reads the text of a picture with three networks: a detector of text lines, a classifier that finds lines
// standing on their head, and a recogniser compiled for one or more line widths.
#pragma once
#include <string>
#include <vector>

#include "network.h"
#include "picture.h"

namespace read_page {

struct Line {
  Quad corners;  // in pixels of the picture
  std::string text;
  float confidence;  // mean probability of the characters
};

// Milliseconds spent in the networks themselves.
struct Timing {
  double detect = 0, classify = 0, recognise = 0;
};

class Reader {
 public:
  // `recognisers`: the same network for several widths; each line takes the narrowest that fits.
  Reader(Network detector, Network classifier, std::vector<Network> recognisers);

  std::vector<Line> read(const Picture& picture, Timing* timing);

 private:
  std::vector<Line> detect(const Picture& picture, Timing* timing);
  bool stands_on_its_head(const Picture& line, Timing* timing);
  void recognise(const Picture& picture, Line* line, Timing* timing);
  void spell(Network& network, const Picture& picture, Line* line, Timing* timing);

  Network detector_, classifier_;
  std::vector<Network> recognisers_;     // by rising width
  std::vector<std::string> characters_;  // class 0 is CTC's blank
};

}  // namespace read_page
