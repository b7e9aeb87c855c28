// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/text_pattern.h"

#include <algorithm>
#include <vector>

#include "base/format.h"

namespace tilewright::onnx {
namespace {

using Code = uint32_t;
constexpr Code kLast = 0x10ffff;
constexpr size_t kMaxSteps = 100'000;
constexpr int kMaxDepth = 200, kMaxRepeat = 1000;

struct Range {
  Code first, last;
};
using Set = std::vector<Range>;

struct Step {
  enum Kind { kSet, kSplit, kJump, kBegin, kEnd, kBoundary, kInside, kMatch } kind = kMatch;
  Set set;
  size_t to = 0, other = 0;  // targets of kSplit and kJump
};

// Decodes UTF-8. An invalid byte becomes one character, with a code above all valid ones.
std::vector<Code> characters(std::string_view s) {
  std::vector<Code> out;
  for (size_t i = 0; i < s.size();) {
    const auto lead = static_cast<unsigned char>(s[i]);
    const size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    Code c = n == 1 ? lead : lead & (0xff >> (n + 1));
    bool good = n > 0 && i + n <= s.size();
    for (size_t k = 1; good && k < n; ++k) {
      const auto next = static_cast<unsigned char>(s[i + k]);
      good = (next & 0xc0) == 0x80;
      c = c << 6 | (next & 0x3f);
    }
    out.push_back(good ? c : kLast + 1 + lead);
    i += good ? n : 1;
  }
  return out;
}

Set complement(Set set) {
  std::sort(set.begin(), set.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  Set out;
  Code next = 0;
  for (const Range& r : set) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = std::max(next, r.last + 1);
  }
  if (next <= kLast) out.push_back({next, kLast});
  return out;
}
bool contains(const Set& set, Code c) {
  return std::any_of(set.begin(), set.end(), [c](const Range& r) { return c >= r.first && c <= r.last; });
}
const Set kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, kDigit = {{'0', '9'}},
          kSpace = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};

struct Failure {
  std::string why;
  ErrorCode code = ErrorCode::kInvalidArgument;
};

// Recursive descent. Instructions are emitted as the pattern is read, and copied for repetitions.
class Parser {
 public:
  explicit Parser(std::string_view pattern) : text_(characters(pattern)) {}
  std::vector<Step> run() {
    alternatives(0);
    if (at_ < text_.size()) throw Failure{"a ')' without its '('"};
    steps_.push_back({Step::kMatch, {}});
    return std::move(steps_);
  }

