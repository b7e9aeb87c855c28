// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "driver/vm_graph.h"

namespace tilewright::driver {

using namespace runtime::vm;

size_t Bytecode::emit(Opcode op, std::vector<int64_t> fields) {
  function.code.push_back({op, std::move(fields)});
  return function.code.size() - 1;
}

void Bytecode::patch(size_t at, size_t field) {
  function.code[at].fields[field] = static_cast<int64_t>(function.code.size() - at);
}

void Bytecode::jump_back(size_t to) {
  emit(Opcode::kGoto, {static_cast<int64_t>(to) - static_cast<int64_t>(function.code.size())});
}

void Bytecode::move(int64_t from, int64_t to) { emit(Opcode::kMove, {from, to}); }

int64_t Bytecode::adt(int64_t tag, const std::vector<int64_t>& fields) {
  std::vector<int64_t> all{tag, static_cast<int64_t>(fields.size()), fresh()};
  const int64_t out = all[2];
  all.insert(all.end(), fields.begin(), fields.end());
  emit(Opcode::kAllocADT, std::move(all));
  return out;
}

int64_t Bytecode::constant(const Tensor& t) {
  const int64_t out = fresh();
  program_.executable.constants.push_back({t, "", 0});
  emit(Opcode::kLoadConst, {static_cast<int64_t>(program_.executable.constants.size()) - 1, out});
  return out;
}

int64_t Bytecode::integer(int64_t v) {
  const int64_t out = fresh();
  emit(Opcode::kLoadConsti, {v, out});
  return out;
}

int64_t Bytecode::add(Region region) {
  program_.executable.primitives.push_back(region.format == "host"
                                               ? "host_" + region.source.substr(0, region.source.find('\n'))
                                               : format("region_{}", program_.regions.size()));
  program_.regions.push_back(std::move(region));
  return static_cast<int64_t>(program_.regions.size()) - 1;
}

std::vector<int64_t> Bytecode::invoke(int64_t region, const std::vector<int64_t>& inputs, size_t outputs, bool refill) {
  std::vector<int64_t> fields{region, static_cast<int64_t>(inputs.size() + outputs), static_cast<int64_t>(outputs)},
      made;
  fields.insert(fields.end(), inputs.begin(), inputs.end());
  for (size_t i = 0; i < outputs; ++i) {
    made.push_back(fresh());
    fields.push_back(made.back());
    // A register that still holds the last step's tensor would have it overwritten.
    if (refill && loops > 0) emit(Opcode::kKillRegister, {made.back()});
  }
  emit(Opcode::kInvokePacked, std::move(fields));
  return made;
}

std::vector<int64_t> Bytecode::host(std::string source, const std::vector<int64_t>& inputs, size_t outputs) {
  Region region{"host", {}, std::move(source), {}};
  for (size_t i = 0; i < inputs.size(); ++i) region.inputs.push_back(format("a{}", i));
  return invoke(add(std::move(region)), inputs, outputs, false);
}

std::vector<int64_t> Bytecode::region(const char* kind, std::vector<std::string> names,
                                      const std::vector<int64_t>& inputs, const std::vector<std::string_view>& pieces,
                                      size_t outputs) {
  Region made{kind, std::move(names), "", {}};
  for (std::string_view part : pieces) {
    if (part.empty()) continue;
    const bool of_file = part.data() >= model_.data() && part.data() < model_.data() + model_.size();
    const std::pair<uint64_t, uint64_t> p{
        of_file ? static_cast<uint64_t>(part.data() - model_.data()) : static_cast<uint64_t>(program_.shared.size()),
        part.size()};
    if (!of_file) program_.shared.append(part);
    // Neighbours are one piece.
    if (!made.pieces.empty() && made.pieces.back().first + made.pieces.back().second == p.first)
      made.pieces.back().second += p.second;
    else
      made.pieces.push_back(p);
  }
  return invoke(add(std::move(made)), inputs, outputs, true);
}

}  // namespace tilewright::driver
