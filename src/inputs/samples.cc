// SPDX-License-Identifier: Apache-2.0
#include "inputs/samples.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/format.h"

namespace tilewright::inputs {
namespace {

bool has_suffix(const std::string& path, std::initializer_list<const char*> suffixes) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  std::string end = path.substr(dot);
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::any_of(suffixes.begin(), suffixes.end(), [&](const char* s) { return end == s; });
}
bool holds_tensors(const std::string& path) { return has_suffix(path, {".npy", ".npz", ".pb"}); }
bool holds_picture(const std::string& path) {
  return has_suffix(path, {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".pnm", ".ppm", ".pgm", ".tga"});
}

// A file's tensors in the order of the inputs.
Result<std::vector<Tensor>> tensors_of(const std::string& path, const std::vector<InputInfo>& inputs) {
  const NamedTensors found = TW_TRY(read_tensor_file(path));
  if (inputs.size() == 1 && found.size() == 1) return std::vector<Tensor>{found[0].second};
  std::vector<Tensor> out;
  for (const InputInfo& input : inputs) {
    auto it = std::find_if(found.begin(), found.end(), [&](const auto& entry) { return entry.first == input.name; });
    if (it == found.end())
      return Diagnostic(ErrorCode::kUnknownInput, format("the file has no tensor for the input '{}'", input.name), path,
                        "save an .npz whose entries have the names of all inputs");
    out.push_back(it->second);
  }
  return out;
}

// The number of samples in a tensor, which may be longer than the input along the first axis. 0: it does not fit.
int64_t samples_in(const Tensor& t, const InputInfo& input) {
  if (t.shape() == input.shape) return 1;
  if (t.rank() == 0 || t.shape().size() != input.shape.size() || input.shape[0] <= 0) return 0;
  if (!std::equal(t.shape().begin() + 1, t.shape().end(), input.shape.begin() + 1)) return 0;
  return t.shape()[0] % input.shape[0] == 0 ? t.shape()[0] / input.shape[0] : 0;
}

Tensor sample_of(const Tensor& t, const InputInfo& input, int64_t index) {
  if (t.shape() == input.shape) return t;
  Tensor out(t.dtype(), input.shape);
  std::memcpy(out.mutable_raw(), t.raw() + static_cast<uint64_t>(index) * out.bytes(), out.bytes());
  return out;
}

Result<int64_t> check_tensors(const std::vector<Tensor>& tensors, const std::vector<InputInfo>& inputs,
                              const std::string& path) {
  int64_t count = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = tensors[i];
    const std::string both =
        format("input '{}' takes {} {}, the tensor is {} {}", inputs[i].name, inputs[i].dtype.str(),
               shape_str(inputs[i].shape), t.dtype().str(), shape_str(t.shape()));
    if (!(t.dtype() == inputs[i].dtype))
      return Diagnostic(ErrorCode::kDtypeMismatch, both, path, format("convert it to {}", inputs[i].dtype.str()));
    const int64_t n = samples_in(t, inputs[i]);
    if (n == 0 || (i > 0 && n != count))
      return Diagnostic(ErrorCode::kShapeMismatch, both, path,
                        "samples have the model's sizes, the same in all files; several may lie along the first axis");
    count = n;
  }
  return count;
}

}  // namespace

Result<Samples> Samples::open(const std::string& folder, const std::string& picture_options, size_t limit) {
  namespace fs = std::filesystem;
  Samples out;
  out.picture_options_ = picture_options, out.limit_ = limit;
  std::error_code error;
  if (fs::is_regular_file(folder, error)) {
    out.files_.push_back(folder);
    return out;
  }
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    if (it->path().filename().string()[0] != '.' && it->is_regular_file(error) &&
        (holds_tensors(path) || holds_picture(path)))
      out.files_.push_back(path);
  }
  if (error) return Diagnostic(ErrorCode::kFileNotFound, error.message(), folder, "name a folder of samples");
  if (out.files_.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "the folder has no samples", folder,
                      "put tensors (.npy, .npz, .pb) or pictures (.jpg, .png, .bmp, .gif, .ppm, .tga) there");
  std::sort(out.files_.begin(), out.files_.end());
  return out;
}

Status Samples::fill_free_sizes(std::vector<InputInfo>* inputs) const {
  auto is_free = [](const InputInfo& input) {
    return std::count(input.shape.begin(), input.shape.end(), kFreeSize) > 0;
  };
  if (std::none_of(inputs->begin(), inputs->end(), is_free)) return Ok{};
  std::vector<Tensor> tensors;
  if (holds_tensors(files_[0])) tensors = TW_TRY(tensors_of(files_[0], *inputs));
  for (size_t i = 0; i < inputs->size(); ++i) {
    InputInfo& input = (*inputs)[i];
    for (size_t d = 0; d < input.shape.size(); ++d) {
      if (input.shape[d] != kFreeSize) continue;
      if (d == 0)
        input.shape[d] = 1;
      else if (i < tensors.size() && tensors[i].shape().size() == input.shape.size())
        input.shape[d] = tensors[i].shape()[d];
    }
    if (is_free(input))
      return Diagnostic(ErrorCode::kFreeDimension,
                        format("sizes of the input '{}' are free, and {} does not tell them", input.name, files_[0]),
                        {}, format("give them: --shape {}=1x3x224x224", input.name));
  }
  return Ok{};
}

Status Samples::for_each(const std::vector<InputInfo>& inputs, const Visit& visit) const {
  size_t seen = 0;
  for (size_t f = 0; f < files_.size() && (limit_ == 0 || seen < limit_); ++f) {
    const std::string& path = files_[f];
    std::vector<Tensor> tensors;
    if (holds_tensors(path)) {
      tensors = TW_TRY(tensors_of(path, inputs));
    } else {
      if (inputs.size() != 1)
        return Diagnostic(ErrorCode::kInvalidArgument,
                          format("the model has {} inputs, and a picture is one", inputs.size()), path,
                          "save an .npz whose entries have the names of all inputs");
      tensors.push_back(TW_TRY(load_picture_as(path, picture_options_, inputs[0])));
    }
    const int64_t count = TW_TRY(check_tensors(tensors, inputs, path));
    for (int64_t n = 0; n < count && (limit_ == 0 || seen < limit_); ++n, ++seen) {
      std::vector<Tensor> sample;
      for (size_t i = 0; i < inputs.size(); ++i) sample.push_back(sample_of(tensors[i], inputs[i], n));
      TW_TRY_STATUS(visit(static_cast<double>(f) / static_cast<double>(files_.size()), sample));
    }
  }
  return Ok{};
}

}  // namespace tilewright::inputs
