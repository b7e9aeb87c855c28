// SPDX-License-Identifier: Apache-2.0
// String operators. Compiled code never handles strings: these converters compute on known values. In a VM program
// values are known when the operator is reached.
#include <algorithm>
#include <map>

#include "base/checked.h"
#include "base/format.h"
#include "frontend/onnx/convert.h"
#include "frontend/onnx/text_pattern.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Texts = std::vector<std::string>;

Tensor texts(NodeContext& c, size_t i) {
  Tensor t = c.constant(i, "text");
  if (!t.dtype().is_string()) c.fail_type(format("its input {} is {}, not texts", i, t.dtype().str()));
  return t;
}

Values string_concat(NodeContext& c) {
  const Tensor a = texts(c, 0), b = texts(c, 1);
  const auto rank = static_cast<size_t>(std::max(a.rank(), b.rank()));
  auto widened = [&](const Tensor& t) {
    Ints dims = t.shape();
    dims.insert(dims.begin(), rank - dims.size(), 1);
    return dims;
  };
  const Ints da = widened(a), db = widened(b);
  Ints shape(rank);
  for (size_t d = 0; d < rank; ++d) {
    if (da[d] != db[d] && da[d] != 1 && db[d] != 1)
      c.fail_type(format("{} and {} do not broadcast", shape_str(a.shape()), shape_str(b.shape())));
    shape[d] = da[d] == 1 ? db[d] : da[d];
  }
  auto count = checked_element_count(shape);
  if (!count.ok()) throw ConversionFailure{std::move(count).error()};
  Texts out(static_cast<size_t>(*count));
  Ints index(rank, 0);
  for (std::string& s : out) {
    size_t ia = 0, ib = 0;
    for (size_t d = 0; d < rank; ++d) {
      ia = ia * static_cast<size_t>(da[d]) + static_cast<size_t>(da[d] == 1 ? 0 : index[d]);
      ib = ib * static_cast<size_t>(db[d]) + static_cast<size_t>(db[d] == 1 ? 0 : index[d]);
    }
    s = a.string_values()[ia] + b.string_values()[ib];
    for (size_t d = rank; d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
  return {c.constant_of(Tensor::strings(shape, std::move(out)))};
}

// Without a delimiter, runs of white space separate, and those at the ends are dropped (Python's str.split).
Texts split(const std::string& s, const std::string& delimiter, int64_t most) {
  Texts out;
  if (!delimiter.empty()) {
    size_t at = 0;
    for (int64_t n = 0; most < 0 || n < most; ++n) {
      const size_t end = s.find(delimiter, at);
      if (end == std::string::npos) break;
      out.push_back(s.substr(at, end - at));
      at = end + delimiter.size();
    }
    out.push_back(s.substr(at));
    return out;
  }
  constexpr const char* kSpace = " \t\n\r\f\v";
  size_t at = s.find_first_not_of(kSpace);
  while (at != std::string::npos) {
    if (most >= 0 && static_cast<int64_t>(out.size()) == most) {
      out.push_back(s.substr(at));
      break;
    }
    const size_t end = std::min(s.find_first_of(kSpace, at), s.size());
    out.push_back(s.substr(at, end - at));
    at = s.find_first_not_of(kSpace, end);
  }
  return out;
}

Values string_split(NodeContext& c) {
  const Tensor x = texts(c, 0);
  const std::string delimiter = c.string_attr("delimiter", "");
  const int64_t most = c.int_attr("maxsplit", -1);
  std::vector<Texts> parts;
  size_t longest = 0;
  std::vector<int64_t> counts;
  for (const std::string& s : x.string_values()) {
    parts.push_back(split(s, delimiter, most));
    longest = std::max(longest, parts.back().size());
    counts.push_back(static_cast<int64_t>(parts.back().size()));
  }
  Texts out;
  for (Texts& p : parts) {
    p.resize(longest);
    out.insert(out.end(), p.begin(), p.end());
  }
  Ints shape = x.shape();
  shape.push_back(static_cast<int64_t>(longest));
  return {c.constant_of(Tensor::strings(shape, std::move(out))),
          c.constant_of(Tensor::from<int64_t>(kInt64, x.shape(), counts))};
}

// Lower case of Latin, Greek and Cyrillic letters.
uint32_t small(uint32_t c) {
  if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x391 && c <= 0x3a9 && c != 0x3a2) ||
      (c >= 0x410 && c <= 0x42f))
    return c + 32;
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  if (c >= 0x100 && c <= 0x177 && c != 0x130 && c != 0x131 && c != 0x138 && c != 0x149)
    return (c >= 0x139 && c <= 0x148) ? c + (c & 1) : c | 1;
  return c;
}
uint32_t capital(uint32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 0xe0 && c <= 0xfe && c != 0xf7) || (c >= 0x3b1 && c <= 0x3c9 && c != 0x3c2) ||
      (c >= 0x430 && c <= 0x44f))
    return c - 32;
  if (c >= 0x450 && c <= 0x45f) return c - 80;
  if (c >= 0x100 && c <= 0x177 && c != 0x130 && c != 0x131 && c != 0x138 && c != 0x149)
    return (c >= 0x139 && c <= 0x148) ? c - !(c & 1) : c & ~1u;
  return c;
}
std::string mapped(const std::string& s, uint32_t (*map)(uint32_t)) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const auto lead = static_cast<unsigned char>(s[i]);
    if (lead < 0x80) {
      out.push_back(static_cast<char>(map(lead)));
    } else if (lead >= 0xc2 && lead < 0xe0 && i + 1 < s.size() && (s[i + 1] & 0xc0) == 0x80) {
      const uint32_t c = map((lead & 0x1fu) << 6 | (static_cast<unsigned char>(s[i + 1]) & 0x3fu));
      out.push_back(static_cast<char>(0xc0 | c >> 6));
      out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
      ++i;
    } else {
      out.push_back(s[i]);
    }
  }
  return out;
}

