// SPDX-License-Identifier: Apache-2.0
// The compiler of ONNX graphs to one VM function. vm_onnx.cc: a graph cut into regions and single nodes;
// vm_control.cc: branches, loops and calls; vm_bytecode.cc: instructions and regions of the program.
#pragma once
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "driver/vm_classify.h"
#include "frontend/onnx/graph_parts.h"
#include "frontend/onnx/proto.h"
#include "runtime/vm/program.h"

namespace tilewright::driver {

// The code of one function and the program's regions, which it adds to.
class Bytecode {
 public:
  Bytecode(runtime::vm::Program& program, std::string_view model) : program_(program), model_(model) {}
  int64_t fresh() { return function.registers++; }
  size_t emit(runtime::vm::Opcode op, std::vector<int64_t> fields);
  void patch(size_t at, size_t field);  // a jump's distance, to here
  void jump_back(size_t to);
  void move(int64_t from, int64_t to);
  int64_t adt(int64_t tag, const std::vector<int64_t>& fields);
  int64_t constant(const Tensor& t);
  int64_t integer(int64_t v);
  // A call of the runtime's function. Operands that are left out are registers that were never written.
  std::vector<int64_t> host(std::string source, const std::vector<int64_t>& inputs, size_t outputs);
  // A call of a region. `pieces` are parts of the model's file or texts of our own, which the program then holds.
  std::vector<int64_t> region(const char* kind, std::vector<std::string> names, const std::vector<int64_t>& inputs,
                              const std::vector<std::string_view>& pieces, size_t outputs);
  runtime::vm::Function function;
  int loops = 0;  // around the code being made

 private:
  int64_t add(runtime::vm::Region region);
  std::vector<int64_t> invoke(int64_t region, const std::vector<int64_t>& inputs, size_t outputs, bool refill);
  runtime::vm::Program& program_;
  std::string_view model_;  // the file's bytes, which the program's shared part begins with
};

// A value in a register.
inline Slot held(int64_t reg, Sort sort, bool text) {
  Slot s;
  s.sort = sort;
  s.text = text;
  s.reg = reg;
  return s;
}

class GraphCompiler {
 public:
  GraphCompiler(const onnx::Model& model, std::string_view bytes, runtime::vm::Program* program)
      : code_(*program, bytes), model_(model), bytes_(bytes), program_(*program), opsets_(&model.opsets) {}
  Status run();

 private:
  using Slots = std::vector<Slot>;
  struct Plan {
    Treatment treatment;
    int level = 0;
    bool live = false;
  };
  struct Body {
    const onnx::Graph* graph = nullptr;
    std::string_view content;
  };
  // Registers that carry values from step to step, and the lists that collect.
  struct Steps {
    Slots carried;
    std::vector<int64_t> lists;
  };
  struct Counter {
    int64_t i = 0, one = 0;
    size_t head = 0, leave = 0;
    bool bounded = false;
  };
  // A called function's body as a model of its own.
  struct Called {
    std::shared_ptr<const std::string> bytes;  // tensors may be views of them
    onnx::Model model;
  };

  Result<Slots> graph(const onnx::Graph& g, std::string_view content, VmScope& scope);
  static void mark_live(const onnx::Graph& g, const std::vector<size_t>& order, std::vector<Plan>* plans);
  Status region_of_level(const onnx::Graph& g, const onnx::GraphParts& parts, const std::vector<size_t>& order,
                         const std::vector<Plan>& plans, int level, VmScope& scope);
  Result<std::vector<int64_t>> region(const char* kind, const std::vector<onnx::Node>& nodes,
                                      const onnx::GraphParts& parts, const std::vector<size_t>& which,
                                      const VmScope& scope, const std::vector<std::string>& outputs);
  static Result<bool> add_constant(const std::string& name, const Slot& slot, std::vector<std::string_view>* fields,
                                   std::list<std::string>* texts);
  std::vector<std::string_view> with_head(const std::vector<std::string>& inputs,
                                          const std::vector<std::string>& outputs,
                                          const std::vector<std::string_view>& fields,
                                          std::list<std::string>* texts) const;
  Status single(const onnx::Graph& g, const onnx::GraphParts& parts, size_t i, const Treatment& t, VmScope& scope);
  Result<Slots> host_node(const onnx::Node& n, const Treatment& t, const VmScope& scope);
  Result<int64_t> reg_of(const std::string& name, const VmScope& scope);
  void check_supported(const onnx::Node& n);
  Diagnostic missing_report() const;

  Result<Slots> control(const onnx::Node& n, std::string_view field, const VmScope& scope);
  Result<Slots> branch(const onnx::Node& n, std::string_view field, const VmScope& scope);
  Result<Slots> loop(const onnx::Node& n, std::string_view field, const VmScope& scope);
  Result<Slots> scan(const onnx::Node& n, std::string_view field, const VmScope& scope);
  Result<Slots> map(const onnx::Node& n, std::string_view field, const VmScope& scope);
  Result<Slots> call(const onnx::Function& function, const onnx::Node& n, std::string_view field, const VmScope& scope);
  static Result<Body> body_of(const onnx::Node& n, std::string_view field, const char* name);
  void start(Steps* s, const Slots& initial, size_t lists);
  void next(Steps* s, const Slots& made, size_t first);
  Counter count(int64_t limit);
  void next_step(const Counter& c);

  Language language() { return {model_.functions, *opsets_, &looked_at_}; }

  Bytecode code_;
  const onnx::Model& model_;
  std::string_view bytes_;
  runtime::vm::Program& program_;
  onnx::ModelParts parts_;
  // Of the model, or of the function whose body is being compiled.
  std::vector<std::string_view> head_;
  const std::map<std::string, int64_t>* opsets_;
  std::list<Called> called_;  // what slots and tensors refer to
  int64_t looked_at_ = 0;
  std::map<std::string, std::vector<std::string>> missing_;
};

}  // namespace tilewright::driver
