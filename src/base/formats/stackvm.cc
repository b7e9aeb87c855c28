// SPDX-License-Identifier: Apache-2.0
#include "base/formats/stackvm.h"

#include <cstring>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/format.h"
#include "base/hash.h"

namespace tilewright::stackvm {
namespace {

constexpr const char* kCompileAgain = "compile the model again";
constexpr uint64_t kHeadBytes = sizeof kFileMagic + 8 + 7 * 8;
constexpr uint64_t kParamsAlignment = 4096;

Diagnostic damaged(std::string what) { return Diagnostic(ErrorCode::kBadArtifact, std::move(what), {}, kCompileAgain); }

// The fields that the content's hash begins with.
std::string hashed_fields(uint64_t plan, uint64_t programs, uint64_t params_offset, uint64_t params, uint64_t hash) {
  ByteWriter out;
  for (uint64_t field : {plan, programs, params_offset, params, hash}) out.write<uint64_t>(field);
  return out.take();
}
uint64_t content_hash_of(std::string_view fields, const void* content, uint64_t bytes) {
  return hash_bytes(content, bytes, hash_bytes(fields.data(), fields.size(), kFileVersion));
}

}  // namespace

uint32_t bytes_of(Element element) {
  static constexpr uint32_t kBytes[] = {
#define TW_ELEMENT(name, bytes, lane) bytes,
      TW_STACKVM_ELEMENTS(TW_ELEMENT)
#undef TW_ELEMENT
  };
  return kBytes[static_cast<size_t>(element)];
}

uint32_t lane_bytes_of(Element element) {
  static constexpr uint32_t kBytes[] = {
#define TW_ELEMENT(name, bytes, lane) lane,
      TW_STACKVM_ELEMENTS(TW_ELEMENT)
#undef TW_ELEMENT
  };
  return kBytes[static_cast<size_t>(element)];
}

const char* name_of(Math function) {
  static constexpr const char* kNames[] = {
#define TW_MATH(name) #name,
      TW_STACKVM_MATH(TW_MATH)
#undef TW_MATH
  };
  return kNames[static_cast<size_t>(function)];
}

const char* name_of(WordOp function) {
  static constexpr const char* kNames[] = {
#define TW_WORD(name) #name,
      TW_STACKVM_WORDS(TW_WORD)
#undef TW_WORD
  };
  return kNames[static_cast<size_t>(function)];
}

const char* name_of(Op op) {
  static constexpr const char* kNames[] = {
#define TW_OP(name, operands) #name,
      TW_STACKVM_OPS(TW_OP)
#undef TW_OP
  };
  return kNames[static_cast<size_t>(op)];
}

const char* operands_of(Op op) {
  static constexpr char kOperands[][5] = {
#define TW_OP(name, operands) operands,
      TW_STACKVM_OPS(TW_OP)
#undef TW_OP
  };
  return kOperands[static_cast<size_t>(op)];
}

std::string to_text(const Program& program) {
  std::string out =
      format("program {}: {} memories, {} bytes\n", program.name, program.memories.size(), program.frame_bytes);
  size_t indent = 1;
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& n = program.code[i];
    if (n.op == Op::kEndLoop && indent > 1) --indent;
    out += format("{:6}{}{}", i, std::string(2 * indent, ' '), name_of(n.op));
    if (n.lanes != 1) out += format("x{}", n.lanes);
    out += format(" {} {} {} {}, {}\n", n.to, n.a, n.b, n.c, n.value);
    if (n.op == Op::kLoop) ++indent;
  }
  return out;
}

bool is_file(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof kFileMagic && std::memcmp(bytes.data(), kFileMagic, sizeof kFileMagic) == 0;
}

FileHead write_file_head(std::string_view plan, std::span<const std::string> programs, uint64_t params_bytes,
                         uint64_t params_hash) {
  ByteWriter list;
  list.write<uint64_t>(programs.size());
  for (const std::string& p : programs) list.write_string(p);
  std::string content(plan);
  content += list.str();
  FileHead head;
  head.params_offset = (kHeadBytes + content.size() + kParamsAlignment - 1) / kParamsAlignment * kParamsAlignment;
  const std::string fields =
      hashed_fields(plan.size(), list.str().size(), head.params_offset, params_bytes, params_hash);
  ByteWriter out;
  out.write_bytes(kFileMagic, sizeof kFileMagic);
  out.write<uint32_t>(kFileVersion);
  out.write<uint32_t>(0);
  out.write_bytes(fields.data(), fields.size());
  out.write<uint64_t>(content_hash_of(fields, content.data(), content.size()));
  out.write<uint64_t>(0);
  head.bytes = out.take() + content;
  return head;
}

Result<File> read_file(std::span<const std::byte> bytes, bool params_too) {
  ByteReader in(bytes);
  in.take(sizeof kFileMagic);
  const auto version = in.read<uint32_t>();
  if (!is_file(bytes) || !in.ok()) return damaged("this is no file of byte code");
  TW_TRY_STATUS(check_byte_order("the file of byte code"));
  if (version != kFileVersion)
    return Diagnostic(ErrorCode::kArtifactVersion,
                      format("the byte code has version {}, and this runtime reads {}", version, kFileVersion), {},
                      kCompileAgain);
  const auto zero = in.read<uint32_t>();
  const auto fields = in.take(5 * 8);
  ByteReader numbers(fields);
  const auto plan = numbers.read<uint64_t>(), programs = numbers.read<uint64_t>();
  const auto params_offset = numbers.read<uint64_t>(), params = numbers.read<uint64_t>(),
             params_hash = numbers.read<uint64_t>();
  const auto hash = in.read<uint64_t>();
  if (in.read<uint64_t>() != 0 || zero != 0 || !in.ok()) return damaged("the file's head is damaged");
  File file;
  file.plan = in.take(plan);
  file.programs = in.take(programs);
  const auto ends = in.position();
  if (!in.ok() || params_offset % kParamsAlignment != 0 || params_offset < ends ||
      params_offset - ends >= kParamsAlignment ||
      (params == 0 ? in.remaining() != 0 : params_offset > bytes.size() || params != bytes.size() - params_offset))
    return damaged("the file is cut off, or its parts do not fit together");
  const std::string_view hashed(reinterpret_cast<const char*>(fields.data()), fields.size());
  if (content_hash_of(hashed, file.plan.data(), plan + programs) != hash)
    return damaged("the byte code does not match its check sum");
  if (params != 0) {
    for (const std::byte b : bytes.subspan(ends, params_offset - ends))
      if (b != std::byte{0}) return damaged("there are bytes between the code and the weights");
    file.params = bytes.subspan(params_offset, params);
  }
  if (params_too && hash_bytes(file.params.data(), file.params.size()) != params_hash)
    return damaged("the weights do not match their check sum");
  return file;
}

Result<std::vector<Program>> read_programs(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const uint64_t count = in.read_count(8);
  std::vector<Program> out;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const auto size = in.read<uint64_t>();
    const auto body = in.take(size);
    if (!in.ok()) break;
    out.push_back(TW_TRY(read_program({reinterpret_cast<const char*>(body.data()), body.size()})));
  }
  if (!in.ok() || in.remaining() != 0) return damaged("the list of programs ends early");
  return out;
}

}  // namespace tilewright::stackvm