Values string_normalizer(NodeContext& c) {
  const Tensor x = texts(c, 0);
  if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.shape()[0] != 1))
    c.fail_type(format("its input is {}, neither a list nor one row", shape_str(x.shape())));
  const std::string action = c.string_attr("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    c.fail(format("its case_change_action '{}' is unknown", action));
  const bool exact = c.int_attr("is_case_sensitive", 0) != 0;
  Texts stop = c.strings_attr("stopwords");
  if (!exact)
    for (std::string& s : stop) s = mapped(s, small);
  Texts out;
  for (const std::string& s : x.string_values()) {
    if (std::find(stop.begin(), stop.end(), exact ? s : mapped(s, small)) != stop.end()) continue;
    out.push_back(action == "LOWER" ? mapped(s, small) : action == "UPPER" ? mapped(s, capital) : s);
  }
  if (out.empty()) out.emplace_back();
  Ints shape = x.shape();
  shape.back() = static_cast<int64_t>(out.size());
  return {c.constant_of(Tensor::strings(shape, std::move(out)))};
}

Values regex_full_match(NodeContext& c) {
  const Tensor x = texts(c, 0);
  auto pattern = TextPattern::parse(c.string_attr("pattern", ""));
  if (!pattern.ok()) throw ConversionFailure{std::move(pattern).error()};
  Tensor out = Tensor::zeros(kBool, x.shape());
  for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, pattern->matches(x.string_values()[static_cast<size_t>(i)]));
  return {c.constant_of(out)};
}

