// SPDX-License-Identifier: Apache-2.0
// Byte code of kernels, and the file that holds a model made of it (docs/stackvm.md). One definition for the assembler,
// which writes it, and the machine, which runs it without knowing what it came from.
//
// A program works on a frame of memory. An operand is the byte offset of its first lane in the frame; lanes lie one
// after another: an F lane is a float32 (float formats of 16 bits or fewer, too, whose values it holds exactly), a D
// lane a float64, an I lane an int64 (smaller integers sign- or zero-extended, bool 0 or 1, uint64 by its bits).
// Arithmetic on I wraps at 64 bits; kWrap brings it back into a smaller type.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright::stackvm {

// What lies in memory.
// clang-format off
#define TW_STACKVM_ELEMENTS(X)                                                                            \
  X(F32, 4, 4) X(F64, 8, 8) X(I8, 1, 8) X(I16, 2, 8) X(I32, 4, 8) X(I64, 8, 8) X(U8, 1, 8) X(U16, 2, 8) X(U32, 4, 8) \
  X(U64, 8, 8) X(Bool, 1, 8) X(F16, 2, 4) X(BF16, 2, 4) X(F8E4M3FN, 1, 4) X(F8E4M3FNUZ, 1, 4) X(F8E5M2, 1, 4)        \
  X(F8E5M2FNUZ, 1, 4) X(F8E8M0, 1, 4) X(F4E2M1, 1, 4)
// clang-format on
enum class Element : uint8_t {
#define TW_ELEMENT(name, bytes, lane) k##name,
  TW_STACKVM_ELEMENTS(TW_ELEMENT)
#undef TW_ELEMENT
};
uint32_t bytes_of(Element element);       // in memory; a F4E2M1 by itself is a byte
uint32_t lane_bytes_of(Element element);  // in a frame

// Operations, and what their operands are: the lanes of to, a, b, c as F, D, I; Q is any lane of 8 bytes, '.' nothing.
// Lower-case: one lane whatever the instruction's number of lanes.
// clang-format off
#define TW_STACKVM_OPS(X)                                                                                      \
  X(AddF, "FFF.") X(SubF, "FFF.") X(MulF, "FFF.") X(DivF, "FFF.") X(MinF, "FFF.") X(MaxF, "FFF.")                \
  X(EqF, "IFF.") X(LtF, "IFF.") X(LeF, "IFF.") X(FmaF, "FFFF") X(FmaSplatF, "FfFF") /* a * b + c */              \
  X(AddD, "DDD.") X(SubD, "DDD.") X(MulD, "DDD.") X(DivD, "DDD.") X(MinD, "DDD.") X(MaxD, "DDD.")                \
  X(EqD, "IDD.") X(LtD, "IDD.") X(LeD, "IDD.") X(FmaD, "DDDD")                                                   \
  X(AddI, "III.") X(SubI, "III.") X(MulI, "III.") X(DivI, "III.") X(FloorDivI, "III.") X(FloorModI, "III.")      \
  X(MinI, "III.") X(MaxI, "III.") X(EqI, "III.") X(LtI, "III.") X(LeI, "III.") X(AndI, "III.") X(OrI, "III.")    \
  X(XorI, "III.") X(ShlI, "III.") X(ShrI, "III.")                                                                \
  X(DivU, "III.") X(ModU, "III.") X(MinU, "III.") X(MaxU, "III.") X(LtU, "III.") X(LeU, "III.") X(ShrU, "III.")  \
  X(Not, "II..")                                                                                                 \
  X(Wrap, "II..")        /* to `element` */                                                                       \
  X(WrapBits, "II..")    /* to integers of value's low byte of bits; signed where value has bit 8 */              \
  X(MoveF, "FF..") X(MoveQ, "QQ..") X(SplatF, "Ff..") X(SplatQ, "Qq..") X(SelectF, "FIFF") X(SelectQ, "QIQQ")      \
  X(ConstF, "f...") X(ConstQ, "q...") /* value: the bits */                                                        \
  X(Ramp, "Ii..")        /* a, a + value, a + 2 * value, ... */                                                    \
  X(ShuffleF, "F...") X(ShuffleQ, "Q...") /* lane i is what lies at offset Program::offsets[value + i] */          \
  X(IntToF, "FI..") X(IntToD, "DI..") X(UintToF, "FI..") X(UintToD, "DI..") X(FToD, "DF..") X(DToF, "FD..")        \
  X(FToInt, "IF..") X(DToInt, "ID..")     /* to integers as WrapBits: the nearest there is; NaN is 0 */             \
  X(RoundF, "FF..") X(RoundD, "FD..")     /* to values of `element`, a small float */                               \
  X(Reinterpret, "....") /* a: `lanes` lanes of `element`; to: value's lanes of `other`; the same bytes */           \
  X(ReduceAddF, "fF..") X(ReduceMinF, "fF..") X(ReduceMaxF, "fF..") X(ReduceAddD, "dD..") X(ReduceMinD, "dD..")      \
  X(ReduceMaxD, "dD..") X(ReduceAddI, "iI..") X(ReduceMinI, "iI..") X(ReduceMaxI, "iI..") X(ReduceMinU, "iI..")      \
  X(ReduceMaxU, "iI..")                                                                                          \
  X(MathF, "FFF.") X(MathD, "DDD.")       /* value: a Math; b is a where it takes one */                             \
  X(LdexpF, "FFI.") X(LdexpD, "DDI.")                                                                            \
  X(ClassF, "IF..") X(ClassD, "ID..")     /* value 0: is NaN, 1: is infinite, 2: is finite */                        \
  X(Word, "IIII")                         /* value: a WordOp, of integers of 32 bits; b, c are a where not taken */  \
  X(Popcount, "II..") X(Clz, "II..")      /* value: the bits */                                                      \
  X(Load, ".i..") X(Store, ".i..") /* `lanes` elements from memory c's element a + value on; to: what is loaded, stored */ \
  X(FmaLoadF, "FiF.") /* to += b * memory c's float32 a + value */ X(LoadMasked, ".iI.") X(StoreMasked, ".iI.")  /* b: which lanes; those that are off give 0 */                      \
  X(Gather, ".I..") X(Scatter, ".I..") X(GatherMasked, ".II.") X(ScatterMasked, ".II.") /* lane by lane, in order */ \
  X(Loop, "iiii")    /* c = a + b, to = a; behind the EndLoop at `value` where b is not positive */                  \
  X(EndLoop, "i..i") /* ++to; to the instruction behind the Loop at `value` while to < c */                          \
  X(JumpIfZero, ".i..") X(Jump, "....")   /* forward, to instruction `value` */                                      \
  X(End, "....")
