// SPDX-License-Identifier: Apache-2.0
#include "base/x86_features.h"

namespace tilewright {
namespace {

constexpr X86Feature kFeatures[] = {
    {"cx8", 1, 0, kEdx, 8, kNoState},
    {"cmov", 1, 0, kEdx, 15, kNoState},
    {"mmx", 1, 0, kEdx, 23, kNoState},
    {"fxsr", 1, 0, kEdx, 24, kNoState},
    {"sse", 1, 0, kEdx, 25, kNoState},
    {"sse2", 1, 0, kEdx, 26, kNoState},
    {"sse3", 1, 0, kEcx, 0, kNoState},
    {"pclmul", 1, 0, kEcx, 1, kNoState},
    {"ssse3", 1, 0, kEcx, 9, kNoState},
    {"fma", 1, 0, kEcx, 12, kYmmState},
    {"cx16", 1, 0, kEcx, 13, kNoState},
    {"sse4.1", 1, 0, kEcx, 19, kNoState},
    {"sse4.2", 1, 0, kEcx, 20, kNoState},
    {"crc32", 1, 0, kEcx, 20, kNoState},
    {"movbe", 1, 0, kEcx, 22, kNoState},
    {"popcnt", 1, 0, kEcx, 23, kNoState},
    {"aes", 1, 0, kEcx, 25, kNoState},
    {"xsave", 1, 0, kEcx, 26, kNoState},
    {"avx", 1, 0, kEcx, 28, kYmmState},
    {"f16c", 1, 0, kEcx, 29, kYmmState},
    {"rdrnd", 1, 0, kEcx, 30, kNoState},
    {"fsgsbase", 7, 0, kEbx, 0, kNoState},
    {"bmi", 7, 0, kEbx, 3, kNoState},
    {"avx2", 7, 0, kEbx, 5, kYmmState},
    {"bmi2", 7, 0, kEbx, 8, kNoState},
    {"invpcid", 7, 0, kEbx, 10, kNoState},
    {"avx512f", 7, 0, kEbx, 16, kZmmState},
    {"evex512", 7, 0, kEbx, 16, kZmmState},
    {"avx512dq", 7, 0, kEbx, 17, kZmmState},
    {"rdseed", 7, 0, kEbx, 18, kNoState},
    {"adx", 7, 0, kEbx, 19, kNoState},
    {"avx512ifma", 7, 0, kEbx, 21, kZmmState},
    {"clflushopt", 7, 0, kEbx, 23, kNoState},
    {"clwb", 7, 0, kEbx, 24, kNoState},
    {"avx512cd", 7, 0, kEbx, 28, kZmmState},
    {"sha", 7, 0, kEbx, 29, kNoState},
    {"avx512bw", 7, 0, kEbx, 30, kZmmState},
    {"avx512vl", 7, 0, kEbx, 31, kZmmState},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmmState},
    {"pku", 7, 0, kEcx, 3, kNoState},
    {"waitpkg", 7, 0, kEcx, 5, kNoState},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmmState},
    {"shstk", 7, 0, kEcx, 7, kNoState},
    {"gfni", 7, 0, kEcx, 8, kNoState},
    {"vaes", 7, 0, kEcx, 9, kYmmState},
    {"vpclmulqdq", 7, 0, kEcx, 10, kYmmState},
    {"avx512vnni", 7, 0, kEcx, 11, kZmmState},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmmState},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmmState},
    {"rdpid", 7, 0, kEcx, 22, kNoState},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kZmmState},
    {"serialize", 7, 0, kEdx, 14, kNoState},
    {"amx-bf16", 7, 0, kEdx, 22, kTileState},
    {"avx512fp16", 7, 0, kEdx, 23, kZmmState},
    {"amx-tile", 7, 0, kEdx, 24, kTileState},
    {"amx-int8", 7, 0, kEdx, 25, kTileState},
    {"avxvnni", 7, 1, kEax, 4, kYmmState},
    {"avx512bf16", 7, 1, kEax, 5, kZmmState},
    {"amx-fp16", 7, 1, kEax, 21, kTileState},
    {"avxifma", 7, 1, kEax, 23, kYmmState},
    {"avxvnniint8", 7, 1, kEdx, 4, kYmmState},
    {"avxneconvert", 7, 1, kEdx, 5, kYmmState},
    {"avxvnniint16", 7, 1, kEdx, 10, kYmmState},
    {"xsaveopt", 0xd, 1, kEax, 0, kNoState},
    {"xsavec", 0xd, 1, kEax, 1, kNoState},
    {"xsaves", 0xd, 1, kEax, 3, kNoState},
    {"sahf", 0x80000001, 0, kEcx, 0, kNoState},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNoState},
    {"sse4a", 0x80000001, 0, kEcx, 6, kNoState},
    {"prfchw", 0x80000001, 0, kEcx, 8, kNoState},
    {"xop", 0x80000001, 0, kEcx, 11, kYmmState},
    {"fma4", 0x80000001, 0, kEcx, 16, kYmmState},
    {"tbm", 0x80000001, 0, kEcx, 21, kNoState},
    {"mwaitx", 0x80000001, 0, kEcx, 29, kNoState},
    {"64bit", 0x80000001, 0, kEdx, 29, kNoState},
    {"clzero", 0x80000008, 0, kEbx, 0, kNoState},
    {"rdpru", 0x80000008, 0, kEbx, 4, kNoState},
    {"wbnoinvd", 0x80000008, 0, kEbx, 9, kNoState},
};

}  // namespace

std::span<const X86Feature> x86_features() { return kFeatures; }

const X86Feature* find_x86_feature(std::string_view name) {
  for (const X86Feature& f : kFeatures)
    if (name == f.name) return &f;
  return nullptr;
}

}  // namespace tilewright
