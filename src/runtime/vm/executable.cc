// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/executable.h"

#include <charconv>
#include <cstring>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/format.h"
#include "base/formats/tensor_record.h"
#include "runtime/params_file.h"

namespace tilewright::runtime::vm {
namespace {

constexpr int64_t kMaxRegisters = 1 << 20, kMaxRank = 32;

struct OpcodeInfo {
  const char* name;
  const char* operands;
};
constexpr OpcodeInfo kInfo[] = {
#define TW_OPCODE(name, operands) {#name, operands},
    TW_VM_OPCODES(TW_OPCODE)
#undef TW_OPCODE
};

Diagnostic bad(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), {}, "compile the program again");
}

uint64_t hash_of(uint64_t opcode, std::span<const int64_t> fields) {
  uint64_t key = opcode;
  for (int64_t f : fields) key ^= static_cast<uint64_t>(f) + 0x9e3779b9 + (key << 6) + (key >> 2);
  return key;
}

std::optional<DataType> classic_dtype(int64_t code, int64_t bits, int64_t lanes) {
  constexpr TypeCode kCodes[] = {TypeCode::kInt, TypeCode::kUInt, TypeCode::kFloat, TypeCode::kHandle,
                                 TypeCode::kBFloat};
  if (code < 0 || code > 4 || code == 3 || lanes != 1 || bits < 1 || bits > 64) return std::nullopt;
  DataType t{kCodes[code], static_cast<uint8_t>(bits), 1};
  if (t == DataType{TypeCode::kUInt, 1, 1}) return kBool;
  auto known = parse_dtype(t.str());
  if (!known.ok() || !(*known == t)) return std::nullopt;
  return t;
}

// Checks that all indices in the instruction at `pc` are valid.
Status check_instruction(const Executable& e, const Function& f, size_t pc) {
  const Instruction& in = f.code[pc];
  const char* layout = kInfo[static_cast<size_t>(in.op)].operands;
  auto wrong = [&](const std::string& what) {
    return bad(format("{} of function '{}', instruction {}: {}", opcode_name(in.op), f.name, pc, what));
  };
  const size_t fixed = std::strlen(layout) - (std::strchr(layout, '*') ? 1 : 0);
  if (in.fields.size() < fixed || (!std::strchr(layout, '*') && in.fields.size() != fixed))
    return wrong(format("{} operands where {} are needed", in.fields.size(), fixed));
  auto reg = [&](int64_t r) { return r >= 0 && r < f.registers; };
  int64_t rest = 0;
  for (size_t i = 0; i < fixed; ++i) {
    const int64_t v = in.fields[i];
    auto below = [&](size_t n, const char* what) -> Status {
      if (v >= 0 && static_cast<uint64_t>(v) < n) return Ok{};
      return wrong(format("{} {} of {} does not exist", what, v, n));
    };
    switch (layout[i]) {
      case 'r':
      case 'w':
        TW_TRY_STATUS(below(static_cast<size_t>(f.registers), "register"));
        break;
      case 'f':
        TW_TRY_STATUS(below(e.functions.size(), "function"));
        break;
      case 'p':
        TW_TRY_STATUS(below(e.primitives.size(), "packed function"));
        break;
      case 'c':
        TW_TRY_STATUS(below(e.constants.size(), "constant"));
        break;
      case 'v':
        TW_TRY_STATUS(below(e.devices.size(), "device"));
        break;
      case 'n':
        if (v < 0 || v > (1 << 16)) return wrong(format("it takes {} arguments", v));
        rest = v;
        break;
      case 'd':
        if (v < 0 || v > kMaxRank) return wrong(format("its rank is {}", v));
        rest = v;
        break;
      case 'o':
        if (v < 0 || v > rest) return wrong(format("{} of its {} arguments are outputs", v, rest));
        break;
      case 'j': {
        int64_t target;
        if (!checked_add(static_cast<int64_t>(pc), v, &target) || target < 0 ||
            static_cast<uint64_t>(target) >= f.code.size())
          return wrong(format("the jump by {} leaves the function", v));
        break;
      }
      case 'a':
        if (v < 1 || v > 4096 || (v & (v - 1)) != 0) return wrong(format("the alignment is {}", v));
        break;
      case 't':
        if (layout[i - 1] != 't' && !classic_dtype(v, in.fields[i + 1], in.fields[i + 2]))
          return wrong(
              format("the dtype (code {}, {} bits, {} lanes) is unknown", v, in.fields[i + 1], in.fields[i + 2]));
        break;
      default:
        break;  // 'i': any number
    }
  }
  if (in.fields.size() != fixed + static_cast<size_t>(rest))
    return wrong(format("{} further operands where {} are announced", in.fields.size() - fixed, rest));
  const bool dims = in.op == Opcode::kAllocTensor;
  for (size_t i = fixed; i < in.fields.size(); ++i)
    if (!dims && !reg(in.fields[i]))
      return wrong(format("register {} of {} does not exist", in.fields[i], f.registers));
  if (dims)
    if (auto n = checked_element_count(std::span(in.fields).subspan(fixed)); !n.ok())
      return wrong("its shape is impossible");
  if (in.op == Opcode::kInvoke &&
      static_cast<size_t>(rest) != e.functions[static_cast<size_t>(in.fields[0])].params.size())
    return wrong(format("{} arguments for a function of {}", rest,
                        e.functions[static_cast<size_t>(in.fields[0])].params.size()));
  if (in.op == Opcode::kAllocClosure &&
      static_cast<size_t>(rest) > e.functions[static_cast<size_t>(in.fields[0])].params.size())
    return wrong(format("{} captured values for a function of {} parameters", rest,
                        e.functions[static_cast<size_t>(in.fields[0])].params.size()));
  if (in.op == Opcode::kGetField && in.fields[1] < 0) return wrong(format("field {} does not exist", in.fields[1]));
  return Ok{};
}

