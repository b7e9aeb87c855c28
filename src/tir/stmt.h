// SPDX-License-Identifier: Apache-2.0
// Statements and functions of the loop IR.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tir/expr.h"

namespace tilewright::tir {

// Write and Block belong to loops over multi-dimensional memory (tir/block.h); kernels contain none.
#define TW_TIR_STMTS(X) \
  X(For) X(Store) X(Prefetch) X(LetStmt) X(If) X(While) X(Seq) X(Allocate) X(CallExtern) X(Write) X(Block)
enum class StmtKind : uint8_t {
#define TW_KIND(name) k##name,
  TW_TIR_STMTS(TW_KIND)
#undef TW_KIND
};
class StmtNode : public Node {
 public:
  explicit StmtNode(StmtKind k) : kind(k) {}
  const StmtKind kind;
};
using Stmt = Ref<StmtNode>;

// Loop annotations that the passes vectorize, unroll and divide_parallel replace before code generation.
enum class ForKind : uint8_t { kSerial, kVectorized, kUnrolled, kParallel };

// A script's annotations of a loop or block: name and a number or quoted text. Kernel passes ignore them.
using Annotations = std::vector<std::pair<std::string, std::string>>;

class ForNode : public StmtNode {  // for var in [min, min + extent)
 public:
  ForNode(PrimExpr v, PrimExpr m, PrimExpr e, ForKind k, Stmt b, Annotations a = {})
      : StmtNode(StmtKind::kFor),
        var(std::move(v)),
        min(std::move(m)),
        extent(std::move(e)),
        for_kind(k),
        body(std::move(b)),
        annotations(std::move(a)) {}
  const PrimExpr var, min, extent;
  const ForKind for_kind;
  const Stmt body;
  const Annotations annotations;
};
class StoreNode : public StmtNode {  // buffer[index] = value; index and mask as in Load
 public:
  StoreNode(Buffer b, PrimExpr i, PrimExpr v, PrimExpr m)
      : StmtNode(StmtKind::kStore),
        buffer(std::move(b)),
        index(std::move(i)),
        value(std::move(v)),
        mask(std::move(m)) {}
  const Buffer buffer;
  const PrimExpr index, value, mask;
};
// Prefetches buffer[index]. It does not affect values, and the index may be out of bounds: streams are prefetched at a
// fixed distance.
class PrefetchNode : public StmtNode {
 public:
  PrefetchNode(Buffer b, PrimExpr i) : StmtNode(StmtKind::kPrefetch), buffer(std::move(b)), index(std::move(i)) {}
  const Buffer buffer;
  const PrimExpr index;
};
class LetStmtNode : public StmtNode {
 public:
  LetStmtNode(PrimExpr v, PrimExpr x, Stmt b)
      : StmtNode(StmtKind::kLetStmt), var(std::move(v)), value(std::move(x)), body(std::move(b)) {}
  const PrimExpr var, value;
  const Stmt body;
};
class IfNode : public StmtNode {
 public:
  IfNode(PrimExpr c, Stmt t, Stmt e)
      : StmtNode(StmtKind::kIf), condition(std::move(c)), then_case(std::move(t)), else_case(std::move(e)) {}
  const PrimExpr condition;
  const Stmt then_case, else_case;  // else_case may be null
};
class WhileNode : public StmtNode {  // the condition is evaluated before each iteration
 public:
  WhileNode(PrimExpr c, Stmt b) : StmtNode(StmtKind::kWhile), condition(std::move(c)), body(std::move(b)) {}
  const PrimExpr condition;
  const Stmt body;
};
class SeqNode : public StmtNode {
 public:
  explicit SeqNode(std::vector<Stmt> s) : StmtNode(StmtKind::kSeq), stmts(std::move(s)) {}
  const std::vector<Stmt> stmts;
};
class AllocateNode : public StmtNode {  // a kStack or kRegister buffer that lives in body; initially undefined
 public:
  AllocateNode(Buffer b, Stmt s) : StmtNode(StmtKind::kAllocate), buffer(std::move(b)), body(std::move(s)) {}
  const Buffer buffer;
  const Stmt body;
};

// A call of a C function: scalars by value, memory by an element's address. Its result is ignored. `packed`: a runtime
// function that takes whole tensors; kernels contain none.
struct ExternArgument {
  PrimExpr value;  // a scalar; (with a buffer) an index into it; or (address) a Read of multi-dimensional memory
  Buffer buffer;
  bool address = false;
};
class CallExternNode : public StmtNode {
 public:
  CallExternNode(std::string n, std::vector<ExternArgument> a, bool p)
      : StmtNode(StmtKind::kCallExtern), name(std::move(n)), args(std::move(a)), packed(p) {}
  const std::string name;
  const std::vector<ExternArgument> args;
  const bool packed;
};
// target[indices] = value for multi-dimensional memory: the counterpart of Read.
class WriteNode : public StmtNode {
 public:
  WriteNode(Ref<Node> t, std::string n, std::vector<PrimExpr> i, PrimExpr v)
      : StmtNode(StmtKind::kWrite),
        target(std::move(t)),
        name(std::move(n)),
        indices(std::move(i)),
        value(std::move(v)) {}
  const Ref<Node> target;
  const std::string name;
  const std::vector<PrimExpr> indices;
  const PrimExpr value;
};
// A block's axis: its variable, domain, and value at the block's position.
struct BlockAxis {
  PrimExpr var, min, extent;
  bool reduces;
  PrimExpr value;
};
// One instance of a computation (te/block_schedule.h): `body` if `predicate` (may be null) holds, preceded by `init`
// (may be null) where all reduction axes are at their start.
class BlockNode : public StmtNode {
 public:
  BlockNode(std::string n, std::vector<BlockAxis> a, PrimExpr p, Stmt i, Stmt b, std::vector<Ref<Node>> m,
            Annotations t = {})
      : StmtNode(StmtKind::kBlock),
        name(std::move(n)),
        axes(std::move(a)),
        predicate(std::move(p)),
        init(std::move(i)),
        body(std::move(b)),
        memory(std::move(m)),
        annotations(std::move(t)) {}
  const std::string name;
  const std::vector<BlockAxis> axes;
  const PrimExpr predicate;
  const Stmt init, body;
  const std::vector<Ref<Node>> memory;  // arrays allocated by the block (tir/block.h)
  const Annotations annotations;
};

template <class T>
const T* as(const Stmt& s) {
  return dynamic_cast<const T*>(s.get());
}
Stmt make_for(PrimExpr var, PrimExpr min, PrimExpr extent, Stmt body, ForKind kind = ForKind::kSerial,
              Annotations annotations = {});
Stmt call_extern(std::string name, std::vector<ExternArgument> args, bool packed = false);
Stmt write(Ref<Node> target, std::string name, std::vector<PrimExpr> indices, PrimExpr value);
Stmt store(Buffer buffer, PrimExpr index, PrimExpr value, PrimExpr mask = {});
Stmt prefetch(Buffer buffer, PrimExpr index);
Stmt let_stmt(PrimExpr var, PrimExpr value, Stmt body);
Stmt make_if(PrimExpr condition, Stmt then_case, Stmt else_case = {});
Stmt make_while(PrimExpr condition, Stmt body);
Stmt seq(std::vector<Stmt> stmts);  // flattens nested sequences
Stmt allocate(Buffer buffer, Stmt body);

// A kernel. The machine signature is uniform: void name(void* const* buffers, int64_t tid, int64_t nthreads), with
// buffers in the order of `params`; it computes the share of thread `tid` (static partition). tid and nthreads are
// int64 variables.
struct PrimFunc {
  std::string name;
  std::vector<Buffer> params;
  PrimExpr tid, nthreads;  // usable in the body; null for a kernel that runs entirely on thread 0
  Stmt body;
};

}  // namespace tilewright::tir
