// SPDX-License-Identifier: Apache-2.0
// Explicit memory: storage, tensors within it, kernels that write them, and deallocation. Normally the compiler plans
// memory itself; ManifestAlloc and ManifestLifetimes make such programs, and ElideMemory reverses them.
#include "relay/ops/program/memory.h"

#include "relay/ops/composition.h"
#include "relay/ops/program/attrs_memory.h"
#include "relay/ops/reference.h"

namespace tilewright::relay {
namespace {

bool is_whole(const Type& type, size_t rank) {
  const auto* t = as_tensor(type);
  return t && t->dtype == kInt64 && t->shape.size() == rank;
}
void flatten(const Type& type, std::vector<Type>* out) {
  if (const auto* tuple = as_tuple(type))
    for (const Type& field : tuple->fields) flatten(field, out);
  else
    out->push_back(type);
}

Result<Type> alloc_storage_type(const TypeArgs& args) {
  for (size_t i = 0; i < 2; ++i)
    if (!is_whole(args.types[i], 0))
      return type_error(format("operand {} is {}, not int64", i, type_str(args.types[i])));
  return data_type("Storage");
}

Result<Type> alloc_tensor_type(const TypeArgs& args) {
  const auto& a = attrs_of<AllocTensorAttrs>(args);
  const auto* storage = as_data(args.types[0]);
  if (!storage || storage->name != "Storage")
    return type_error(format("it takes a tensor's place from {}, not from a Storage", type_str(args.types[0])));
  if (!is_whole(args.types[1], 0)) return type_error(format("the offset is {}, not int64", type_str(args.types[1])));
  const auto* sizes = as_tensor(args.types[2]);
  if (!sizes || sizes->shape.size() != 1 || !sizes->dtype.is_integral())
    return type_error(format("the sizes are {}", type_str(args.types[2])));
  std::vector<int64_t> shape = a.assert_shape;
  if (const Tensor* known = constant_operand(args, 2)) {
    if (shape.empty()) shape = int_values(*known);
    if (shape != int_values(*known)) return type_error("assert_shape and the sizes differ");
  }
  if (dims_differ(sizes->shape[0], Dim(static_cast<int64_t>(shape.size()))))
    return type_error(format("{} sizes for a tensor of rank {}", sizes->shape[0].str(), shape.size()));
  for (int64_t d : shape)
    if (d < 0) return type_error(format("a size of {} is negative", d));
  return tensor_type(to_shape(shape), a.dtype);
}

Result<Type> kill_type(const TypeArgs&) { return tuple_type({}); }

Result<Type> invoke_type(const TypeArgs& args) {
  const auto* function = as_func(args.types[0]);
  const auto *ins = as_tuple(args.types[1]), *outs = as_tuple(args.types[2]);
  if (!function || !ins || !outs)
    return type_error(format("operands are {}, {} and {}, not a function and two tuples", type_str(args.types[0]),
                             type_str(args.types[1]), type_str(args.types[2])));
  std::vector<Type> made;
  flatten(function->result, &made);
  if (function->args.size() != ins->fields.size() || made.size() != outs->fields.size())
    return type_error(format("a function {} is given {} operands and {} places for results", type_str(args.types[0]),
                             ins->fields.size(), outs->fields.size()));
  for (size_t i = 0; i < ins->fields.size(); ++i)
    if (is_complete(function->args[i]) && !type_equal(function->args[i], ins->fields[i]))
      return type_error(
          format("operand {} is {}, the function takes {}", i, type_str(ins->fields[i]), type_str(function->args[i])));
  for (size_t i = 0; i < made.size(); ++i)
    if (is_complete(made[i]) && !type_equal(made[i], outs->fields[i]))
      return type_error(format("result {} is {}, its place {}", i, type_str(made[i]), type_str(outs->fields[i])));
  return tuple_type({});
}

// Only the interpreter can run them, where it binds variables: there is no memory to write to here.
Result<std::vector<Value>> eval_memory(const EvalArgs&) {
  return eval_error("memory has a meaning in a program only, not in a single call");
}

Result<Expr> expand_shape_of(const TypeArgs& args) {
  Composition c(args);
  return c.result(c.call("shape_of", {c[0]}, args.attrs));
}
Result<Expr> expand_reshape_tensor(const TypeArgs& args) {
  Composition c(args);
  const auto& newshape = attrs_of<ReshapeTensorAttrs>(args).newshape;
  if (newshape.empty() && args.tensor(1).shape != Shape{Dim(0)}) return c.result(c.call("dyn.reshape", {c[0], c[1]}));
  return c.result(c.reshape(c[0], newshape));
}

OpDef of_memory(OpDef def) {
  def.stateful = true;
  return def;
}

}  // namespace

std::vector<OpDef> memory_ops() {
  return {
      of_memory(define_op("memory.alloc_storage", "Memory of a size, aligned: a Storage.",
                          {{"size", "bytes, int64"}, {"alignment", "bytes, int64"}}, OpPattern::kOpaque,
                          alloc_storage_type, eval_memory, make_default_attrs<AllocStorageAttrs>)),
      of_memory(define_op("memory.alloc_tensor", "A tensor in a Storage, not written yet.",
                          {{"storage", "a Storage"}, {"offset", "bytes, int64"}, {"shape", "its sizes"}},
                          OpPattern::kOpaque, alloc_tensor_type, eval_memory, make_default_attrs<AllocTensorAttrs>)),
      of_memory(define_op("memory.kill", "Nothing reads this value any more.", {{"to_free", "any value"}},
                          OpPattern::kOpaque, kill_type, eval_memory, nullptr)),
      of_memory(define_op("vm.invoke_tvm_op", "Runs a function and writes its results into tensors.",
                          {{"func", "a function"}, {"ins", "its operands, a tuple"}, {"outs", "tensors, a tuple"}},
                          OpPattern::kOpaque, invoke_type, eval_memory, nullptr)),
      define_composed("vm.reshape_tensor", "The tensor with other sizes.",
                      {{"data", "any tensor"}, {"shape", "the sizes, where newshape is empty"}}, OpPattern::kOpaque,
                      expand_reshape_tensor, make_default_attrs<ReshapeTensorAttrs>),
      define_composed("vm.shape_of", "The sizes of a tensor.", {{"tensor", "any tensor"}}, OpPattern::kOpaque,
                      expand_shape_of, make_default_attrs<ShapeOfAttrs>),
  };
}

}  // namespace tilewright::relay
