// SPDX-License-Identifier: Apache-2.0
// Links in process with lld. All files of a link, including the result, are in a new folder beside the result, which is
// renamed at the end: a failure or a full disk leaves nothing behind.
#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ObjCopy/ConfigManager.h>
#include <llvm/ObjCopy/ObjCopy.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/formats/elf.h"
#include "base/formats/seal.h"
#include "base/version.h"
#include "base/work_folder.h"
#include "codegen/codegen.h"
#include "codegen/llvm/machine.h"

#if LLVM_VERSION_MAJOR >= 17
LLD_HAS_DRIVER(elf)
#endif

namespace tilewright::codegen {
namespace {

namespace fs = std::filesystem;

// C library functions that kernels may call (math.cc).
constexpr const char* kLibmNames[] = {"exp",   "log",   "tanh",      "erf",       "pow",    "sin",   "cos",   "tan",
                                      "asin",  "acos",  "atan",      "sinh",      "cosh",   "asinh", "acosh", "atanh",
                                      "exp2",  "log2",  "log10",     "fmod",      "sincos", "rint",  "floor", "ceil",
                                      "trunc", "round", "roundeven", "nearbyint", "fma",    "ldexp"};

bool is_libm(std::string_view name) {
  for (std::string_view known : kLibmNames)
    if (name == known ||
        (name.size() == known.size() + 1 && name.back() == 'f' && name.substr(0, known.size()) == known))
      return true;
  return false;
}

// The soname of the runtime library.
std::string runtime_library() {
  const std::string_view text = version();
  return format("libtilewright_runtime.so.{}", text.substr(0, text.find('.')));
}

// Calls `body` on a separate thread, whose end frees what `body` left in thread-local storage. LLVM may install a
// signal stack for the thread, which is then restored.
void on_own_thread(const std::function<void()>& body) {
  std::exception_ptr thrown;
  std::thread thread;
  try {
    thread = std::thread([&] {
      stack_t signals{};
      const bool known = sigaltstack(nullptr, &signals) == 0;
      try {
        body();
      } catch (...) {
        thrown = std::current_exception();
      }
      if (known) sigaltstack(&signals, nullptr);
    });
  } catch (const std::system_error&) {  // no thread could be created
    body();
    return;
  }
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

// While an instance exists, lld's fatal errors return to the caller instead of ending the process.
class Recoverable {
 public:
  Recoverable() { llvm::CrashRecoveryContext::Enable(); }
  ~Recoverable() { llvm::CrashRecoveryContext::Disable(); }
  Recoverable(const Recoverable&) = delete;
  Recoverable& operator=(const Recoverable&) = delete;
};

// Saves lld's output to a file that is kept: pages of relocations are no error message for a user. (After an interrupt
// the folder is gone, and nothing may be left behind.)
Diagnostic refused(const std::string& said, const fs::path& result) {
  std::error_code ignored;
  if (!fs::exists(result.parent_path(), ignored)) return cannot_write("", "the folder it is made in vanished");
  for (const char* sign : {"No space left", "File too large", "failed to write", "failed to open", "cannot open"})
    if (said.find(sign) != std::string::npos) return cannot_write("", said.substr(0, said.find('\n')));
  const char* folder = std::getenv("TMPDIR");
  std::string log = format("{}/tilewright-link-XXXXXX", folder && *folder ? folder : "/tmp");
  const int fd = ::mkstemp(log.data());
  const bool kept = fd >= 0 && ::write(fd, said.data(), said.size()) == static_cast<ssize_t>(said.size());
  if (fd >= 0) ::close(fd);
  return Diagnostic(ErrorCode::kLinkFailed, "the compiled kernels could not be joined into one file", {},
                    kept
                        ? format("the model did nothing wrong: please report this with {}, the linker's own words", log)
                        : "the model did nothing wrong: please report this");
}

// Runs lld. It has global state: one link at a time, and none after it reports that it cannot run again. Its memory,
// some kilobytes per link, is freed when the thread ends.
Status run_lld(const std::vector<std::string>& arguments) {
  static bool broken = false;
  std::lock_guard guard(llvm_options_lock());  // lld sets and resets options
  if (broken)
    return Diagnostic(ErrorCode::kLinkFailed, "the linker failed earlier in this process and cannot run again", {},
                      "start the program again");
  std::vector<const char*> args;
  for (const std::string& a : arguments) args.push_back(a.c_str());
  std::string said;
  llvm::raw_string_ostream out(said);
  int code = 1;
  Recoverable recoverable;
  on_own_thread([&] {
#if LLVM_VERSION_MAJOR >= 17
    const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
    const lld::Result result = lld::lldMain(args, out, out, drivers);
    code = result.retCode;
#else
    const lld::SafeReturn result = lld::safeLldMain(static_cast<int>(args.size()), args.data(), out, out);
    code = result.ret;
#endif
    broken = !result.canRunAgain;
  });
  out.flush();
  if (code == 0) return Ok{};
  const auto output = std::find(arguments.begin(), arguments.end(), "-o");
  return refused(said, *std::next(output));
}

// place_weights moves the weights after the link: only absolute addresses in data can follow.
Status only_data_points_to_weights(const llvm::object::ObjectFile& object) {
  for (const llvm::object::SectionRef& section : object.sections())
    for (const llvm::object::RelocationRef& r : section.relocations()) {
      const auto symbol = r.getSymbol();
      if (symbol == object.symbol_end()) continue;
      auto name = symbol->getName();
      if (!name) {
        llvm::consumeError(name.takeError());
        continue;
      }
      const auto* file = llvm::dyn_cast<llvm::object::ELFObjectFileBase>(&object);
      // 32 bits: the weights are linked like other data
      if (file == nullptr || file->getBytesInAddress() != 8) continue;
      if (*name == kParamsSymbol && r.getType() != pointer_relocations(file->getEMachine(), 64).absolute)
        return Diagnostic(ErrorCode::kInternal, "compiled code reaches the weights other than by their address");
    }
  return Ok{};
}

// The symbols that the objects use but none defines.
Result<std::set<std::string>> undefined_symbols(std::span<const std::string> objects) {
  std::set<std::string> used, defined;
  for (const std::string& bytes : objects) {
    auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "object"));
    if (!file) return Diagnostic(ErrorCode::kLinkFailed, "not an object file: " + llvm::toString(file.takeError()));
    for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
      auto name = symbol.getName();
      auto flags = symbol.getFlags();
      if (!name || !flags) {
        llvm::consumeError(name.takeError()), llvm::consumeError(flags.takeError());
        continue;
      }
      const bool undefined = (*flags & llvm::object::SymbolRef::SF_Undefined) != 0;
      if (undefined && *name == kParamsSymbol) TW_TRY_STATUS(only_data_points_to_weights(**file));
      (undefined ? used : defined).insert(name->str());
    }
  }
  for (const std::string& name : defined) used.erase(name);
  return used;
}

