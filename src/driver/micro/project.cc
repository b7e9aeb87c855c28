// SPDX-License-Identifier: Apache-2.0
#include "driver/micro/project.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/format.h"
#include "base/near_match.h"
#include "base/read_whole.h"
#include "base/work_folder.h"
#include "driver/crt_files.h"
#include "driver/external_code/c_source.h"
#include "driver/guarded.h"
#include "inputs/file.h"
#include "runtime/link_file.h"

namespace tilewright::driver {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraryFile = "model.tar";
constexpr std::string_view kInclude = "include/";

Diagnostic bad_project(std::string what, std::string hint, std::string where = {}) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(where), std::move(hint)};
}

// crt_config.h with the project's options.
Result<std::string> configuration(const ProjectOptions& options) {
  std::map<std::string, uint64_t> numbers;
  std::vector<std::string> names;
  for (const ProjectOption& o : project_options()) {
    names.emplace_back(o.name);
    const auto given = options.values.find(o.name);
    const std::string text = given == options.values.end() ? o.fallback : given->second;
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 512 || value > (uint64_t{1} << 30))
      return bad_project(format("the project option {}={} is no number of bytes from 512 to 1 GiB", o.name, text),
                         format("{}; {} unless given", o.help, o.fallback));
    numbers[o.name] = value;
  }
  for (const auto& [name, value] : options.values)
    if (numbers.count(name) == 0)
      return bad_project(format("there is no project option '{}'", name),
                         did_you_mean(name, names, "there are memory_bytes, packet_bytes and reply_bytes"));
  return format(
      "/* Sizes of the C runtime. */\n#ifndef CRT_CONFIG_H_\n#define CRT_CONFIG_H_\n\n"
      "#define TVM_CRT_MAX_NDIM 16\n"
      "/* The longest request of the host; larger tensors come in pieces. */\n#define TVM_CRT_MAX_PACKET_SIZE_BYTES "
      "{}\n"
      "#define TVM_CRT_MAX_REPLY_SIZE_BYTES {}\n"
      "/* What tensors of the host may take, in pages of so many bits. */\n#define TVM_CRT_MEMORY_BYTES {}\n"
      "#define TVM_CRT_PAGE_BITS 8\n\n#endif /* CRT_CONFIG_H_ */\n",
      numbers["packet_bytes"], numbers["reply_bytes"], numbers["memory_bytes"]);
}

// Sketches have no include paths: headers are included relative to the file.
std::string with_relative_includes(const std::string& text, const std::string& up) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string line = text.substr(at, end - at);
    for (const std::string_view head : {"#include <tvm/", "#include <dlpack/", "#include <crt_config.h>"})
      if (line.starts_with(head)) {
        const size_t open = line.find('<'), close = line.find('>');
        line = "#include \"" + up + line.substr(open + 1, close - open - 1) + "\"" + line.substr(close + 1);
      }
    out += line;
    at = end;
  }
  return out;
}

class ProjectWriter {
 public:
  ProjectWriter(const ModelLibrary& library, const ProjectOptions& options) : library_(library), options_(options) {}

  Result<std::vector<ProjectFile>> write() {
    const bool sketch = options_.template_name == "arduino";
    const std::string config = TW_TRY(configuration(options_)), models = TW_TRY(models_source(library_));
    TW_TRY_STATUS(check_machine());
    if (sketch) {
      add("src/crt_config.h", config);
      add("src/models.c", with_relative_includes(models, ""));
    } else {
      add("include/crt_config.h", config);
      add("src/models.c", models);
    }
    const std::string own = "templates/" + options_.template_name + "/";
    for (const CrtFile& file : crt_files()) {
      const std::string path(file.path), bytes(file.bytes);
      if (path.starts_with(own)) {
        add(path.substr(own.size()), bytes, bytes.starts_with("#!"));
      } else if (path.starts_with(kInclude)) {
        const std::string own_path = path.substr(kInclude.size());
        std::string up;
        for (const char c : own_path) up += c == '/' ? "../" : "";
        add(sketch ? "src/" + own_path : path, sketch ? with_relative_includes(bytes, up) : bytes);
      } else if (path.starts_with("src/") && path.find('/', 4) == std::string::npos) {  // folders: the graph executor
        add("src/crt/" + path.substr(4), sketch ? with_relative_includes(bytes, "../") : bytes);
      }
    }
    for (const auto& [path, bytes] : library_.files) {
      if (!sketch)
        add("model/" + path, std::string(bytes));
      else if (path.starts_with("codegen/host/"))
        add("src/" + path.substr(path.rfind('/') + 1),
            path.ends_with(".c") ? with_relative_includes(std::string(bytes), "") : std::string(bytes));
    }
    for (size_t i = 0; i < files_.size(); ++i)
      if (!paths_.insert(files_[i].path).second)
        return Diagnostic(ErrorCode::kBadArtifact, format("two files of the project are '{}'", files_[i].path), {},
                          "give the models names of their own");
    return std::move(files_);
  }

