// SPDX-License-Identifier: Apache-2.0
// A Relay VM program: functions in bytecode, constants, and the names of the packed functions (kernels) they call. Its
// bytes are the classic `.ro` layout. read_executable verifies programs; the machine then only checks values (types,
// ranks, storage sizes).
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"

namespace tilewright::runtime::vm {

inline constexpr uint64_t kExecutableMark = 0xD225DE2F4214151D;  // the first eight bytes of a file

// Opcode names with operand formats: r a register read, w a register written, n a count of register reads that follow
// at the end; other letters are explained in executable.cc.
// clang-format off
#define TW_VM_OPCODES(X)                                                                                            \
  X(Move, "rw") X(Ret, "r") X(Invoke, "fnw*") X(InvokeClosure, "rnw*") X(InvokePacked, "pno*")                      \
  X(AllocTensor, "rrtttdw*") X(AllocTensorReg, "rrrtttw") X(AllocADT, "inw*") X(AllocClosure, "fnw*")               \
  X(GetField, "riw") X(If, "rrjj") X(LoadConst, "cw") X(Goto, "j") X(GetTag, "rw") X(LoadConsti, "iw") X(Fatal, "") \
  X(AllocStorage, "ratttvw") X(ShapeOf, "rw") X(ReshapeTensor, "rrw") X(DeviceCopy, "rvvw") X(KillRegister, "w")
// clang-format on
enum class Opcode : uint8_t {
#define TW_OPCODE(name, operands) k##name,
  TW_VM_OPCODES(TW_OPCODE)
#undef TW_OPCODE
};
inline constexpr int64_t kOpcodes = static_cast<int64_t>(Opcode::kKillRegister) + 1;
const char* opcode_name(Opcode op);

// Fields in the order of the `.ro` file: {storage, offset, code, bits, lanes, ndim, dst, dims...} for AllocTensor, say.
struct Instruction {
  Opcode op;
  std::vector<int64_t> fields;
};

struct Function {
  std::string name;
  std::vector<std::string> params;     // registers 0, 1, ... on entry
  std::vector<int64_t> param_devices;  // into Executable::devices
  int64_t registers = 0;
  std::vector<Instruction> code;
};

struct Constant {
  Tensor data;  // undefined when bound late
  std::string late_name;
  int64_t device = 0;
};

struct Device {
  int32_t type = 1, id = 0;  // DLPack's
};

struct Executable {
  std::string version = "0.9.0";  // of the file layout
  std::vector<Device> devices{Device{}};
  int32_t host_device = 0;
  std::vector<Function> functions;
  std::vector<Constant> constants;
  std::vector<std::string> primitives;                                // packed functions by index
  std::map<uint64_t, std::map<std::string, std::string>> attributes;  // of primitives
  const Function* find(std::string_view name) const;
};

std::string write_executable(const Executable& executable);
// Errors: BadArtifact (damaged, out of bounds, an invalid index or jump target), ArtifactVersion.
Result<Executable> read_executable(std::span<const std::byte> bytes);
// The checks of read_executable beyond the layout; also for programs built in memory. Errors: BadArtifact.
Status verify_executable(const Executable& executable);

// Listings in the classic stack's format: functions, constants, primitives, and statistics.
std::string bytecode_text(const Executable& executable);
std::string constants_text(const Executable& executable);
std::string primitives_text(const Executable& executable);

// Moves constants of at least `limit` bytes out, in the
// .params layout, named const_<index>; they become late-bound.
std::string move_late_bound_constants(Executable* executable, uint64_t limit);
// Errors: BadArtifact (another kind of file, a missing name, a constant still unbound).
Status load_late_bound_constants(Executable* executable, std::span<const std::byte> params);

}  // namespace tilewright::runtime::vm
