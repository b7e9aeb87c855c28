// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/format.h"
#include "codegen/source/c_kernel.h"
#include "codegen/source/c_printer.h"
#include "codegen/source/c_types.h"
#include "tir/passes/scalarize.h"
#include "tir/walk.h"

namespace tilewright::codegen {

using tir::as_const_int;
using tir::PrimExpr;
using tir::Stmt;
using tir::StmtKind;

void CPrinter::line(const std::string& text) {
  text_.append(static_cast<size_t>(2 * indent_), ' ');
  text_ += text;
  text_ += '\n';
}

void CPrinter::fail(std::string message) {
  if (!error_) error_ = Diagnostic(ErrorCode::kUnsupportedModel, std::move(message));
}

std::string CPrinter::type_of(DataType dtype) {
  if (narrow_ && dtype == kInt64) return "int32_t";
  if (vectors_ && dtype.lanes > 1 && c_type(dtype.element()) != nullptr)
    return dtype.is_bool() ? c_vector(kInt8.with_lanes(dtype.lanes)).name() : c_vector(dtype).name();
  if (const char* name = c_type(dtype)) return name;
  fail(format("C has no {} values", dtype.str()));
  return "int";
}

std::string CPrinter::fresh(const std::string& name) {
  const std::string base = c_identifier(name);
  std::string out = base;
  for (int i = 1; !taken_.insert(out).second; ++i) out = format("{}_{}", base, i);
  return out;
}

std::string CPrinter::declare(const tir::Buffer& buffer) { return buffers_[buffer.get()] = fresh(buffer->name); }

// A body that occurs twice reuses its variables' names, since the copies are in sibling scopes.
const std::string& CPrinter::name_of(const PrimExpr& var) {
  std::string& name = names_[var.get()];
  if (name.empty()) name = fresh(static_cast<const tir::VarNode&>(*var).name);
  return name;
}

void CPrinter::begin_statement(std::initializer_list<const PrimExpr*> roots) {
  uses_.clear(), memo_.clear(), memo_order_.clear(), index_memo_.clear(), sign_memo_.clear(), masks_.clear();
  made_.clear();
  std::unordered_set<const tir::ExprNode*> seen;
  for (const PrimExpr* root : roots) {
    if (!*root) continue;
    ++uses_[root->get()];
    tir::for_each_expr(*root, [&](const PrimExpr& e) {
      if (!seen.insert(e.get()).second) return;
      tir::for_each_child(e, [&](const PrimExpr& child) { ++uses_[child.get()]; });
    });
  }
}

void CPrinter::print_store(const tir::StoreNode& s) {
  begin_statement({&s.index, &s.value, &s.mask});
  used_.insert(s.buffer.get());
  if (s.buffer->scope == tir::Scope::kRegister) {
    const bool lanes_of_bool = s.value->dtype.is_bool() && s.value->dtype.lanes > 1;
    const std::string value = lanes_of_bool ? mask(s.value, 8) : code(s.value).text;
    return line(format("{} = {};", element_of(*s.buffer, s.index), value));
  }
  if (s.value->dtype.lanes > 1 || s.mask) return print_vector_store(s);
  const std::string place = code(s.index).text, value = code(s.value).text;
  line(format("{}[{}] = {};", buffers_[s.buffer.get()], place, value));
}

void CPrinter::print_call_extern(const tir::CallExternNode& s) {
  std::string types, values;
  for (const tir::ExternArgument& a : s.args) {
    begin_statement({&a.value});
    const DataType type = a.buffer ? a.buffer->dtype : a.value->dtype;
    const char* name = c_type(type.element());
    if (name == nullptr || type.lanes != 1 || (type.is_bool() && !a.buffer))
      return fail(format("{} takes a {}; cast it to a number of C", s.name, type.str()));
    types += format("{}{}{}", types.empty() ? "" : ", ", name, a.buffer ? " *" : "");
    if (a.buffer) used_.insert(a.buffer.get());
    const std::string text =
        a.buffer ? format("{} + {}", buffers_[a.buffer.get()], at(a.value, kSum)) : code(a.value).text;
    values += (values.empty() ? "" : ", ") + text;
  }
  called_[s.name] = format("extern int32_t {}({});\n", s.name, types.empty() ? "void" : types);
  line(format("(void){}({});", s.name, values));
}

// A function that is defined elsewhere.
CPrinter::Code CPrinter::call_extern(const tir::ExternNode& n) {
  std::string types, values;
  for (const PrimExpr& a : n.args) {
    const char* name = c_type(a->dtype);
    if (name == nullptr || a->dtype.lanes != 1 || a->dtype.is_bool()) {
      fail(format("{} takes a {}; cast it to a number of C", n.name, a->dtype.str()));
      return {"0", kAtom};
    }
    types += (types.empty() ? "" : ", ") + std::string(name);
    values += (values.empty() ? "" : ", ") + code(a).text;
  }
  const char* result = c_type(n.dtype);
  if (result == nullptr || n.dtype.lanes != 1) {
    fail(format("{} gives a {}, which C has no type for", n.name, n.dtype.str()));
    return {"0", kAtom};
  }
  called_[n.name] = format("extern {} {}({});\n", result, n.name, types.empty() ? "void" : types);
  return {format("{}({})", n.name, values), kAtom};
}

std::string CPrinter::called() const {
  std::string out;
  for (const auto& [name, declaration] : called_) out += declaration;
  return out;
}

void CPrinter::print_let(const tir::LetStmtNode& s) {
  begin_statement({&s.value});
  const bool lanes_of_bool = s.value->dtype.is_bool() && s.value->dtype.lanes > 1;
  const std::string value = lanes_of_bool ? mask(s.value, 8) : code(s.value).text;
  const bool index = is_index(s.value), positive = is_non_negative(s.value);
  index ? void(index_vars_.insert(s.var.get())) : void(index_vars_.erase(s.var.get()));
  positive ? void(non_negative_vars_.insert(s.var.get())) : void(non_negative_vars_.erase(s.var.get()));
  line(format("const {} {} = {};", type_of(s.var->dtype), name_of(s.var), value));
}

void CPrinter::print_for(const tir::ForNode& s) {
  begin_statement({&s.min, &s.extent});
  const auto first = as_const_int(s.min), count = as_const_int(s.extent);
  if (count && *count <= 0) return;
  const std::string from = code(s.min).text;
  std::string end = first && count ? c_integer(*first + *count, s.var->dtype)
                    : first == 0   ? at(s.extent, kSum)
                                   : at(s.min, kSum) + " + " + at(s.extent, kProduct);
  index_vars_.insert(s.var.get());
  is_non_negative(s.min) ? void(non_negative_vars_.insert(s.var.get())) : void(non_negative_vars_.erase(s.var.get()));
  const std::string name = name_of(s.var);
  if (!s.annotations.empty() && s.annotations.front().first == tir::kLanes) line("tw_lanes");
  line(format("for ({0} {1} = {2}; {1} < {3}; ++{1}) {{", type_of(s.var->dtype), name, from, end));
  ++indent_;
  print(s.body);
  --indent_;
  line("}");
}

void CPrinter::print_if(const tir::IfNode& s) {
  begin_statement({&s.condition});
  line(format("if ({}) {{", code(s.condition).text));
  ++indent_;
  print(s.then_case);
  --indent_;
  if (s.else_case) {
    line("} else {");
    ++indent_;
    print(s.else_case);
    --indent_;
  }
  line("}");
}

void CPrinter::print_while(const tir::WhileNode& s) {
  line("for (;;) {");
  ++indent_;
  begin_statement({&s.condition});
  line(format("if (!({})) break;", code(s.condition).text));
  print_in_scope(s.body);
  --indent_;
  line("}");
}

std::string CPrinter::element_of(const tir::BufferNode& buffer, const PrimExpr& index) {
  if (!vectors_ || arrays_.count(&buffer) != 0) return format("{}[{}]", buffers_[&buffer], code(index).text);
  return format("{}_{}", buffers_[&buffer], *as_const_int(index));
}

// Registers become variables, which compilers keep apart better than elements of an array.
void CPrinter::print_registers(const tir::AllocateNode& s) {
  const tir::BufferNode& buffer = *s.buffer;
  std::set<int64_t> elements, loaded;
  bool by_variable = false;
  auto look = [&](const tir::BufferNode* b, const PrimExpr& index, std::set<int64_t>* out) {
    const auto at = as_const_int(index);
    if (b == &buffer) at ? void(out->insert(*at)) : void(by_variable = true);
  };
  tir::for_each_stmt(s.body, [&](const Stmt& part) {
    if (part->kind != StmtKind::kStore) return;
    const auto& store = static_cast<const tir::StoreNode&>(*part);
    look(store.buffer.get(), store.index, &elements);
  });
  tir::for_each_expr(s.body, [&](const PrimExpr& e) {
    if (const auto* n = tir::as<tir::LoadNode>(e)) look(n->buffer.get(), n->index, &loaded);
  });
  elements.insert(loaded.begin(), loaded.end());
  auto taken = [&](const std::string& name) {
    return std::any_of(elements.begin(), elements.end(),
                       [&](int64_t i) { return taken_.count(format("{}_{}", name, i)) != 0; });
  };
  std::string name = fresh(buffer.name), list;
  while (taken(name)) name = fresh(buffer.name);
  buffers_[&buffer] = name;
  if (by_variable) {
    arrays_.insert(&buffer);
    return line(format("{} {}[{}];", type_of(buffer.dtype), name, std::max<int64_t>(1, buffer.size)));
  }
  for (const int64_t i : elements) {
    taken_.insert(format("{}_{}", name, i));
    list += format("{}{}_{}", list.empty() ? "" : ", ", name, i);
  }
  if (!list.empty()) line(format("{} {};", type_of(buffer.dtype), list));
  for (const int64_t i : elements)
    if (loaded.count(i) == 0) line(format("(void){}_{};", name, i));
}

void CPrinter::print_allocate(const tir::AllocateNode& s) {
  const tir::BufferNode& buffer = *s.buffer;
  if (vectors_ && buffer.scope == tir::Scope::kRegister) return print_registers(s);
  const std::string name = buffers_[&buffer] = fresh(buffer.name);
  line(format("{} {}[{}]{};", type_of(buffer.dtype.element()), name, std::max<int64_t>(1, buffer.size),
              vectors_ ? " __attribute__((aligned(64)))" : ""));
}

void CPrinter::print_prefetch(const tir::PrefetchNode& s) {
  if (!vectors_ || s.buffer->scope == tir::Scope::kRegister || s.index->dtype.lanes > 1) return;
  begin_statement({&s.index});
  used_.insert(s.buffer.get());
  line(format("__builtin_prefetch({}, 0, 3);", address(s.buffer.get(), s.index)));
}

// Whether a statement loads a vector into a register.
static bool loads_vector(const Stmt& stmt) {
  const auto* store = tir::as<tir::StoreNode>(stmt);
  if (store == nullptr || store->buffer->scope != tir::Scope::kRegister) return false;
  const auto* load = tir::as<tir::LoadNode>(store->value);
  return load != nullptr && load->dtype.lanes > 1 && load->buffer->scope != tir::Scope::kRegister;
}

// The steps of an unrolled tile begin with their loads, which GCC would move ahead of the products of the step before:
// then the sums have no registers.
void CPrinter::print_seq(const tir::SeqNode& s) {
  auto begins_step = [&](size_t i) {
    return i + 1 < s.stmts.size() && loads_vector(s.stmts[i]) && loads_vector(s.stmts[i + 1]) &&
           (i == 0 || !loads_vector(s.stmts[i - 1]));
  };
  int steps = 0;
  for (size_t i = 0; vectors_ && i < s.stmts.size(); ++i) steps += begins_step(i) ? 1 : 0;
  for (size_t i = 0; i < s.stmts.size(); ++i) {
    if (steps > 1 && begins_step(i)) line("tw_keep_order();");
    print_in_scope(s.stmts[i]);
  }
}

void CPrinter::print_in_scope(const Stmt& stmt) {
  const bool declares = stmt->kind == StmtKind::kLetStmt || stmt->kind == StmtKind::kAllocate;
  if (declares) line("{"), ++indent_;
  print(stmt);
  if (declares) --indent_, line("}");
}

// Chains of lets and allocations are iterated, not recursed into.
void CPrinter::print(const Stmt& stmt) {
  for (Stmt s = stmt; s && !error_;) {
    switch (s->kind) {
      case StmtKind::kFor:
        return print_for(static_cast<const tir::ForNode&>(*s));
      case StmtKind::kStore:
        return print_store(static_cast<const tir::StoreNode&>(*s));
      case StmtKind::kPrefetch:
        return print_prefetch(static_cast<const tir::PrefetchNode&>(*s));
      case StmtKind::kCallExtern:
        return print_call_extern(static_cast<const tir::CallExternNode&>(*s));
      case StmtKind::kWrite:
      case StmtKind::kBlock:
        return fail("loops over memory without a place are left in C code");
      case StmtKind::kWhile:
        return print_while(static_cast<const tir::WhileNode&>(*s));
      case StmtKind::kIf:
        return print_if(static_cast<const tir::IfNode&>(*s));
      case StmtKind::kSeq:
        return print_seq(static_cast<const tir::SeqNode&>(*s));
      case StmtKind::kLetStmt:
        print_let(static_cast<const tir::LetStmtNode&>(*s));
        s = static_cast<const tir::LetStmtNode&>(*s).body;
        break;
      case StmtKind::kAllocate:
        print_allocate(static_cast<const tir::AllocateNode&>(*s));
        s = static_cast<const tir::AllocateNode&>(*s).body;
        break;
    }
  }
}

// A prefix that no function of the C library has.
std::string c_kernel_name(const std::string& symbol) {
  return "kernel_" + (symbol.rfind("tw_", 0) == 0 ? symbol.substr(3) : symbol);
}

namespace {

// Whether all 64-bit integers are indices: no buffer holds such integers, and none is computed from a buffer's content.
bool only_indices_are_wide(const tir::PrimFunc& function) {
  bool good = true;
  auto is_wide = [](DataType t) { return t.is_integral() && t.bits == 64; };
  auto holds = [&](const tir::Buffer& b) {
    good &= !is_wide(b->dtype.element()) && b->size < (int64_t{1} << 31) / static_cast<int64_t>(b->dtype.bytes());
  };
  for (const tir::Buffer& b : function.params) holds(b);
  tir::for_each_stmt(function.body, [&](const tir::Stmt& s) {
    if (s->kind == StmtKind::kAllocate) holds(static_cast<const tir::AllocateNode&>(*s).buffer);
  });
  tir::for_each_expr(function.body, [&](const PrimExpr& e) {
    if (e->kind == tir::ExprKind::kCast || e->kind == tir::ExprKind::kReinterpret) good &= !is_wide(e->dtype.element());
    good &= !(e->dtype.is_uint() && e->dtype.bits == 64);
  });
  return good;
}

}  // namespace

Result<std::string> c_kernel(const tir::PrimFunc& function, bool small, bool vectors) {
  CPrinter printer(small && only_indices_are_wide(function), vectors);
  std::string head = format("static void {}(", c_kernel_name(function.name));
  std::vector<std::string> names;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const tir::Buffer& b = function.params[i];
    const char* type = c_type(b->dtype.element());
    if (type == nullptr)
      return Diagnostic(ErrorCode::kUnsupportedModel, format("C has no {} values", b->dtype.str()),
                        format("kernel {}", function.name));
    names.push_back(printer.declare(b));
    head += format("{}{}{} *@restrict {}", i == 0 ? "" : ", ", b->read_only ? "const " : "", type, names.back());
  }
  if (function.params.empty()) head += "void";
  printer.print(function.body);
  if (printer.error()) return Diagnostic(*printer.error()).at(format("kernel {}", function.name));
  std::string unused;
  for (size_t i = 0; i < function.params.size(); ++i)
    if (!printer.uses(function.params[i].get())) unused += format("  (void){};\n", names[i]);
  return printer.called() + head + ") {\n" + unused + printer.text() + "}\n";
}

}  // namespace tilewright::codegen