 private:
  void add(std::string path, std::string bytes, bool is_program = false) {
    files_.push_back({std::move(path), std::move(bytes), is_program});
  }
  // Objects are for one processor; C files for any.
  Status check_machine() const {
    const bool host = options_.template_name == "crt";
    for (const auto& [path, bytes] : library_.files) {
      if (!path.ends_with(".o")) continue;
      const std::string machine = object_machine(bytes);
      if (!host && machine != "ARM")
        return bad_project(
            format("'{}' is for {}, which is not what the template {} is for", path, machine, options_.template_name),
            "compile the model with --target c");
    }
    return Ok{};
  }

  const ModelLibrary& library_;
  const ProjectOptions& options_;
  std::vector<ProjectFile> files_;
  std::set<std::string> paths_;
};

Status write_project(const std::vector<ProjectFile>& files, const std::string& folder, const std::string& as) {
  std::error_code error;
  for (const ProjectFile& f : files) {
    const fs::path path = fs::path(folder) / f.path;
    fs::create_directories(path.parent_path(), error);
    std::ofstream out(path, std::ios::binary);
    out.write(f.bytes.data(), static_cast<std::streamsize>(f.bytes.size()));
    out.close();
    if (!out) return cannot_write((fs::path(as) / f.path).string(), "no space, or no right to write there");
    if (f.is_program)
      fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec, fs::perm_options::add, error);
  }
  return Ok{};
}

bool is_project(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kLibraryFile, ignored) &&
         (fs::exists(folder / "include/crt_config.h", ignored) || fs::exists(folder / "src/crt_config.h", ignored));
}

}  // namespace

std::vector<ProjectOption> project_options() {
  return {{"memory_bytes", "16384", "memory for tensors of the host on the device"},
          {"packet_bytes", "2048", "the longest request; larger tensors come in pieces"},
          {"reply_bytes", "1024", "the longest answer beside tensors"}};
}

Result<std::vector<ProjectFile>> project_files(const ModelLibrary& library, const ProjectOptions& options) {
  const std::vector<std::string> names(std::begin(kProjectTemplates), std::end(kProjectTemplates));
  if (std::find(names.begin(), names.end(), options.template_name) == names.end())
    return bad_project(format("there is no project template '{}'", options.template_name),
                       did_you_mean(options.template_name, names, "there are crt, mps2-an386, zephyr and arduino"));
  return ProjectWriter(library, options).write();
}

Status create_project(const std::string& library_path, const std::string& folder, const ProjectOptions& options,
                      bool force) {
  return guarded([&]() -> Status {
    const std::string archive = TW_TRY(read_whole(library_path));
    auto at_file = [&](Diagnostic error) { return std::move(error).at(library_path); };
    if (!is_tar(archive))
      return Diagnostic(ErrorCode::kBadArtifact, "the file is no Model Library Format", library_path,
                        "write one with tilewright compile --format mlf");
    auto members = read_tar(inputs::bytes_of(archive));
    if (!members.ok()) return at_file(std::move(members).error());
    auto library = read_model_library(*members);
    if (!library.ok()) return at_file(std::move(library).error());
    auto files = project_files(*library, options);
    if (!files.ok()) return at_file(std::move(files).error());
    files->push_back({kLibraryFile, archive, false});
    fs::path place = fs::absolute(folder).lexically_normal();
    if (!place.has_filename()) place = place.parent_path();
    for (ProjectFile& f : *files)  // a sketch must be named like its folder
      if (f.path == "project.ino") f.path = place.filename().string() + ".ino";
    std::error_code error;
    if (fs::exists(place, error) && !(fs::is_directory(place, error) && fs::is_empty(place, error))) {
      if (!force) return bad_project("the project's folder is there already", "name another, or give --force", folder);
      if (!is_project(place))
        return bad_project("this is no project: it is not overwritten", "name another folder", folder);
    }
    const WorkFolder work = TW_TRY(WorkFolder::beside(place.string()));
    const std::string made = work.path() + "/project";
    TW_TRY_STATUS(write_project(*files, made, folder));
    fs::remove_all(place, error);
    fs::rename(made, place, error);
    if (error) return cannot_write(folder, error.message());
    return Ok{};
  });
}

Status build_project(const std::string& folder) {
  const fs::path place(folder);
  std::error_code ignored;
  if (!is_project(place))
    return bad_project("this is no project of tilewright micro create", "name the folder that it made", folder);
  if (!fs::exists(place / "build.sh", ignored)) {
    const bool sketch = fs::exists(place / "src/crt_config.h", ignored);
    return bad_project("the project is built by its platform's own tools",
                       sketch ? "arduino-cli compile" : "west build", folder);
  }
  const std::string script = fs::absolute(place / "build.sh").string();
  const WorkFolder log = TW_TRY(WorkFolder::temporary("tilewright-build"));
  if (Status built = runtime::run_program({"sh", script}, log.path()); !built.ok())
    return Diagnostic(ErrorCode::kLinkFailed, "the project was not built: " + built.error().message, folder,
                      "tools for the board: ./dev setup --micro, or apt-get install gcc-arm-none-eabi "
                      "libnewlib-arm-none-eabi qemu-system-arm");
  return Ok{};
}

}  // namespace tilewright::driver