// Needed by C++ code of external code generators.
constexpr const char* kLibstdcxx = "libstdc++.so.6";
bool is_libstdcxx(llvm::StringRef name) {
  for (const char* start :
       {"_ZNS", "_ZNKS", "_ZS", "_ZTIS", "_ZTVN10__cxxabiv1", "_ZTVS", "_ZTI", "_Zn", "_Zd", "__cxa_", "__gxx_"})
    if (name.starts_with(start)) return name != "__cxa_finalize" && name != "__cxa_atexit";
  return false;
}

// Whether the symbol is a compiler support function for arithmetic without an instruction (64-bit division on 32 bits,
// floats without an FPU), as named in GCC's "Integer library routines" and ARM's run-time ABI.
bool is_libgcc(llvm::StringRef name) {
  for (const char* start : {"__aeabi_", "__gnu_h2f", "__gnu_f2h"})
    if (name.starts_with(start)) return true;
  for (const char* start : {"__div",   "__udiv", "__mod", "__umod", "__mul",   "__fix",  "__float",   "__extend",
                            "__trunc", "__add",  "__sub", "__ashl", "__ashr",  "__lshr", "__eq",      "__ne",
                            "__lt",    "__le",   "__gt",  "__ge",   "__unord", "__clz",  "__popcount"})
    for (const char* type : {"si", "di", "ti", "sf", "df", "hf"})
      if (name.starts_with(start) && name.substr(std::strlen(start)).starts_with(type)) return true;
  return false;
}

