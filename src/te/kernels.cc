// SPDX-License-Identifier: Apache-2.0
#include "te/kernels.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/format.h"
#include "base/formats/function_table.h"
#include "tir/walk.h"

namespace tilewright::te {

using tir::PrimExpr;
using tir::Stmt;

std::optional<Diagnostic> check_scalar(const PrimExpr& var) {
  const DataType t = var->dtype;
  if (t.lanes == 1 && ((t.is_int() && t.bits >= 32) || t == kFloat32 || t == kFloat64)) return std::nullopt;
  if (t.code == TypeCode::kHandle)
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("nothing says what memory '{}' is", static_cast<const tir::VarNode&>(*var).name), {},
                      "give it a buffer (T.match_buffer); or call a function of the module with it (T.call_extern)");
  return Diagnostic(ErrorCode::kInvalidArgument,
                    format("the variable '{}' of {} is no size", static_cast<const tir::VarNode&>(*var).name, t.str()),
                    {}, "use int32, int64, float32 or float64 variables, and a tensor of one element for other values");
}

PrimExpr scalar_value(const PrimExpr& var) {
  return tir::make_var(static_cast<const tir::VarNode&>(*var).name, var->dtype.is_float() ? var->dtype : kInt64);
}

std::string kernel_name(const std::string& function, const Lowered& out) {
  return out.kernels.empty() ? function : format("{}_{}", function, out.kernels.size());
}

namespace {

// A call of a runtime function with its tensors' memory.
Result<Lowered::Call> runtime_call(const tir::CallExternNode& n, Flatten& flatten, const std::string& function,
                                   const std::vector<tir::Buffer>& arguments, const Lowered& out) {
  Lowered::Call call{out.kernels.size(), n.name, {}};
  for (const tir::ExternArgument& a : n.args) {
    Lowered::Call::Value& v = call.args.emplace_back();
    if (!a.address) {
      v.number = a.value->dtype.is_float() ? a.value : flatten.index(a.value);
      continue;
    }
    const auto& read = static_cast<const tir::ReadNode&>(*a.value);
    const tir::ArrayNode* array = tir::array_of(read.source);
    const Placed* at = array ? flatten.placed(array) : nullptr;
    const bool whole = at && tir::as_const_int(at->offset) == 0;
    for (const PrimExpr& i : read.indices)
      if (whole && tir::as_const_int(i) != 0) at = nullptr;
    if (!at || !whole)
      return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' is given a part of '{}'", n.name, read.name),
                        function, "give functions of the runtime whole buffers");
    auto place = std::find(arguments.begin(), arguments.end(), at->buffer);
    v.memory = static_cast<size_t>(place - arguments.begin());
    if (place == arguments.end()) {
      auto w = std::find_if(out.workspaces.begin(), out.workspaces.end(),
                            [&](const Lowered::Workspace& space) { return space.buffer == at->buffer; });
      v.memory += static_cast<size_t>(w - out.workspaces.begin());
    }
    v.dtype = array->dtype;
    for (const PrimExpr& d : array->shape) v.shape.push_back(flatten.index(d));
  }
  return call;
}

// Whether all accesses to the array are in one parallel loop: iterations then do not share content, and each thread
// needs its own copy.
bool in_one_parallel_loop(const Stmt& s, const tir::ArrayNode* array) {
  auto uses = [&](const Stmt& part) {
    bool found = false;
    tir::for_each_stmt(part, [&](const Stmt& n) {
      const auto* w = tir::as<tir::WriteNode>(n);
      found = found || (w && w->target.get() == array);
    });
    tir::for_each_expr(part, [&](const PrimExpr& e) {
      const auto* r = tir::as<tir::ReadNode>(e);
      found = found || (r && r->source.get() == array);
    });
    return found;
  };
  Stmt at = s;
  while (true) {
    if (const auto* loop = tir::as<tir::ForNode>(at); loop && loop->for_kind == tir::ForKind::kParallel) return true;
    std::vector<Stmt> users;
    tir::for_each_child(at, [&](const Stmt& child) {
      if (uses(child)) users.push_back(child);
    });
    if (users.size() != 1) return false;
    at = users[0];
  }
}

}  // namespace