void write_strings(ByteWriter& out, const std::vector<std::string>& list) {
  out.write<uint64_t>(list.size());
  for (const auto& s : list) out.write_string(s);
}
void write_numbers(ByteWriter& out, std::span<const int64_t> list) {
  out.write<uint64_t>(list.size());
  for (int64_t v : list) out.write<int64_t>(v);
}
std::vector<std::string> read_strings(ByteReader& in) {
  std::vector<std::string> out;
  for (uint64_t n = in.read_count(8); n > 0 && in.ok(); --n) out.push_back(in.read_string());
  return out;
}
std::vector<int64_t> read_numbers(ByteReader& in) {
  std::vector<int64_t> out;
  for (uint64_t n = in.read_count(8); n > 0 && in.ok(); --n) out.push_back(in.read<int64_t>());
  return out;
}
std::optional<int64_t> decimal(const std::string& text) {
  int64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return v;
}

Result<Function> read_function(ByteReader& in) {
  auto head = read_strings(in);
  if (!in.ok() || head.size() != 3) return bad("the head of a function is damaged");
  Function f;
  f.name = head[0];
  f.params = read_strings(in);
  f.param_devices = read_numbers(in);
  auto registers = decimal(head[1]), count = decimal(head[2]);
  if (!in.ok() || !registers || !count || *registers < 0 || *count < 0)
    return bad(format("function '{}': its counts are damaged", f.name));
  f.registers = *registers;
  for (int64_t i = 0; i < *count; ++i) {
    auto words = read_numbers(in);
    if (!in.ok() || words.size() < 2) return bad(format("function '{}': instruction {} is cut off", f.name, i));
    auto fields = std::span<const int64_t>(words).subspan(2);
    if (words[1] < 0 || words[1] >= kOpcodes)
      return bad(format("function '{}': instruction {} has the unknown opcode {}", f.name, i, words[1]));
    if (static_cast<uint64_t>(words[0]) != hash_of(static_cast<uint64_t>(words[1]), fields))
      return bad(format("function '{}': instruction {} does not match its check sum", f.name, i));
    f.code.push_back({static_cast<Opcode>(words[1]), {fields.begin(), fields.end()}});
  }
  return f;
}

template <class Record>
Tensor tensor_of(const Record& record) {
  Tensor t(record.dtype, record.shape);
  if (!record.data.empty()) std::memcpy(t.mutable_raw(), record.data.data(), record.data.size());
  return t;
}
NamedTensor record_of(std::string name, const Tensor& t) {
  return {std::move(name), t.dtype(), t.shape(), {t.raw(), static_cast<size_t>(t.bytes())}};
}

}  // namespace

const char* opcode_name(Opcode op) { return kInfo[static_cast<size_t>(op)].name; }

const Function* Executable::find(std::string_view name) const {
  for (const Function& f : functions)
    if (f.name == name) return &f;
  return nullptr;
}