// C compilers reference the offset table in every object that accesses a variable through it, though no x86-64
// relocation needs it. lld would keep the symbol from one link to the next and crash.
constexpr const char* kOffsetTable = "_GLOBAL_OFFSET_TABLE_";
Result<std::string> without_offset_table(const std::string& bytes) {
  if (bytes.find(kOffsetTable) == std::string::npos) return bytes;
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "object"));
  if (!file) return Diagnostic(ErrorCode::kLinkFailed, "not an object file: " + llvm::toString(file.takeError()));
  llvm::objcopy::ConfigManager config;
  auto name = llvm::objcopy::NameOrPattern::create(kOffsetTable, llvm::objcopy::MatchStyle::Literal,
                                                   [](llvm::Error error) { return error; });
  if (llvm::Error failed = config.Common.UnneededSymbolsToRemove.addMatcher(std::move(name)))
    return Diagnostic(ErrorCode::kLinkFailed, llvm::toString(std::move(failed)));
  llvm::SmallVector<char, 0> out;
  llvm::raw_svector_ostream stream(out);
  if (llvm::Error failed = llvm::objcopy::executeObjcopyOnBinary(config, **file, stream))
    return Diagnostic(ErrorCode::kLinkFailed, llvm::toString(std::move(failed)));
  return std::string(out.data(), out.size());
}

// A stub of a library with just the required functions: the result then references the library without symbol versions
// that only newer C libraries have, and linking needs no development files.
Result<std::string> library_stub(const std::string& name, const std::set<std::string>& functions, const Target& target,
                                 const fs::path& folder, const std::string& result) {
  std::vector<std::string> list(functions.begin(), functions.end());
  fs::path object = folder / (name + ".o"), library = folder / name;
  TW_TRY_STATUS(write_part(object, TW_TRY(stub_object(list, target)), result));
  TW_TRY_STATUS(run_lld({"ld.lld", "-shared", "--soname=" + name, "--build-id=none", "--threads=1", "-o",
                         library.string(), object.string()}));
  return library.string();
}

// Makes symbols used only within an object local, so that a program can contain functions, and other models, of the
// same names.
Status hide_inner_symbols(const std::string& file, const std::string& result) {
  auto bytes = llvm::MemoryBuffer::getFile(file);
  if (!bytes) return cannot_write(result, bytes.getError().message());
  auto object = llvm::object::ObjectFile::createObjectFile((*bytes)->getMemBufferRef());
  if (!object) return Diagnostic(ErrorCode::kLinkFailed, llvm::toString(object.takeError()), result);
  llvm::objcopy::ConfigManager config;
  config.ELF.LocalizeHidden = true;
  std::error_code error;
  llvm::raw_fd_ostream out(file + ".hidden", error);
  if (error) return cannot_write(result, error.message());
  if (llvm::Error failed = llvm::objcopy::executeObjcopyOnBinary(config, **object, out))
    return Diagnostic(ErrorCode::kLinkFailed, llvm::toString(std::move(failed)), result);
  out.close();
  if (out.has_error()) {
    error = out.error();
    out.clear_error();
    return cannot_write(result, error.message());
  }
  fs::rename(file + ".hidden", file, error);
  return error ? cannot_write(result, error.message()) : Status(Ok{});
}

// The weights to append: their bytes, if any, and a callback once they are written.
struct Weights {
  const WeightPieces* pieces;
  const std::function<void()>& written;
};

// A temporary folder beside the result, with the objects to link.
struct LinkFolder {
  WorkFolder folder;
  std::vector<std::string> files;
  uint64_t weight_bytes = 0;  // to be appended to the result
  bool narrow = false;        // a 32-bit file, which already contains its weights
  std::string in_folder(const std::string& name) const { return folder.path() + "/" + name; }
  std::string result() const { return in_folder("result"); }
};

// Whether LLD can link for this target: some state is fixed by the first link of a process, namely RISC-V's word size,
// and the offset table of 32-bit x86 code, whose symbol the next link would write to.
Status lld_can(const Target& target, const std::string& path) {
  static std::mutex mutex;
  static bool used_up = false;
  static llvm::Triple::ArchType risc_v = llvm::Triple::UnknownArch;
  std::lock_guard lock(mutex);
  const llvm::Triple triple(target.mtriple);
  auto refused = [&](const char* what) {
    return Diagnostic(ErrorCode::kLinkFailed, what, path, "compile it in a process of its own");
  };
  if (used_up) return refused("this process linked for 32-bit x86, and its linker cannot run again");
  if (triple.isRISCV()) {
    if (risc_v != llvm::Triple::UnknownArch && risc_v != triple.getArch())
      return refused("a process can link for RISC-V of 32 bits or of 64 bits, not for both");
    risc_v = triple.getArch();
  }
  used_up = triple.getArch() == llvm::Triple::x86;
  return Ok{};
}

