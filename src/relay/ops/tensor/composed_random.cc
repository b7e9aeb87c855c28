// SPDX-License-Identifier: Apache-2.0
// Random numbers by a counter: Threefry-4x64 with 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers:
// As Easy as 1, 2, 3", SC 2011), whose constants are those of Skein. A generator is ten words: a key of four, a path of
// two (the splits that led here, a bit each), a counter of two, and the bit of the path that comes next, of two. That
// is the classic stack's layout, and the numbers are its numbers.
#include <cmath>
#include <numbers>

#include "relay/ops/composition.h"
#include "relay/ops/tensor/attrs_random.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;
using Words = std::vector<Expr>;  // scalars, or vectors with one block per element

constexpr DataType kWord = kUInt64;
constexpr int kWords = 4;

class Generator {
 public:
  explicit Generator(Composition* c) : c_(*c) {}

  Expr constant(uint64_t v) {
    Tensor data = Tensor::zeros(kWord, {});
    data.set_int(0, static_cast<int64_t>(v));
    return make_constant(std::move(data));
  }
  Expr ramp(int64_t count) {
    Tensor data = Tensor::zeros(kWord, {count});
    for (int64_t i = 0; i < count; ++i) data.set_int(i, i);
    return make_constant(std::move(data));
  }
  Expr shifted_left(const Expr& x, int by) { return c_.call("left_shift", {x, constant(static_cast<uint64_t>(by))}); }
  Expr shifted_right(const Expr& x, int by) { return c_.call("right_shift", {x, constant(static_cast<uint64_t>(by))}); }
  Expr both(const Expr& a, const Expr& b) { return c_.call("bitwise_or", {a, b}); }
  Expr differing(const Expr& a, const Expr& b) { return c_.call("bitwise_xor", {a, b}); }
  Expr is(const Expr& a, uint64_t v) { return c_.call("equal", {a, constant(v)}); }

  Words words_of(const Expr& state) {
    Words out;
    for (int64_t i = 0; i < 10; ++i) out.push_back(c_.reshape(c_.slice(state, 0, i, i + 1), {}));
    return out;
  }
  Expr state_of(const Words& words) {
    std::vector<Expr> parts;
    for (const Expr& w : words) parts.push_back(c_.reshape(w, {1}));
    return c_.concatenate(parts, 0);
  }
  Words chosen(const Expr& condition, const Words& yes, const Words& no) {
    Words out;
    for (size_t i = 0; i < yes.size(); ++i) out.push_back(c_.where(condition, yes[i], no[i]));
    return out;
  }

  // The four words of a block, from key and counter.
  Words hash(const Words& state, const Words& counter) {
    constexpr int kRotations[8][2] = {{14, 16}, {52, 57}, {23, 40}, {5, 37}, {25, 33}, {46, 12}, {58, 22}, {32, 32}};
    Words key(state.begin(), state.begin() + kWords);
    Expr parity = constant(0x1BD11BDAA9FC1A22);
    for (int i = 0; i < kWords; ++i) parity = differing(parity, state[static_cast<size_t>(i)]);
    key.push_back(parity);
    Words x = counter;
    for (int group = 0; group < 5; ++group) {
      for (int j = 0; j < kWords; ++j) {
        Expr add = key[static_cast<size_t>((group + j) % (kWords + 1))];
        if (j == kWords - 1) add = c_.plus(add, constant(static_cast<uint64_t>(group)));
        x[static_cast<size_t>(j)] = c_.plus(x[static_cast<size_t>(j)], add);
      }
      for (int round = 0; round < 4; ++round) {
        const auto& by = kRotations[(group * 4 + round) % 8];
        for (size_t j = 0; j < 2; ++j) {
          Expr &a = x[2 * j], &b = x[2 * j + 1];
          a = c_.plus(a, b);
          b = differing(a, both(shifted_left(b, by[j]), shifted_right(b, 64 - by[j])));
        }
        std::swap(x[1], x[3]);
      }
    }
    return x;
  }