// Counts the n-grams of the pool in each row.
Values tf_idf(NodeContext& c) {
  const Tensor x = c.constant(0, "input");
  if (x.rank() < 1 || x.rank() > 2) c.fail_type(format("its input has {} axes", x.rank()));
  const bool of_text = x.dtype().is_string();
  const std::string mode = c.string_attr("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") c.fail(format("its mode '{}' is unknown", mode));
  const Ints starts = c.ints_attr("ngram_counts"), places = c.ints_attr("ngram_indexes"),
             numbers = c.ints_attr("pool_int64s");
  const Texts words = c.strings_attr("pool_strings");
  const std::vector<double> weights = c.floats_attr("weights");
  const int64_t least = c.int_attr("min_gram_length"), most = c.int_attr("max_gram_length"),
                skips = c.int_attr("max_skip_count");
  if (least < 1 || most < least || skips < 0 || most > 64)
    c.fail(format("it takes n-grams of {} to {} with {} skips", least, most, skips));
  const size_t pool = of_text ? words.size() : numbers.size();
  // Numbers the pool's distinct entries from 1; 0 stands for any other.
  std::map<std::string, int64_t> word_ids;
  std::map<int64_t, int64_t> number_ids;
  auto id_of = [&](size_t i, bool in_pool) -> int64_t {
    if (of_text) {
      const std::string& s = in_pool ? words[i] : x.string_values()[i];
      if (in_pool) return word_ids.emplace(s, static_cast<int64_t>(word_ids.size()) + 1).first->second;
      auto it = word_ids.find(s);
      return it == word_ids.end() ? 0 : it->second;
    }
    const int64_t v = in_pool ? numbers[i] : x.at_int(static_cast<int64_t>(i));
    if (in_pool) return number_ids.emplace(v, static_cast<int64_t>(number_ids.size()) + 1).first->second;
    auto it = number_ids.find(v);
    return it == number_ids.end() ? 0 : it->second;
  };
  std::map<Ints, size_t> grams;
  size_t id = 0;
  for (size_t n = 1; n <= starts.size(); ++n) {
    const int64_t from = starts[n - 1], to = n < starts.size() ? starts[n] : static_cast<int64_t>(pool);
    if (from < 0 || to < from || to > static_cast<int64_t>(pool) || (to - from) % static_cast<int64_t>(n) != 0)
      c.fail(format("its {}-grams lie at {} to {} of a pool of {}", n, from, to, pool));
    for (auto at = static_cast<size_t>(from); at < static_cast<size_t>(to); at += n, ++id) {
      Ints gram;
      for (size_t k = 0; k < n; ++k) gram.push_back(id_of(at + k, true));
      grams.emplace(std::move(gram), id);
    }
  }
  if (places.size() != id || (!weights.empty() && weights.size() != id))
    c.fail(format("it has {} n-grams, {} indexes and {} weights", id, places.size(), weights.size()));
  int64_t width = 0;
  for (int64_t p : places) {
    if (p < 0 || p > (int64_t{1} << 30)) c.fail(format("an n-gram has the index {}", p));
    width = std::max(width, p + 1);
  }
  const int64_t rows = x.rank() == 2 ? x.shape()[0] : 1, columns = x.shape().back();
  if (rows * width > (int64_t{1} << 30)) c.fail("its result is too large");
  Tensor out = Tensor::zeros(kFloat32, x.rank() == 2 ? Ints{rows, width} : Ints{width});
  auto to = out.as_mutable<float>();
  for (int64_t r = 0; r < rows; ++r) {
    Ints row;
    for (int64_t k = 0; k < columns; ++k) row.push_back(id_of(static_cast<size_t>(r * columns + k), false));
    for (int64_t n = least; n <= most; ++n)
      for (int64_t skip = 1; skip <= (n == 1 ? 1 : std::min(skips, columns) + 1); ++skip)
        for (int64_t at = 0; at + skip * (n - 1) < columns; ++at) {
          Ints gram;
          for (int64_t k = 0; k < n; ++k) gram.push_back(row[static_cast<size_t>(at + k * skip)]);
          auto found = grams.find(gram);
          if (found == grams.end()) continue;
          float& v = to[static_cast<size_t>(r * width + places[found->second])];
          const auto weight = static_cast<float>(weights.empty() ? 1 : weights[found->second]);
          v = mode == "TF" ? v + 1 : mode == "IDF" ? weight : v + weight;
        }
  }
  return {c.constant_of(out)};
}

constexpr ConverterEntry kTextConverters[] = {
    {"StringConcat", 20, string_concat},
    {"StringSplit", 20, string_split},
    {"StringNormalizer", 10, string_normalizer},
    {"RegexFullMatch", 20, regex_full_match},
    {"TfIdfVectorizer", 9, tf_idf},
};

}  // namespace

std::span<const ConverterEntry> text_converters() { return kTextConverters; }

}  // namespace tilewright::onnx