 private:
  bool more() const { return at_ < text_.size(); }
  Code peek() const { return more() ? text_[at_] : 0; }
  bool take(Code c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void lay(Step s) {
    if (steps_.size() >= kMaxSteps) throw Failure{"it grows too large", ErrorCode::kLimitExceeded};
    steps_.push_back(std::move(s));
  }
  // Inserts an instruction before `at` and shifts the jump targets behind it.
  void insert(size_t at, Step s) {
    lay({Step::kJump, {}});
    for (size_t i = steps_.size() - 1; i > at; --i) {
      steps_[i] = std::move(steps_[i - 1]);
      if (steps_[i].kind == Step::kSplit || steps_[i].kind == Step::kJump) {
        if (steps_[i].to >= at) ++steps_[i].to;
        if (steps_[i].other >= at) ++steps_[i].other;
      }
    }
    steps_[at] = std::move(s);
  }

  void alternatives(int depth) {
    if (depth > kMaxDepth) throw Failure{"its groups nest too deeply", ErrorCode::kLimitExceeded};
    const size_t begin = steps_.size();
    sequence(depth);
    std::vector<size_t> leaves;
    while (take('|')) {
      // A choice between all alternatives so far and the next one.
      insert(begin, {Step::kSplit, {}, begin + 1, 0});
      for (size_t& l : leaves) ++l;
      leaves.push_back(steps_.size());
      lay({Step::kJump, {}});
      steps_[begin].other = steps_.size();
      sequence(depth);
    }
    for (size_t l : leaves) steps_[l].to = steps_.size();
  }
  void sequence(int depth) {
    while (more() && peek() != '|' && peek() != ')') {
      const size_t begin = steps_.size();
      atom(depth);
      while (repeat(begin)) {
      }
    }
  }
  int number() {
    int n = -1;
    while (more() && peek() >= '0' && peek() <= '9') {
      n = std::max(n, 0) * 10 + static_cast<int>(text_[at_++] - '0');
      if (n > kMaxRepeat)
        throw Failure{format("something repeats more than {} times", kMaxRepeat), ErrorCode::kLimitExceeded};
    }
    return n;
  }
  bool repeat(size_t begin) {
    int least = 0, most = -1;
    if (take('*')) {
    } else if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (peek() == '{') {
      const size_t back = at_++;
      least = number();
      most = least;
      if (least >= 0 && take(',')) most = number();
      if (least < 0 || !take('}')) {  // not a repetition: an ordinary brace
        at_ = back;
        return false;
      }
      if (most >= 0 && most < least)
        throw Failure{format("something repeats at least {} and at most {} times", least, most)};
    } else {
      return false;
    }
    take('?');  // laziness does not matter for a full match
    const std::vector<Step> once(steps_.begin() + static_cast<std::ptrdiff_t>(begin), steps_.end());
    steps_.resize(begin);
    auto copy = [&] {
      const size_t moved = steps_.size() - begin;
      for (Step s : once) {
        s.to += moved, s.other += moved;
        lay(std::move(s));
      }
    };
    for (int i = 0; i < least; ++i) copy();
    if (most < 0) {
      const size_t split = steps_.size();
      lay({Step::kSplit, {}, split + 1, 0});
      copy();
      lay({Step::kJump, {}, split});
      steps_[split].other = steps_.size();
      return true;
    }
    std::vector<size_t> splits;
    for (int i = least; i < most; ++i) {
      splits.push_back(steps_.size());
      lay({Step::kSplit, {}, steps_.size() + 1, 0});
      copy();
    }
    for (size_t s : splits) steps_[s].other = steps_.size();
    return true;
  }
  void atom(int depth) {
    const Code c = text_[at_++];
    switch (c) {
      case '(':
        if (take('?') && !take(':')) throw Failure{"a group with flags or a name"};
        alternatives(depth + 1);
        if (!take(')')) throw Failure{"a '(' without its ')'"};
        return;
      case '[':
        return lay({Step::kSet, bracket()});
      case '.':
        return lay({Step::kSet, complement({{'\n', '\n'}})});
      case '^':
        return lay({Step::kBegin, {}});
      case '$':
        return lay({Step::kEnd, {}});
      case '*':
      case '+':
      case '?':
        throw Failure{"nothing that could repeat"};
      case '\\':
        if (take('b')) return lay({Step::kBoundary, {}});
        if (take('B')) return lay({Step::kInside, {}});
        if (take('A')) return lay({Step::kBegin, {}});
        if (take('z')) return lay({Step::kEnd, {}});
        return lay({Step::kSet, escape()});
      default:
        return lay({Step::kSet, {{c, c}}});
    }
  }
  Set escape() {
    if (!more()) throw Failure{"a '\\' at the end"};
    const Code c = text_[at_++];
    switch (c) {
      case 'd':
        return kDigit;
      case 'D':
        return complement(kDigit);
      case 'w':
        return kWord;
      case 'W':
        return complement(kWord);
      case 's':
        return kSpace;
      case 'S':
        return complement(kSpace);
      case 'n':
        return {{'\n', '\n'}};
      case 't':
        return {{'\t', '\t'}};
      case 'r':
        return {{'\r', '\r'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      default:
        if (contains(kWord, c)) throw Failure{"an escape that is not known"};
        return {{c, c}};
    }
  }
  Set bracket() {
    const bool negated = take('^');
    Set set;
    for (bool first = true; first || peek() != ']'; first = false) {
      if (!more()) throw Failure{"a '[' without its ']'"};
      Code low = text_[at_++];
      if (low == '\\') {
        Set escaped = escape();
        if (escaped.size() != 1 || escaped[0].first != escaped[0].last) {
          set.insert(set.end(), escaped.begin(), escaped.end());
          continue;
        }
        low = escaped[0].first;
      }
      Code high = low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        high = text_[at_++];
        if (high == '\\') {
          const Set escaped = escape();
          if (escaped.size() != 1 || escaped[0].first != escaped[0].last) throw Failure{"a range that ends in a class"};
          high = escaped[0].first;
        }
        if (high < low) throw Failure{"a range that ends before it begins"};
      }
      set.push_back({low, high});
    }
    ++at_;
    return negated ? complement(set) : set;
  }

  std::vector<Code> text_;
  size_t at_ = 0;
  std::vector<Step> steps_;
};

}  // namespace

struct TextPattern::Program {
  std::vector<Step> steps;
};

Result<TextPattern> TextPattern::parse(std::string_view pattern) {
  try {
    TextPattern out;
    out.program_ = std::make_shared<Program>(Program{Parser(pattern).run()});
    return out;
  } catch (Failure& f) {
    return Diagnostic(f.code, format("the pattern '{}' cannot be used: {}", pattern, f.why));
  }
}

bool TextPattern::matches(std::string_view text) const {
  const auto& steps = program_->steps;
  const std::vector<Code> c = characters(text);
  // The set of program positions reachable after the text so far (Thompson's simulation).
  std::vector<size_t> now, next, open;
  std::vector<size_t> seen(steps.size(), SIZE_MAX);
  auto reach = [&](size_t from, size_t position, std::vector<size_t>* into) {
    open.assign(1, from);
    while (!open.empty()) {
      const size_t s = open.back();
      open.pop_back();
      if (seen[s] == position) continue;
      seen[s] = position;
      const bool before = position > 0 && contains(kWord, c[position - 1]),
                 after = position < c.size() && contains(kWord, c[position]);
      switch (steps[s].kind) {
        case Step::kSplit:
          open.push_back(steps[s].other);
          open.push_back(steps[s].to);
          break;
        case Step::kJump:
          open.push_back(steps[s].to);
          break;
        case Step::kBegin:
          if (position == 0) open.push_back(s + 1);
          break;
        case Step::kEnd:
          if (position == c.size()) open.push_back(s + 1);
          break;
        case Step::kBoundary:
          if (before != after) open.push_back(s + 1);
          break;
        case Step::kInside:
          if (before == after) open.push_back(s + 1);
          break;
        case Step::kSet:
        case Step::kMatch:
          into->push_back(s);
          break;
      }
    }
  };
  reach(0, 0, &now);
  for (size_t i = 0; i < c.size(); ++i) {
    next.clear();
    for (size_t s : now)
      if (steps[s].kind == Step::kSet && contains(steps[s].set, c[i])) reach(s + 1, i + 1, &next);
    now.swap(next);
    if (now.empty()) return false;
  }
  return std::any_of(now.begin(), now.end(), [&](size_t s) { return steps[s].kind == Step::kMatch; });
}

}  // namespace tilewright::onnx