  // Words 8 and 9, advanced to the next bit.
  Words next_bit(const Expr& high, const Expr& low) {
    Expr last = is(high, 1), none = is(high, 0), zero = constant(0);
    return {c_.where(last, zero, shifted_right(high, 1)),
            c_.where(last, constant(uint64_t{1} << 63), c_.where(none, shifted_right(low, 1), zero))};
  }
  Expr no_bit_left(const Words& w) { return c_.call("logical_and", {is(w[8], 0), is(w[9], 0)}); }

  // Prepares a generator whose counter can advance by `count` numbers.
  Words with_room(const Words& w, int64_t count) {
    const Expr zero = constant(0), ones = constant(~uint64_t{0});
    Words hashed = hash(w, {ones, ones, ones, ones});
    Words fresh{hashed[0], hashed[1], hashed[2], hashed[3], zero, zero, zero, zero, constant(uint64_t{1} << 63), zero};
    Words bit = next_bit(w[8], w[9]);
    Words right{w[0], w[1], w[2], w[3], both(w[4], w[8]), both(w[5], w[9]), zero, zero, bit[0], bit[1]};
    Expr room = c_.call("less", {w[7], constant(~uint64_t{0} - static_cast<uint64_t>(count))});
    return chosen(room, w, chosen(no_bit_left(w), fresh, right));
  }

  // (the generator afterwards, `count` random words)
  std::pair<Expr, Expr> numbers(const Expr& state, int64_t count) {
    Words w = with_room(words_of(state), count);
    const int64_t blocks = count / kWords, rest = count % kWords;
    std::vector<Expr> parts;
    if (blocks) {
      const Expr block = ramp(blocks);
      Words counter;
      for (size_t i = 0; i < kWords; ++i) counter.push_back(c_.plus(block, w[4 + i]));
      std::vector<Expr> columns;
      for (const Expr& column : hash(w, counter)) columns.push_back(c_.expand_dims(column, 1));
      parts.push_back(c_.reshape(c_.concatenate(columns, 1), {blocks * kWords}));
    }
    if (rest) {
      w[7] = c_.plus(w[7], constant(static_cast<uint64_t>(blocks * kWords)));
      std::vector<Expr> last;
      for (const Expr& word : hash(w, {w[4], w[5], w[6], w[7]})) last.push_back(c_.reshape(word, {1}));
      last.resize(static_cast<size_t>(rest));
      parts.push_back(c_.concatenate(last, 0));
    }
    w[6] = constant(0);
    w[7] = c_.plus(w[7], constant(static_cast<uint64_t>(rest ? kWords : count)));
    return {state_of(w), c_.concatenate(parts, 0)};
  }

 private:
  Composition& c_;
};

Status is_generator(const TypeArgs& args) {
  if (!type_equal(args.types[0], tensor_type({Dim(10)}, kWord)))
    return type_error(format("{} is no generator: ten uint64", type_str(args.types[0])),
                      "relay.random.threefry_key(seed)");
  return Ok{};
}
Result<int64_t> count_of(const Ints& shape) {
  TW_TRY_STATUS(fits_constant(shape));
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  if (count == 0) return type_error("no numbers are asked for");
  return count;
}

Result<Expr> expand_threefry_generate(const TypeArgs& args) {
  const Ints& shape = attrs_of<ThreefryGenerateAttrs>(args).out_shape;
  Composition c(args);
  TW_TRY_STATUS(is_generator(args));
  auto [state, words] = Generator(&c).numbers(c[0], TW_TRY(count_of(shape)));
  return c.result(c.tuple({state, c.reshape(words, shape)}));
}

// (left, right): two generators with different streams.
Result<Expr> expand_threefry_split(const TypeArgs& args) {
  Composition c(args);
  TW_TRY_STATUS(is_generator(args));
  Generator g(&c);
  const Words w = g.words_of(c[0]), hashed = g.hash(w, {w[4], w[5], w[6], w[7]}), bit = g.next_bit(w[8], w[9]);
  const Expr zero = g.constant(0), first = g.constant(uint64_t{1} << 63), second = g.constant(uint64_t{1} << 62);
  const Words fresh_left{hashed[0], hashed[1], hashed[2], hashed[3], zero, zero, zero, zero, second, zero};
  Words fresh_right = fresh_left, left = w, right = w;
  fresh_right[4] = first;
  left[8] = right[8] = bit[0];
  left[9] = right[9] = bit[1];
  right[4] = g.both(w[4], w[8]);
  right[5] = g.both(w[5], w[9]);
  const Expr none = g.no_bit_left(w);
  return c.result(
      c.tuple({g.state_of(g.chosen(none, fresh_left, left)), g.state_of(g.chosen(none, fresh_right, right))}));
}

