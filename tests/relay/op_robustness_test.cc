// SPDX-License-Identifier: Apache-2.0
// No attributes or operands, however odd, may trip an internal check or crash: every operator under thousands of random
// calls, each of which must give a value of its inferred type or a Diagnostic.
#include <random>

#include "relay/op_testing.h"
#include "relay/ops/reference.h"

namespace tilewright::relay {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<int64_t>(choices.size())));
  }
  // Mostly small, sometimes at the edges of the type.
  int64_t number() {
    if (below(12) == 0)
      return pick<int64_t>(
          {INT64_MIN, INT64_MAX, INT64_MIN + 1, -(int64_t{1} << 40), int64_t{1} << 40, int64_t{1} << 31, 4096});
    return below(9) - 3;
  }
  double real() {
    if (below(12) == 0) return pick<double>({NAN, HUGE_VAL, -HUGE_VAL, 1e300, -1e300, 0, 1e-300});
    return static_cast<double>(below(9) - 3) / 2;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> out(static_cast<size_t>(below(6)));
    for (int64_t& x : out) x = number();
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

// Replaces some of the fields.
class Mutator : public AttrVisitor {
 public:
  explicit Mutator(Random* random) : r_(*random) {}
  void visit(const char*, bool* v) override {
    maybe([&] { *v = r_.below(2); });
  }
  void visit(const char*, int64_t* v) override {
    maybe([&] { *v = r_.number(); });
  }
  void visit(const char*, double* v) override {
    maybe([&] { *v = r_.real(); });
  }
  void visit(const char*, std::string* v) override {
    maybe([&] {
      *v = r_.pick<const char*>({"",
                                 "NCHW",
                                 "NHWC",
                                 "NCHW4c",
                                 "NCHW16c",
                                 "OIHW4i4o",
                                 "HWIO",
                                 "NC4n",
                                 "NCW",
                                 "16c",
                                 "N0c",
                                 "abc",
                                 "float16",
                                 "int8",
                                 "reflect",
                                 "edge",
                                 "wrap",
                                 "linear",
                                 "cubic",
                                 "nearest_neighbor",
                                 "bilinear",
                                 "align_corners",
                                 "tf_crop_and_resize",
                                 "add",
                                 "max",
                                 "size",
                                 "end",
                                 "fast",
                                 "both",
                                 "values",
                                 "bidirectional",
                                 "reverse",
                                 "ij,jk->ik",
                                 "...i->...",
                                 "ii",
                                 "->",
                                 "ij->ji",
                                 "xy",
                                 "CDR"});
    });
  }
  void visit(const char*, DataType* v) override {
    maybe([&] {
      *v = r_.pick<DataType>({kFloat32, kFloat16, kBFloat16, kFloat64, kInt8, kUInt64, kBool, kInt64, kString});
    });
  }
  void visit(const char*, std::optional<int64_t>* v) override {
    maybe([&] { *v = r_.number(); });
  }
  void visit(const char*, std::vector<int64_t>* v) override {
    maybe([&] { *v = r_.numbers(); });
  }
  void visit(const char*, std::optional<std::vector<int64_t>>* v) override {
    maybe([&] { *v = r_.numbers(); });
  }
  void visit(const char*, std::vector<double>* v) override {
    maybe([&] {
      v->clear();
      for (int64_t i = r_.below(5); i > 0; --i) v->push_back(r_.real());
    });
  }
  void visit(const char*, std::vector<std::string>* v) override {
    maybe([&] { v->assign(static_cast<size_t>(r_.below(4)), r_.pick<const char*>({"Relu", "Tanh", "Nothing"})); });
  }
  void visit(const char*, std::vector<std::vector<int64_t>>* v) override {
    maybe([&] {
      v->clear();
      for (int64_t i = r_.below(5); i > 0; --i)
        v->push_back(r_.below(5) ? std::vector<int64_t>{r_.number(), r_.number()} : r_.numbers());
    });
  }

 private:
  template <class F>
  void maybe(F&& change) {
    if (r_.below(3) == 0) change();
  }
  Random& r_;
};

Value random_value(Random* r, const std::vector<int64_t>& like) {
  std::vector<int64_t> shape = like;
  if (r->below(3) == 0) {
    shape.clear();
    for (int64_t i = r->below(6); i > 0; --i) shape.push_back(r->pick<int64_t>({0, 1, 2, 3, 4, 5}));
  }
  Value v = make_value(r->pick<DataType>({kFloat32, kFloat32, kFloat32, kFloat16, kInt64, kInt64, kInt32, kUInt8,
                                          kUInt64, kBool, kString}),
                       shape);
  for (double& x : v.f) x = r->real();
  for (int64_t& x : v.i) x = wrap_int(v.dtype, r->number());
  return v;
}

bool matches(const Type& type, const Value& v) {
  const auto* t = as_tensor(type);
  if (!t || t->dtype != v.dtype || t->shape.size() != v.shape.size()) return false;
  for (size_t k = 0; k < v.shape.size(); ++k)
    if (t->shape[k].is_const() && t->shape[k].value() != v.shape[k]) return false;
  const size_t n = static_cast<size_t>(v.size());
  return v.dtype.is_string() ? v.s.size() == n
         : v.is_float()      ? v.f.size() == n && (v.bound.empty() || v.bound.size() == n)
                             : v.i.size() == n;
}

TEST(OpRobustness, RandomCallsGiveValuesOrDiagnostics) {
  Random r(2026);
  int evaluated = 0;
  for (const OpDef& op : all_ops()) {
    int worked = 0;
    for (int round = 0; round < 800; ++round) {
      SCOPED_TRACE(std::string(op.name) + " round " + std::to_string(round));
      std::vector<int64_t> like;
      for (int64_t i = round % 2 ? 4 : r.below(5); i > 0; --i) like.push_back(1 + r.below(5));
      const int64_t count = op.num_inputs >= 0 ? op.num_inputs : 1 + r.below(7);
      std::vector<Expr> args;
      Environment env;
      for (int64_t i = 0; i < count; ++i) {
        Value v = random_value(&r, like);
        Expr e = r.below(2) ? make_constant(to_tensor(v)) : make_var("x", tensor_type(to_shape(v.shape), v.dtype));
        if (e->kind == ExprKind::kVar) env[e.get()] = {v};
        args.push_back(e);
      }
      if (op.num_inputs < 0 && r.below(2)) args = {make_tuple(args)};
      AttrsRef attrs = op.make_attrs ? op.make_attrs() : AttrsRef();
      Mutator mutator(&r);
      if (attrs && round > 20) const_cast<AttrsNode*>(attrs.get())->visit(mutator);
      try {
        auto call = try_call(op.name, args, attrs);
        if (!call.ok()) {
          ASSERT_FALSE(call.error().message.empty());
          continue;
        }
        InterpretOptions options;
        options.max_elements = 1 << 16;
        auto values = evaluate(*call, env, options);
        if (!values.ok()) continue;
        ++worked;
        std::vector<Type> types =
            as_tuple((*call)->type) ? as_tuple((*call)->type)->fields : std::vector<Type>{(*call)->type};
        ASSERT_EQ(types.size(), values->size());
        for (size_t i = 0; i < types.size(); ++i)
          ASSERT_TRUE(as_data(types[i]) || matches(types[i], (*values)[i]))
              << type_str(types[i]) << " " << attrs_str(attrs);
      } catch (const std::exception& e) {
        FAIL() << e.what() << " " << attrs_str(attrs);
      }
    }
    evaluated += worked;
  }
  EXPECT_GT(evaluated, 2000) << "the random calls must not all be refused";
}

}  // namespace
}  // namespace tilewright::relay