Result<LinkFolder> prepare(std::span<const std::string> objects, const std::string& path, const Weights& weights,
                           bool relocatable, const Target& target) {
  std::error_code error;
  if (path.empty() || fs::path(path).filename().empty()) return cannot_write(path, "this is not a file name");
  if (fs::is_directory(path, error)) return cannot_write(path, "there is a folder of this name");
  LinkFolder out{TW_TRY(WorkFolder::beside(path)), {}};
  for (size_t i = 0; i < objects.size(); ++i) {
    out.files.push_back(out.in_folder(format("{}.o", i)));
    TW_TRY_STATUS(write_part(out.files.back(), TW_TRY(without_offset_table(objects[i])), path));
  }
  if (weights.pieces != nullptr) {
    // In 32-bit files the weights, which cannot be large, are linked as an object.
    out.narrow = processor_of(target).pointer_bits == 32;
    if (!out.narrow) out.weight_bytes = weight_bytes(*weights.pieces);
    out.files.push_back(out.in_folder("weights.o"));
    const std::string object =
        out.narrow ? weights_object(*weights.pieces, target) : weights_stand_in(relocatable, target);
    TW_TRY_STATUS(write_part(out.files.back(), object, path));
  }
  TW_TRY_STATUS(lld_can(target, path));
  return out;
}

// Checks that the disk has room for the result: LLVM ends the process if it cannot write.
Status reserve(const LinkFolder& place, const std::string& path) {
  constexpr uint64_t kAround = 32 << 10;  // headers, tables, partly filled pages
  uint64_t bytes = kAround + place.weight_bytes;
  std::error_code ignored;
  for (const std::string& file : place.files)
    if (const uintmax_t size = fs::file_size(file, ignored); !ignored) bytes += size;
  const std::string file = place.in_folder("space");
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const bool room = fd >= 0 && (::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0 || errno == EOPNOTSUPP);
  const std::string why = room ? "" : std::strerror(errno);
  if (fd >= 0) ::close(fd);
  fs::remove(file, ignored);
  return room ? Status(Ok{}) : cannot_write(path, why);
}

Status link(std::vector<std::string> arguments, const LinkFolder& place, const std::string& path) {
  TW_TRY_STATUS(reserve(place, path));
  arguments.insert(arguments.end(), {"-o", place.result()});
  arguments.insert(arguments.end(), place.files.begin(), place.files.end());
  Status linked = run_lld(arguments);
  return linked ? linked : std::move(linked).error().at(path);
}

Status write_weights(const Weights& weights, const LinkFolder& place, const std::string& path) {
  if (weights.pieces && !place.narrow) TW_TRY_STATUS(place_weights(place.result(), *weights.pieces, path));
  if (weights.written) weights.written();
  return Ok{};
}

Status seal(const LinkFolder& place, const std::string& path) {
  Status sealed = append_artifact_seal(place.result());
  if (sealed) return Ok{};
  return sealed.error().code == ErrorCode::kCannotWrite ? cannot_write(path, "no space for the seal")
                                                        : std::move(sealed).error().at(path);
}

// Links all objects into one relocatable object.
Status join(std::span<const std::string> objects, const Weights& weights, const LinkFolder& place,
            const std::string& path) {
  TW_TRY_STATUS(undefined_symbols(objects));  // reports invalid object files better than the linker
  TW_TRY_STATUS(link({"ld.lld", "-r", "--build-id=none", "--threads=1"}, place, path));
  TW_TRY_STATUS(hide_inner_symbols(place.result(), path));
  TW_TRY_STATUS(write_weights(weights, place, path));
  return seal(place, path);
}

Status move_into_place(const LinkFolder& place, const std::string& path) {
  std::error_code error;
  fs::rename(place.result(), path, error);
  if (error) return cannot_write(path, error.message());
  return Ok{};
}

}  // namespace

