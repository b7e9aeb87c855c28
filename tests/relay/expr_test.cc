// SPDX-License-Identifier: Apache-2.0
#include "relay/expr.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

Type f32(std::vector<int64_t> shape) { return tensor_type(to_shape(shape), kFloat32); }

// Runs `body` on a thread with a 1 MiB stack.
void on_small_stack(const std::function<void()>& body) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  ASSERT_EQ(pthread_attr_setstacksize(&attr, 1 << 20), 0);
  pthread_t thread;
  auto run = [](void* p) -> void* {
    (*static_cast<const std::function<void()>*>(p))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attr, run, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attr);
}

Expr chain(int n) {
  Expr x = make_var("x", f32({4})), e = x;
  for (int i = 0; i < n; ++i) e = call(i % 2 ? "nn.relu" : "negative", {e});
  return make_function({x}, e);
}

TEST(Expr, HundredThousandOpsOnASmallStack) {
  on_small_stack([] {
    constexpr int kOps = 100000;
    Expr a = chain(kOps), b = chain(kOps);
    EXPECT_EQ(post_order(a).size(), kOps + 2u);
    EXPECT_TRUE(structural_equal(a, b));
    EXPECT_FALSE(structural_equal(a, chain(kOps - 1)));
    Expr c = rewrite_graph(a, [](const Expr&, const Expr& now) {
      return is_call_to(now, "negative") ? call("abs", as<CallNode>(now)->args) : now;
    });
    EXPECT_EQ(as<FunctionNode>(c)->params[0], as<FunctionNode>(a)->params[0]);
    EXPECT_FALSE(structural_equal(a, c));
  });
}

TEST(Expr, RewriteKeepsIdentityOfWhatDoesNotChange) {
  Expr x = make_var("x", f32({2, 3})), y = make_var("y", f32({3}));
  Expr left = call("exp", {x}), sum = call("add", {left, call("log", {y})});
  EXPECT_EQ(rewrite_graph(sum, [](const Expr&, const Expr& now) { return now; }), sum);
  Expr now = rewrite_graph(
      sum, [](const Expr&, const Expr& e) { return is_call_to(e, "log") ? as<CallNode>(e)->args[0] : e; });
  EXPECT_EQ(as<CallNode>(now)->args[0], left);
  EXPECT_EQ(as<CallNode>(now)->args[1], y);
}

TEST(Expr, PostOrderVisitsSharedNodesOnceOperandsFirst) {
  Expr x = make_var("x", f32({2}));
  Expr a = call("exp", {x}), b = call("add", {a, a});
  auto order = post_order(make_tuple({b, a}));
  ASSERT_EQ(order.size(), 4u);
  EXPECT_EQ(order[0], x);
  EXPECT_EQ(order[1], a);
  EXPECT_EQ(order[2], b);
}

TEST(Expr, FunctionsAreLeavesUnlessEntered) {
  Expr p = make_var("p", f32({2})), x = make_var("x", f32({2}));
  Expr group = make_function({p}, call("exp", {p}), {{"Primitive", int64_t{1}}});
  EXPECT_TRUE(as<FunctionNode>(group)->primitive());
  Expr e = call_function(group, {x});
  EXPECT_TRUE(type_equal(e->type, f32({2})));
  EXPECT_EQ(post_order(e).size(), 3u);
  EXPECT_EQ(post_order(e, true).size(), 5u);
  auto exp_to_log = [](const Expr&, const Expr& now) {
    return is_call_to(now, "exp") ? call("log", as<CallNode>(now)->args) : now;
  };
  EXPECT_EQ(rewrite_graph(e, exp_to_log), e);
  Expr changed = rewrite_graph(e, exp_to_log, true);
  EXPECT_TRUE(is_call_to(as<FunctionNode>(as<CallNode>(changed)->callee)->body, "log"));
  EXPECT_TRUE(as<FunctionNode>(as<CallNode>(changed)->callee)->primitive());
}

