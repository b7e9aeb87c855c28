// SPDX-License-Identifier: Apache-2.0
#include "driver/external_code/c_source.h"

#include "base/checked.h"
#include "base/format.h"
#include "base/formats/elf.h"
#include "base/read_whole.h"
#include "base/work_folder.h"
#include "driver/external_code/classic_headers.h"
#include "runtime/link_file.h"

namespace tilewright::driver {
namespace {

bool is_cpp(const std::string& form) { return form == "cc" || form == "cpp" || form == "cxx"; }

// The header included by a line, or empty.
std::string_view included(std::string_view line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return {};
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string_view::npos || line.substr(word, 7) != "include") return {};
  const size_t open = line.find_first_of("<\"", word + 7);
  const size_t close = open == std::string_view::npos ? open : line.find_first_of(">\"", open + 1);
  return close == std::string_view::npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

// The library named by a line `#pragma comment(lib, "NAME")`, or empty.
std::string_view linked_library(std::string_view line) {
  std::string words;
  for (char c : line.substr(0, line.find('"')))
    if (c != ' ' && c != '\t') words += c;
  if (words != "#pragmacomment(lib,") return {};
  const size_t open = line.find('"'), close = line.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

Result<std::string> compile_as(const CSource& source, bool cpp) {
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-external"));
  const std::string file = place.path() + (cpp ? "/external.cc" : "/external.c"), object = place.path() + "/external.o";
  TW_TRY_STATUS(write_part(file, with_classic_headers(source.code), file));
  TW_TRY_STATUS(runtime::run_c_compiler({cpp ? "-std=c++17" : "-std=gnu11", "-O2", "-fPIC", "-c", "-o", object, file},
                                        place.path()));
  return read_whole(object);
}

}  // namespace

std::string write_c_source(const CSource& source) {
  ByteWriter out;
  out.write_string(source.code);
  out.write_string(source.form);
  for (const auto* names : {&source.functions, &source.constants}) {
    out.write<uint64_t>(names->size());
    for (const std::string& name : *names) out.write_string(name);
  }
  return out.take();
}

Result<CSource> read_c_source(std::string_view bytes) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  CSource out;
  out.code = in.read_string(uint64_t{1} << 40);
  out.form = in.read_string();
  for (auto* names : {&out.functions, &out.constants}) {
    const uint64_t count = in.read_count(8);
    for (uint64_t i = 0; i < count && in.ok(); ++i) names->push_back(in.read_string());
  }
  if (!in.ok() || in.remaining() != 0)
    return Diagnostic(ErrorCode::kInvalidArgument, "the record of a C source module is damaged");
  if (out.form != "c" && !is_cpp(out.form))
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("a source module in the form '{}' cannot be compiled", out.form), {},
                      "the forms are c, cc and cpp");
  return out;
}

std::string with_classic_headers(const std::string& code) {
  std::string out;
  for (size_t at = 0; at < code.size();) {
    const size_t end = std::min(code.find('\n', at), code.size() - 1) + 1;
    const std::string_view line = std::string_view(code).substr(at, end - at);
    const char* text = classic_header(included(line));
    out += text ? std::string_view(text) : line;
    at = end;
  }
  return out;
}

Result<std::vector<std::string>> libraries_of(const CSource& source) {
  std::vector<std::string> out;
  const std::string& code = source.code;
  for (size_t at = 0, end = 0; at < code.size(); at = end + 1) {
    end = std::min(code.find('\n', at), code.size());
    const std::string_view name = linked_library(std::string_view(code).substr(at, end - at));
    if (name.empty()) continue;
    const std::string file = format("lib{}.so", name);
    const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-external"));
    std::string found = TW_TRY(runtime::ask_c_compiler({"-print-file-name=" + file}, place.path()));
    if (found == file || found.empty())
      return Diagnostic(
          ErrorCode::kLinkFailed,
          format("the C source of '{}' needs {}, which the C compiler does not find",
                 source.functions.empty() ? std::string("an external code generator") : source.functions[0], file),
          {},
          name == "dnnl" ? "install oneDNN (Debian's libdnnl-dev), or name its folder in LIBRARY_PATH"
                         : "install it, or name its folder in LIBRARY_PATH");
    out.push_back(std::move(found));
  }
  return out;
}

std::string object_machine(std::string_view object) {
  constexpr size_t kMachine = 18;  // offset in ELF headers, in the machine's byte order
  if (object.size() < kMachine + 2 || object.substr(0, 4) != "\177ELF") return "no ELF machine";
  const bool big = object[5] == 2;
  const auto byte = [&](size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(object[kMachine + i])); };
  return elf_machine_name(big ? byte(0) << 8 | byte(1) : byte(1) << 8 | byte(0));
}

Result<std::string> compile_c_source(const CSource& source) {
  auto made = compile_as(source, is_cpp(source.form));
  if (made.ok() || is_cpp(source.form)) return made;
  auto as_cpp = compile_as(source, true);
  return as_cpp.ok() ? std::move(as_cpp) : std::move(made);
}

}  // namespace tilewright::driver
