// SPDX-License-Identifier: Apache-2.0
// Kernel configurations as values. A configuration is a plain struct that lists its fields once, by name; its canonical
// text ("mr=8 nr=2 k_unroll=4 dots=false": all fields, in the list's order) and the parser follow from the list. Two
// configurations are equal exactly when their texts are: kernel keys, records and reports use the text.
#pragma once
#include <algorithm>
#include <charconv>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace tilewright::topi {

template <class C, class T>
struct ConfigField {
  const char* name;
  T C::*member;
};
template <class C, class T>
constexpr ConfigField<C, T> field(const char* name, T C::*member) {
  return {name, member};
}

namespace config_detail {

struct Anything {
  template <class T>
  operator T() const;  // NOLINT: never called; it stands for a field of any type
};
// The number of fields of an aggregate.
template <class C, class... Given>
constexpr size_t count_fields() {
  if constexpr (requires { C{Given{}..., Anything{}}; })
    return count_fields<C, Given..., Anything>();
  else
    return sizeof...(Given);
}

inline std::string value_text(bool value) { return value ? "true" : "false"; }
inline std::string value_text(int value) { return std::to_string(value); }
inline std::string value_text(int64_t value) { return std::to_string(value); }
inline std::string value_text(DataType value) { return value.str(); }
// Enumerators are written by the names in config_names(E).
template <class E>
requires std::is_enum_v<E> std::string value_text(E value) { return config_names(value)[static_cast<size_t>(value)]; }

inline bool parse_value(std::string_view text, bool* value) {
  *value = text == "true";
  return *value || text == "false";
}
template <class I>
requires(std::is_integral_v<I> && !std::is_same_v<I, bool>) bool parse_value(std::string_view text, I* value) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && at == text.data() + text.size();
}
inline bool parse_value(std::string_view text, DataType* value) {
  auto parsed = parse_dtype(std::string(text));
  if (parsed.ok()) *value = *parsed;
  return parsed.ok();
}
template <class E>
requires std::is_enum_v<E>
bool parse_value(std::string_view text, E* value) {
  const auto names = config_names(*value);
  const auto found = std::find(names.begin(), names.end(), text);
  *value = static_cast<E>(found - names.begin());
  return found != names.end();
}

}  // namespace config_detail

template <class C>
concept Configuration = std::equality_comparable<C> && requires {
  C::fields();
};

template <Configuration C>
std::string to_text(const C& config) {
  static_assert(std::tuple_size_v<decltype(C::fields())> == config_detail::count_fields<C>(),
                "a configuration's list names all of its fields");
  std::string out;
  auto add = [&](const auto& f) {
    out += (out.empty() ? "" : " ") + std::string(f.name) + "=" + config_detail::value_text(config.*f.member);
  };
  std::apply([&](const auto&... f) { (add(f), ...); }, C::fields());
  return out;
}

// Parses a configuration's text; nothing if it is invalid. Fields behind the text's last one have their defaults: what
// an older version recorded knows fewer.
template <Configuration C>
std::optional<C> parse_config(std::string_view text) {
  C config;
  std::string_view rest = text;
  auto read = [&](const auto& f) {
    if (rest.empty() && !text.empty()) return true;
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const size_t equals = word.find('=');
    return equals != std::string_view::npos && word.substr(0, equals) == f.name &&
           config_detail::parse_value(word.substr(equals + 1), &(config.*f.member));
  };
  const bool whole = std::apply([&](const auto&... f) { return (read(f) && ...); }, C::fields());
  if (!whole || !(to_text(config) + " ").starts_with(std::string(text) + " ")) return std::nullopt;
  return config;
}

// Several configurations, one per part of a kernel.
template <Configuration C>
std::string to_text(const std::vector<C>& configs) {
  std::string out;
  for (const C& c : configs) out += (out.empty() ? "" : "; ") + to_text(c);
  return out;
}
template <Configuration C>
std::optional<std::vector<C>> parse_configs(std::string_view text) {
  std::vector<C> out;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find("; "), rest.size());
    auto one = parse_config<C>(rest.substr(0, end));
    if (!one) return std::nullopt;
    out.push_back(*one);
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  if (to_text(out) != text) return std::nullopt;
  return out;
}

// A configuration and its rank; less is better.
template <class C>
using Weighed = std::pair<double, C>;
// The guess first, then the others from best to worst, at most `most`.
template <class C>
std::vector<C> best_of(const C& guess, std::vector<Weighed<C>> all, size_t most) {
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<C> out{guess};
  for (size_t i = 0; i < all.size() && out.size() < most; ++i)
    if (!(all[i].second == guess)) out.push_back(all[i].second);
  return out;
}

}  // namespace tilewright::topi