Status add_statements(const Stmt& body, Flatten& flatten, const std::string& name,
                      const std::vector<tir::Buffer>& arguments, Lowered* out) {
  if (const auto* block = tir::as<tir::BlockNode>(body); block && block->axes.empty() && !block->predicate) {
    for (const Ref<Node>& m : block->memory) {
      const tir::Array array(static_cast<const tir::ArrayNode*>(m.get()));
      if (flatten.placed(array.get())) continue;
      std::vector<PrimExpr> dims;
      for (const PrimExpr& d : array->shape) dims.push_back(flatten.index(d));
      PrimExpr elements;
      std::vector<PrimExpr> strides = compact_strides(dims, Scopes(), &elements);
      const auto known = tir::as_const_int(elements);
      tir::Buffer buffer = tir::make_buffer(array->name, array->dtype.element(), known ? *known : tir::kUnknownSize);
      out->workspaces.push_back({buffer, elements, in_one_parallel_loop(block->body, array.get())});
      flatten.place(array, {std::move(buffer), std::move(strides), tir::make_int(0)});
    }
    if (block->init) TW_TRY_STATUS(add_statements(block->init, flatten, name, arguments, out));
    return add_statements(block->body, flatten, name, arguments, out);
  }
  if (const auto* seq = tir::as<tir::SeqNode>(body)) {
    for (const Stmt& part : seq->stmts) TW_TRY_STATUS(add_statements(part, flatten, name, arguments, out));
    return Ok{};
  }
  if (const auto* call = tir::as<tir::CallExternNode>(body); call && call->packed) {
    out->calls.push_back(TW_TRY(runtime_call(*call, flatten, format("function {}", name), arguments, *out)));
    return Ok{};
  }
  tir::PrimFunc kernel;
  kernel.name = kernel_name(name, *out);
  kernel.body = TW_TRY(flatten.run(body));
  out->kernels.push_back(std::move(kernel));
  return Ok{};
}

void finish_parameters(const std::vector<tir::Buffer>& arguments, Lowered* out) {
  std::unordered_set<const tir::BufferNode*> written;
  for (const tir::PrimFunc& k : out->kernels)
    tir::for_each_stmt(k.body, [&](const Stmt& st) {
      if (auto* store = tir::as<tir::StoreNode>(st)) written.insert(store->buffer.get());
      if (auto* call = tir::as<tir::CallExternNode>(st))
        for (const tir::ExternArgument& a : call->args) written.insert(a.buffer.get());
    });
  std::map<const tir::BufferNode*, tir::Buffer> read_only;
  std::vector<tir::Buffer> params;
  tir::Buffer sizes;
  if (!out->sizes.empty()) {
    sizes = tir::make_buffer("sizes", kInt64, static_cast<int64_t>(out->sizes.size()), tir::Scope::kGlobal, 0, true);
    params.push_back(sizes);
  }
  for (const tir::Buffer& b : arguments) {
    if (!written.count(b.get()))
      read_only[b.get()] = tir::make_buffer(b->name, b->dtype, b->size, b->scope, b->alignment, true);
    params.push_back(written.count(b.get()) ? b : read_only[b.get()]);
  }
  for (const Lowered::Workspace& w : out->workspaces) params.push_back(w.buffer);
  for (tir::PrimFunc& k : out->kernels) {
    k.body = tir::mutate(k.body, [&](const PrimExpr& e) -> PrimExpr {
      auto* load = tir::as<tir::LoadNode>(e);
      auto found = load ? read_only.find(load->buffer.get()) : read_only.end();
      return found == read_only.end() ? e : tir::load(found->second, load->index, load->mask);
    });
    for (size_t i = out->sizes.size(); i-- > 0;) {
      const PrimExpr given = tir::load(sizes, tir::make_int(static_cast<int64_t>(i)));
      const DataType dtype = out->size_values[i]->dtype;
      k.body = tir::let_stmt(out->size_values[i],
                             dtype.is_float() ? tir::cast(dtype, tir::reinterpret(kFloat64, given))
                             : i < out->numbers.size() && out->numbers[i]
                                 ? tir::cast(kInt64, tir::cast(out->sizes[i]->dtype, given))
                                 : tir::min(tir::max(given, tir::make_int(0)), tir::make_int(plan::kMaxFunctionSize)),
                             k.body);
    }
    k.params = params;
  }
}

}  // namespace tilewright::te