#define TW_STACKVM_MATH(X)                                                                                        \
  X(exp) X(log) X(sqrt) X(rsqrt) X(tanh) X(erf) X(sigmoid) X(floor) X(ceil) X(round) X(trunc) X(fabs) X(sin) X(cos)  \
  X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(asinh) X(acosh) X(atanh) X(exp2) X(log2) X(log10) X(pow) X(fmod)   \
  X(copysign) X(log1p)
#define TW_STACKVM_WORDS(X) X(dot4) X(dot2) X(even_bytes) X(odd_bytes) X(low_halves) X(high_halves)
// clang-format on
enum class Op : uint16_t {
#define TW_OP(name, operands) k##name,
  TW_STACKVM_OPS(TW_OP)
#undef TW_OP
};
enum class Math : uint8_t {
#define TW_MATH(name) k_##name,
  TW_STACKVM_MATH(TW_MATH)
#undef TW_MATH
};
enum class WordOp : uint8_t {
#define TW_WORD(name) k_##name,
  TW_STACKVM_WORDS(TW_WORD)
#undef TW_WORD
};
inline constexpr int kMathCount = 0
#define TW_MATH(name) +1
    TW_STACKVM_MATH(TW_MATH)
#undef TW_MATH
    ;
inline constexpr int kWordCount = 0
#define TW_WORD(name) +1
    TW_STACKVM_WORDS(TW_WORD)
#undef TW_WORD
    ;
const char* name_of(Math function);
const char* name_of(WordOp function);
const char* name_of(Op op);
const char* operands_of(Op op);

inline constexpr uint32_t kMostLanes = 256;
inline constexpr uint32_t kMostFrameBytes = 1u << 24;

struct Instruction {
  Op op = Op::kEnd;
  uint16_t lanes = 1;
  Element element = Element::kF32, other = Element::kF32;
  uint32_t to = 0, a = 0, b = 0, c = 0;
  int64_t value = 0;
};

// Memory of a program: first what it is called with, then arrays of its own, which lie behind the frame.
struct Memory {
  uint64_t bytes = 0;    // what it may touch; of a parameter at least so much is there
  bool unknown = false;  // of a parameter: only a call says how much there is
  bool written = false;
};

struct Program {
  std::string name;
  uint32_t parameters = 0;  // of `memories`, the first
  std::vector<Memory> memories;
  uint32_t frame_bytes = 0;
  uint32_t tid = 0, nthreads = 0;  // I lanes that are set before the first instruction
  bool shared = false;             // whether it does a thread's share; else it runs whole on thread 0
  std::vector<uint32_t> offsets;   // of shuffles
  std::vector<Instruction> code;
};

std::string write_program(const Program& program);
// Checks what can be known without running it: operands within the frame, jumps to where they may go, memories that
// exist and are written only where they say so. Error: BadArtifact.
Result<Program> read_program(std::string_view bytes);
// One instruction per line, for a reader.
std::string to_text(const Program& program);

// A model as a file: the plan (base/formats/plan.h), a program for each of its kernels, the weights.
inline constexpr char kFileMagic[8] = {'T', 'W', 'S', 'T', 'A', 'C', 'K', '1'};
inline constexpr uint32_t kFileVersion = 1;
struct File {
  std::span<const std::byte> plan, programs, params;
};
bool is_file(std::span<const std::byte> bytes);
// All of the file but the weights, and where those begin: they follow after zeros. `params_hash` is of the weights.
struct FileHead {
  std::string bytes;
  uint64_t params_offset = 0;
};
FileHead write_file_head(std::string_view plan, std::span<const std::string> programs, uint64_t params_bytes,
                         uint64_t params_hash);
// Views into the bytes. Errors: BadArtifact (damaged: everything is hashed, the weights where `params_too`),
// ArtifactVersion.
Result<File> read_file(std::span<const std::byte> bytes, bool params_too);
// Those of File::programs. Error: BadArtifact.
Result<std::vector<Program>> read_programs(std::span<const std::byte> bytes);

}  // namespace tilewright::stackvm