Status verify_executable(const Executable& e) {
  if (e.devices.empty() || e.host_device < 0 || static_cast<size_t>(e.host_device) >= e.devices.size())
    return bad("the host device does not exist");
  for (const Device& d : e.devices)
    if (d.type != 1) return bad(format("it is for devices of type {}, this machine runs CPU programs", d.type));
  for (size_t i = 0; i < e.functions.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (e.functions[i].name == e.functions[k].name)
        return bad(format("two functions are named '{}'", e.functions[i].name));
  for (const Function& f : e.functions) {
    if (f.registers > kMaxRegisters || static_cast<size_t>(f.registers) < f.params.size())
      return bad(format("function '{}' has {} registers for {} parameters", f.name, f.registers, f.params.size()));
    for (int64_t d : f.param_devices)
      if (d < 0 || static_cast<uint64_t>(d) >= e.devices.size())
        return bad(format("function '{}': device {} does not exist", f.name, d));
    if (f.code.empty()) return bad(format("function '{}' has no code", f.name));
    for (size_t pc = 0; pc < f.code.size(); ++pc) TW_TRY_STATUS(check_instruction(e, f, pc));
    const Opcode last = f.code.back().op;
    if (last != Opcode::kRet && last != Opcode::kGoto && last != Opcode::kFatal && last != Opcode::kIf)
      return bad(format("function '{}' runs past its end", f.name));
  }
  for (const Constant& c : e.constants)
    if (c.device < 0 || static_cast<uint64_t>(c.device) >= e.devices.size())
      return bad(format("a constant is on device {}, which does not exist", c.device));
  for (const auto& [index, map] : e.attributes)
    if (index >= e.primitives.size()) return bad(format("packed function {} has attributes but does not exist", index));
  return Ok{};
}

std::string write_executable(const Executable& e) {
  ByteWriter out;
  out.write<uint64_t>(kExecutableMark);
  out.write_string(e.version);
  out.write<uint64_t>(e.devices.size());
  for (const Device& d : e.devices) {
    out.write<int32_t>(d.type);
    out.write<int32_t>(d.id);
  }
  out.write<int32_t>(e.host_device);
  out.write<uint64_t>(e.functions.size());
  for (const Function& f : e.functions) out.write_string(f.name);
  out.write<uint64_t>(e.constants.size());
  std::vector<int64_t> constant_devices;
  for (const Constant& c : e.constants) {
    constant_devices.push_back(c.device);
    out.write<uint32_t>(c.data.defined() ? 0 : 1);
    if (c.data.defined())
      write_tensor_record(out, {c.data.dtype(), c.data.shape(), {c.data.raw(), static_cast<size_t>(c.data.bytes())}});
    else
      out.write_string(c.late_name);
  }
  write_numbers(out, constant_devices);
  write_strings(out, e.primitives);
  out.write<uint64_t>(e.attributes.size());
  for (const auto& [index, map] : e.attributes) {
    out.write<uint64_t>(index);
    out.write<uint64_t>(map.size());
    for (const auto& [k, v] : map) {
      out.write_string(k);
      out.write_string(v);
    }
  }
  out.write<uint64_t>(e.functions.size());
  for (const Function& f : e.functions) {
    write_strings(out, {f.name, std::to_string(f.registers), std::to_string(f.code.size())});
    write_strings(out, f.params);
    write_numbers(out, f.param_devices);
    for (const Instruction& in : f.code) {
      const auto opcode = static_cast<uint64_t>(in.op);
      std::vector<int64_t> words{static_cast<int64_t>(hash_of(opcode, in.fields)), static_cast<int64_t>(opcode)};
      words.insert(words.end(), in.fields.begin(), in.fields.end());
      write_numbers(out, words);
    }
  }
  return out.take();
}

Result<Executable> read_executable(std::span<const std::byte> bytes) {
  TW_TRY_STATUS(check_byte_order("a VM program (.ro)"));
  ByteReader in(bytes);
  Executable e;
  if (in.read<uint64_t>() != kExecutableMark) return bad("this is not a VM program (.ro): its mark is missing");
  const std::string known = e.version;
  e.version = in.read_string(64);
  if (in.ok() && e.version != known)
    return Diagnostic(ErrorCode::kArtifactVersion,
                      format("the VM program has layout '{}', this runtime reads '{}'", e.version, known), {},
                      "compile the program again");
  e.devices.clear();
  for (uint64_t n = in.read_count(8); n > 0 && in.ok(); --n) {
    Device d;
    d.type = in.read<int32_t>();
    d.id = in.read<int32_t>();
    e.devices.push_back(d);
  }
  e.host_device = in.read<int32_t>();
  auto globals = read_strings(in);
  if (!in.ok()) return bad("the head of the program is damaged");
  const uint64_t constants = in.read_count(4);
  for (uint64_t i = 0; i < constants && in.ok(); ++i) {
    Constant c;
    const auto tag = in.read<uint32_t>();
    if (tag == 0)
      c.data = tensor_of(TW_TRY(read_tensor_record(in, format("constant {}", i), "VM program")));
    else if (tag == 1)
      c.late_name = in.read_string();
    else
      return bad(format("constant {} has the unknown kind {}", i, tag));
    e.constants.push_back(std::move(c));
  }
  auto devices = read_numbers(in);
  if (!in.ok() || devices.size() != e.constants.size()) return bad("the section of constants is damaged");
  for (size_t i = 0; i < devices.size(); ++i) e.constants[i].device = devices[i];
  e.primitives = read_strings(in);
  for (uint64_t n = in.read_count(16); n > 0 && in.ok(); --n) {
    auto& map = e.attributes[in.read<uint64_t>()];
    for (uint64_t m = in.read_count(16); m > 0 && in.ok(); --m) {
      std::string key = in.read_string();
      map[key] = in.read_string();
    }
  }
  const uint64_t functions = in.read_count(8);
  if (!in.ok() || functions != globals.size()) return bad("the section of packed functions is damaged");
  for (uint64_t i = 0; i < functions; ++i) {
    e.functions.push_back(TW_TRY(read_function(in)));
    if (e.functions.back().name != globals[i])
      return bad(
          format("function {} is '{}' here and '{}' in the list of globals", i, e.functions.back().name, globals[i]));
  }
  if (in.remaining() != 0) return bad(format("{} bytes follow the program", in.remaining()));
  TW_TRY_STATUS(verify_executable(e));
  return e;
}

std::string bytecode_text(const Executable& e) {
  std::string out;
  for (size_t i = 0; i < e.functions.size(); ++i) {
    const Function& f = e.functions[i];
    out += format("VM Function[{}]: {}(", i, f.name);
    for (size_t p = 0; p < f.params.size(); ++p) out += (p ? ", " : "") + f.params[p];
    out += format(")\n# reg file size = {}\n# instruction count = {}\nopcode, fields # inst(text):\n", f.registers,
                  f.code.size());
    for (size_t pc = 0; pc < f.code.size(); ++pc) {
      std::string line = format("{:2}: {}", pc, static_cast<int>(f.code[pc].op));
      for (int64_t v : f.code[pc].fields) line += format(" {}", v);
      out += format("{:<41} # {}\n", line, opcode_name(f.code[pc].op));
    }
    out += "\n";
  }
  return out;
}

std::string constants_text(const Executable& e) {
  std::string out;
  for (size_t i = 0; i < e.constants.size(); ++i) {
    const Constant& c = e.constants[i];
    out += c.data.defined() ? format("VM Const[{}]: {} {} on device index {}\n", i, c.data.dtype().str(),
                                     shape_str(c.data.shape()), c.device)
                            : format("VM Const[{}]: bound late as '{}' on device index {}\n", i, c.late_name, c.device);
  }
  return out;
}

std::string primitives_text(const Executable& e) {
  std::string out;
  for (size_t i = 0; i < e.primitives.size(); ++i) out += format("VM PackedFunc[{}]: {}\n", i, e.primitives[i]);
  return out;
}

std::string move_late_bound_constants(Executable* e, uint64_t limit) {
  std::vector<NamedTensor> moved;
  std::vector<Tensor> kept;
  for (size_t i = 0; i < e->constants.size(); ++i) {
    Constant& c = e->constants[i];
    if (!c.data.defined() || c.data.bytes() < limit) continue;
    c.late_name = format("const_{}", i);
    kept.push_back(c.data);
    moved.push_back(record_of(c.late_name, kept.back()));
    c.data = Tensor();
  }
  return write_params_file(moved);
}

Status load_late_bound_constants(Executable* e, std::span<const std::byte> params) {
  auto records = TW_TRY(read_params_file(params));
  for (Constant& c : e->constants) {
    if (c.data.defined()) continue;
    for (const NamedTensor& r : records)
      if (r.name == c.late_name) c.data = tensor_of(r);
    if (!c.data.defined()) return bad(format("the file of late-bound constants lacks '{}'", c.late_name));
  }
  return Ok{};
}

}  // namespace tilewright::runtime::vm