Status link_shared(std::span<const std::string> objects, const std::string& path, const Target& target,
                   const WeightPieces* params, const std::function<void()>& params_written,
                   std::span<const std::string> libraries) {
  if (is_bare_metal(target))
    return Diagnostic(ErrorCode::kLinkFailed,
                      format("'{}' has no operating system that would load a shared library", target.mtriple), path,
                      "write an object (.o) or an archive (.a) and link it into the program");
  const Weights weights{params, params_written};
  LinkFolder place = TW_TRY(prepare(objects, path, weights, /*relocatable=*/false, target));
  std::map<std::string, std::set<std::string>> needed;  // by library
  const bool android = target.mtriple.find("android") != std::string::npos;
  for (const std::string& name : TW_TRY(undefined_symbols(objects))) {
    if (is_libm(name)) needed[android ? "libm.so" : "libm.so.6"].insert(name);
    if (name == kSystemLibRegister) needed[runtime_library()].insert(name);
    if (is_libstdcxx(name)) needed[kLibstdcxx].insert(name);
    if (llvm::StringRef(name).starts_with("_Unwind_") || is_libgcc(name)) needed["libgcc_s.so.1"].insert(name);
  }
  for (const auto& [library, functions] : needed)
    place.files.push_back(TW_TRY(library_stub(library, functions, target, place.folder.path(), path)));
  place.files.insert(place.files.end(), libraries.begin(), libraries.end());
  std::vector<std::string> arguments = {
      "ld.lld", "-shared",         "--hash-style=gnu",       "-znoexecstack", "-zrelro",
      "-znow",  "--build-id=none", "--no-undefined-version", "--threads=1",   "--no-allow-shlib-undefined"};
  // What another library started (threads of OpenMP, say) goes on behind the last use: it must not be unloaded.
  if (!libraries.empty()) arguments.push_back("-znodelete");
  // A library's functions are its own, whatever libraries of the process define the same names for all.
  arguments.emplace_back("-Bsymbolic");
  if (needed.count(kLibstdcxx)) arguments.emplace_back("--eh-frame-hdr");  // needed to catch C++ exceptions
  TW_TRY_STATUS(link(std::move(arguments), place, path));
  TW_TRY_STATUS(write_weights(weights, place, path));
  TW_TRY_STATUS(seal(place, path));
  return move_into_place(place, path);
}

Status link_relocatable(std::span<const std::string> objects, const std::string& path, const Target& target,
                        const WeightPieces* params, const std::function<void()>& params_written) {
  const Weights weights{params, params_written};
  LinkFolder place = TW_TRY(prepare(objects, path, weights, /*relocatable=*/true, target));
  TW_TRY_STATUS(join(objects, weights, place, path));
  return move_into_place(place, path);
}

Status join_kernels(std::span<const std::string> objects, const std::string& path, const Target& target) {
  const std::function<void()> nothing;
  LinkFolder place = TW_TRY(prepare(objects, path, {nullptr, nothing}, /*relocatable=*/true, target));
  TW_TRY_STATUS(undefined_symbols(objects));
  TW_TRY_STATUS(link({"ld.lld", "-r", "--build-id=none", "--threads=1"}, place, path));
  return move_into_place(place, path);
}

Status write_archive(std::span<const std::string> objects, const std::string& path, const Target& target,
                     const WeightPieces* params, const std::function<void()>& params_written) {
  const Weights weights{params, params_written};
  LinkFolder place = TW_TRY(prepare(objects, path, weights, /*relocatable=*/true, target));
  TW_TRY_STATUS(join(objects, weights, place, path));
  const std::string only = place.in_folder("lib0.o");
  std::error_code error;
  fs::rename(place.result(), only, error);
  if (error) return cannot_write(path, error.message());
  auto member = llvm::NewArchiveMember::getFile(only, /*Deterministic=*/true);
  if (!member) return Diagnostic(ErrorCode::kLinkFailed, llvm::toString(member.takeError()), path);
  member->MemberName = "lib0.o";
  place.files = {only};
  TW_TRY_STATUS(reserve(place, path));
#if LLVM_VERSION_MAJOR >= 18
  constexpr auto kSymbols = llvm::SymtabWritingMode::NormalSymtab;
#else
  constexpr bool kSymbols = true;
#endif
  if (llvm::Error error = llvm::writeArchive(place.result(), *member, kSymbols, llvm::object::Archive::K_GNU,
                                             /*Deterministic=*/true, /*Thin=*/false))
    return cannot_write(path, llvm::toString(std::move(error)));
  return move_into_place(place, path);
}

}  // namespace tilewright::codegen