// Uniform numbers in [0, 1): the top bits of a word (for float32, of its lower half) as a fraction.
Result<std::pair<Expr, Expr>> unit_numbers(const TypeArgs& args, Composition* c, const Ints& shape, DataType dtype) {
  TW_TRY_STATUS(is_generator(args));
  if (dtype != kFloat32 && dtype != kFloat64)
    return type_error(format("numbers are float32 or float64, not {}", dtype.str()));
  for (size_t i = 1; i < 3; ++i)
    if (args.tensor(i).dtype != dtype || !args.tensor(i).shape.empty())
      return type_error(format("operand {} is {}, not a scalar {}", i, type_str(args.types[i]), dtype.str()));
  auto [state, words] = Generator(c).numbers((*c)[0], TW_TRY(count_of(shape)));
  const bool narrow = dtype == kFloat32;
  const DataType bits = narrow ? kUInt32 : kUInt64;
  Expr fraction = c->call("right_shift", {c->cast(words, bits), c->number(narrow ? 9 : 12, bits)});
  return std::pair(state, c->reshape(c->times(c->cast(fraction, dtype), std::ldexp(1.0, narrow ? -23 : -52)), shape));
}
Result<Expr> expand_uniform(const TypeArgs& args) {
  const auto& a = attrs_of<UniformAttrs>(args);
  Composition c(args);
  auto [state, unit] = TW_TRY(unit_numbers(args, &c, a.out_shape, a.out_dtype));
  return c.result(c.tuple({state, c.plus(c.times(unit, c.minus(c[2], c[1])), c[1])}));
}
// Box-Muller: each normal number from two uniform ones.
Result<Expr> expand_normal(const TypeArgs& args) {
  const auto& a = attrs_of<NormalAttrs>(args);
  Composition c(args);
  Ints twice = a.out_shape;
  twice.insert(twice.begin(), 2);
  auto [state, numbers] = TW_TRY(unit_numbers(args, &c, twice, a.out_dtype));
  auto half = [&, unit = numbers](int64_t i) { return c.reshape(c.slice(unit, 0, i, i + 1), a.out_shape); };
  Expr radius = c.call("sqrt", {c.times(c.call("log", {c.minus(c.number(1, a.out_dtype), half(0))}), -2)});
  Expr wave = c.call("sin", {c.times(half(1), 2 * std::numbers::pi)});
  return c.result(c.tuple({state, c.plus(c.times(c.times(radius, wave), c[2]), c[1])}));
}

}  // namespace

std::vector<OpDef> composed_random_ops() {
  const ArgDoc key{"key", "a generator: ten uint64"};
  return {
      define_composed("random.threefry_generate", "Random words: (the generator afterwards, uint64).", {key},
                      OpPattern::kOpaque, expand_threefry_generate, make_default_attrs<ThreefryGenerateAttrs>),
      define_composed("random.threefry_split", "Two generators whose numbers differ: (left, right).", {key},
                      OpPattern::kOpaque, expand_threefry_split),
      define_composed("random.uniform", "Numbers in [low, high): (the generator afterwards, floats).",
                      {key, {"low", "a scalar of the result's dtype"}, {"high", "a scalar"}}, OpPattern::kOpaque,
                      expand_uniform, make_default_attrs<UniformAttrs>),
      define_composed("random.normal", "Normally distributed numbers: (the generator afterwards, floats).",
                      {key, {"mean", "a scalar of the result's dtype"}, {"scale", "a scalar"}}, OpPattern::kOpaque,
                      expand_normal, make_default_attrs<NormalAttrs>),
  };
}

}  // namespace tilewright::relay