TEST(Expr, StructuralEqualityIsUpToVariableNames) {
  auto make = [](const char* name, bool swap, DataType t) {
    Expr a = make_var(name, tensor_type({Dim::any()}, t)), b = make_var("b", tensor_type({Dim::any()}, t));
    return make_function({a, b}, call("divide", swap ? std::vector<Expr>{b, a} : std::vector<Expr>{a, b}));
  };
  EXPECT_TRUE(structural_equal(make("x", false, kFloat32), make("y", false, kFloat32)));
  EXPECT_FALSE(structural_equal(make("x", false, kFloat32), make("x", true, kFloat32)));
  EXPECT_FALSE(structural_equal(make("x", false, kFloat32), make("x", false, kFloat64)));
  EXPECT_TRUE(structural_equal(make_scalar(2), make_scalar(2)));
  EXPECT_FALSE(structural_equal(make_scalar(2), make_scalar(3)));
}

TEST(Expr, SubstituteReplacesVariables) {
  Expr x = make_var("x", f32({2})), y = make_var("y", f32({5}));
  Expr e = substitute(call("exp", {x}), {{as<VarNode>(x), y}});
  EXPECT_TRUE(type_equal(e->type, f32({5})));
}

TEST(Op, TableIsSortedAndComplete) {
  const OpDef* before = nullptr;
  for (const OpDef& op : all_ops()) {
    if (before) {
      EXPECT_LT(std::string(before->name), op.name);
    }
    EXPECT_TRUE((op.expand || (op.infer_type && op.evaluate)) && *op.doc && (op.num_inputs == 0 || !op.args.empty()))
        << op.name;
    EXPECT_EQ(find_op(op.name), &op);
    before = &op;
  }
  EXPECT_EQ(find_op("nn.no_such"), nullptr);
}

std::string error_of(std::string_view op, std::vector<Expr> args, AttrsRef attrs = {}) {
  auto r = try_call(op, std::move(args), std::move(attrs));
  return r.ok() ? "" : r.error().where + ": " + r.error().message;
}

TEST(Op, WrongCallsSayWhatAndWhere) {
  Expr a = make_var("a", f32({2, 3})), b = make_var("b", f32({4})), i = make_var("i", tensor_type({Dim(3)}, kInt32));
  EXPECT_EQ(error_of("add", {a, b}), "add: shapes (2, 3) and (4,) do not broadcast");
  EXPECT_EQ(error_of("add", {a, i}), "add: operands are Tensor[(2, 3), float32] and Tensor[(3), int32]");
  EXPECT_EQ(error_of("add", {a}), "add: it takes 2 operands, not 1");
  EXPECT_EQ(error_of("add", {a, make_tuple({a})}), "add: operand 1 is (Tensor[(2, 3), float32],), not a tensor");
  EXPECT_EQ(error_of("exp", {i}), "exp: it needs a floating dtype, not int32");
  EXPECT_EQ(error_of("nn.bias_add", {a, b}), "nn.bias_add: the bias is (4,), but axis 1 of the data (2, 3) has 3");
  EXPECT_EQ(error_of("exp", {a}, AttrsRef(new ClipAttrs())),
            "exp: it has no attributes, but got relay.attrs.ClipAttrs");
  EXPECT_EQ(error_of("clip", {a}, AttrsRef(new CastAttrs())),
            "clip: its attributes are relay.attrs.ClipAttrs, not relay.attrs.CastAttrs");
  EXPECT_EQ(try_call("frobnicate", {a}).error().code, ErrorCode::kUnknownOp);
}

TEST(Op, SymbolicDimsBroadcast) {
  Dim n = Dim::symbol("N"), m = Dim::symbol("M");
  auto var = [](Shape s) { return make_var("v", tensor_type(std::move(s), kFloat32)); };
  auto shape_of = [](const Expr& e) { return shape_str(as_tensor(e->type)->shape); };
  EXPECT_EQ(shape_of(call("add", {var({n, 3}), var({1, 3})})), "(N, 3)");
  EXPECT_EQ(shape_of(call("add", {var({n, 3}), var({n, 1})})), "(N, 3)");
  EXPECT_EQ(shape_of(call("add", {var({n}), var({8})})), "(8,)");
  EXPECT_EQ(shape_of(call("add", {var({n}), var({m})})), "(max(N, M),)");
}

TEST(Op, IncompleteArgumentsGiveIncompleteCalls) {
  Expr x = make_var("x", incomplete_type());
  EXPECT_EQ(call("exp", {x})->type->kind, TypeKind::kIncomplete);
}

}  // namespace
}  // namespace tilewright::relay
