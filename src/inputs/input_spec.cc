// SPDX-License-Identifier: Apache-2.0
#include "inputs/input_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/format.h"
#include "base/read_whole.h"
#include "inputs/file.h"
#include "inputs/picture.h"
#include "inputs/tensor_proto.h"

namespace tilewright::inputs {

const char* const kInputHelp =
    R"(Inputs, --input [NAME=]VALUE (once for each; NAME may be left out when the model has one input):
  @x.npy  @x.npz  @x.npz:ENTRY  @x.pb     a tensor of the model's shape and dtype; an .npz without a NAME
                                          sets every input that it has an entry for
  @photo.jpg[,OPTION=...]                 a picture; options:
      resize=WxH | short=N                  resize exactly, or to a shorter side of N (default: the model's size)
      crop=N                                then cut an NxN square out of the middle
      filter=antialias|bilinear             as Pillow (default) or as OpenCV resizes
      scale=S mean=A,B,C std=A,B,C          (pixel*S - mean) / std; S is 1/255 for floating inputs
      preset=imagenet                       shorter side 256/224 of the model's size, crop, ImageNet's mean and std
      color=rgb|bgr|gray layout=nchw|nhwc
  random[,low=A,high=B]  zeros  ones      random is uniform in [0, 1) for floats, 0 or 1 for integers
  1,2,3                                   numbers: one for the whole tensor, or one per element
Inputs that are not given are random (--seed).)";

namespace {

std::string sizes(const std::vector<int64_t>& shape);

Diagnostic usage(std::string what, std::string hint = "see --help for the forms of --input") {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), "--input", std::move(hint));
}

bool parse_number(std::string_view text, double* out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (;;) {
    size_t at = text.find(separator);
    out.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

struct Spec {
  std::string name, value;  // the name is empty when none was given
  std::vector<std::pair<std::string, std::string>> options;
};

// A part after a comma without '=' continues the preceding option or list: mean=0.5,0.4,0.3.
Result<Spec> parse_spec(const std::string& text) {
  Spec spec;
  std::string_view rest = text;
  size_t equals = rest.find('='), comma = rest.find(','), at = rest.find('@');
  if (equals != std::string_view::npos && equals < std::min(comma, at)) {
    spec.name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
  }
  auto parts = split(rest, ',');
  spec.value = parts[0];
  if (spec.value.empty()) return usage(format("'{}' gives no value", text));
  for (size_t i = 1; i < parts.size(); ++i) {
    size_t eq = parts[i].find('=');
    if (eq != std::string::npos)
      spec.options.emplace_back(parts[i].substr(0, eq), parts[i].substr(eq + 1));
    else if (!spec.options.empty())
      spec.options.back().second += "," + parts[i];
    else
      spec.value += "," + parts[i];
  }
  return spec;
}

Result<std::vector<double>> numbers(const std::string& key, const std::string& text) {
  std::vector<double> out;
  for (const auto& part : split(text, text.find(':') != std::string::npos ? ':' : ',')) {
    double v = 0;
    if (!parse_number(part, &v)) return usage(format("{}={} is not a list of numbers", key, text));
    out.push_back(v);
  }
  return out;
}

Result<int> whole(const std::string& key, const std::string& text) {
  int v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size() || v < 1 || v > (1 << 15))
    return usage(format("{}={} is not a size from 1 to 32768", key, text));
  return v;
}

Result<PictureOptions> picture_options(const Spec& spec, const InputInfo& input) {
  PictureOptions o;
  auto choice = [&](const std::string& key, const std::string& value,
                    std::initializer_list<const char*> allowed) -> Status {
    for (const char* a : allowed)
      if (value == a) return Ok{};
    return usage(format("{}={} is not known", key, value));
  };
  for (const auto& [key, value] : spec.options) {
    if (key == "resize") {
      size_t x = value.find('x');
      if (x == std::string::npos)
        return usage(format("resize={} should look like resize=224x224 (width x height)", value));
      o.width = TW_TRY(whole(key, value.substr(0, x)));
      o.height = TW_TRY(whole(key, value.substr(x + 1)));
    } else if (key == "short") {
      o.shorter = TW_TRY(whole(key, value));
    } else if (key == "crop") {
      o.crop = TW_TRY(whole(key, value));
    } else if (key == "filter") {
      TW_TRY_STATUS(choice(key, value, {"antialias", "bilinear"}));
      o.antialias = value == "antialias";
    } else if (key == "mean") {
      o.mean = TW_TRY(numbers(key, value));
    } else if (key == "std") {
      o.std = TW_TRY(numbers(key, value));
      for (double s : o.std)
        if (s == 0) return usage("std must not be 0");
    } else if (key == "scale") {
      o.scale = TW_TRY(numbers(key, value))[0];
    } else if (key == "color") {
      TW_TRY_STATUS(choice(key, value, {"rgb", "bgr", "gray"}));
      o.color = value;
    } else if (key == "layout") {
      TW_TRY_STATUS(choice(key, value, {"nchw", "nhwc"}));
      o.layout = value;
    } else if (key == "preset") {
      TW_TRY_STATUS(choice(key, value, {"imagenet"}));
      bool last = input.shape.size() >= 3 && input.shape.back() == 3;
      int64_t side = input.shape.size() < 3 ? 224 : last ? input.shape[input.shape.size() - 2] : input.shape.back();
      o.crop = static_cast<int>(std::clamp<int64_t>(side, 1, 1 << 15));
      o.shorter = static_cast<int>(std::lround(o.crop * 256.0 / 224));
      o.mean = {0.485, 0.456, 0.406};
      o.std = {0.229, 0.224, 0.225};
    } else {
      return usage(format("pictures have no option '{}'", key));
    }
  }
  return o;
}

// splitmix64: small, and identical everywhere (unlike the standard library's distributions).
uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Result<Tensor> filled(const InputInfo& input, double low, double high, uint64_t seed) {
  if (input.dtype.is_string() || input.dtype.code == TypeCode::kComplex)
    return Diagnostic(ErrorCode::kDtypeMismatch, format("{} tensors cannot be made up", input.dtype.str()),
                      "input '" + input.name + "'", "give the tensor in a file");
  if (std::count(input.shape.begin(), input.shape.end(), kFreeSize) > 0)
    return Diagnostic(ErrorCode::kFreeDimension, format("its size {} is free", sizes(input.shape)),
                      "input '" + input.name + "'",
                      format("give it with --shape {}=..., or a tensor in a file", input.name));
  Tensor t = Tensor::zeros(input.dtype, input.shape);
  bool integral = !input.dtype.is_float();
  for (int64_t i = 0; i < t.size(); ++i) {
    double unit = static_cast<double>(next_random(&seed) >> 11) * 0x1p-53;
    double v = low + (high - low) * unit;
    t.set_double(i, integral ? std::floor(v) : v);
  }
  return t;
}

Result<Tensor> random_tensor(const InputInfo& input, const Spec& spec, uint64_t seed) {
  double low = 0, high = input.dtype.is_float() ? 1 : 2;
  for (const auto& [key, value] : spec.options) {
    if (key != "low" && key != "high") return usage(format("random has no option '{}'", key));
    (key == "low" ? low : high) = TW_TRY(numbers(key, value))[0];
  }
  if (!(low < high)) return usage("random needs low below high");
  return filled(input, low, high, seed);
}

Result<Tensor> literal(const InputInfo& input, const std::string& text) {
  auto values = TW_TRY(numbers("value", text));
  Tensor t = TW_TRY(filled(input, 0, 0, 0));
  if (values.size() != 1 && static_cast<int64_t>(values.size()) != t.size())
    return Diagnostic(ErrorCode::kShapeMismatch,
                      format("{} numbers are given for {} elements", values.size(), t.size()),
                      "input '" + input.name + "'", "give one number for the whole tensor, or one per element");
  for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, values[values.size() == 1 ? 0 : static_cast<size_t>(i)]);
  return t;
}

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](auto s) { return path.ends_with(s); });
}

std::string sizes(const std::vector<int64_t>& shape) {
  std::string out = shape.empty() ? "scalar" : "";
  for (int64_t d : shape) out += (out.empty() ? "" : "x") + (d == kFreeSize ? "?" : std::to_string(d));
  return out;
}

Status fits(const Tensor& t, const InputInfo& input, const std::string& where) {
  std::string wanted = format("input '{}' takes {} {}", input.name, input.dtype.str(), sizes(input.shape));
  std::string got = format("the tensor is {} {}", t.dtype().str(), shape_str(t.shape()));
  if (!(t.dtype() == input.dtype))
    return Diagnostic(ErrorCode::kDtypeMismatch, wanted + ", " + got, where,
                      format("convert it to {}", input.dtype.str()));
  bool same = t.shape().size() == input.shape.size();
  for (size_t d = 0; same && d < input.shape.size(); ++d)
    same = input.shape[d] == kFreeSize || input.shape[d] == t.shape()[d];
  if (!same)
    return Diagnostic(ErrorCode::kShapeMismatch, wanted + ", " + got, where,
                      "reshape it, or compile the model for this shape with --shape");
  return Ok{};
}

std::string names_of(const std::vector<InputInfo>& inputs) {
  std::string out = inputs.empty() ? "the model has no inputs" : "the model's inputs are ";
  for (size_t i = 0; i < inputs.size(); ++i)
    out += format("{}'{}' ({} {})", i ? ", " : "", inputs[i].name, inputs[i].dtype.str(), sizes(inputs[i].shape));
  return out;
}

}  // namespace

Result<Tensor> load_picture_as(const std::string& path, const std::string& options, const InputInfo& input) {
  const Spec spec = TW_TRY(parse_spec(options.empty() ? "@" : "@," + options));
  return load_picture(path, TW_TRY(picture_options(spec, input)), input.dtype, input.shape);
}

Result<NamedTensors> read_tensor_file(const std::string& path) {
  std::string bytes = TW_TRY(read_whole(path));
  auto placed = [&](auto result) {
    return result.ok() ? std::move(result) : decltype(result)(std::move(result).error().at(path));
  };
  if (path.ends_with(".npz")) return TW_TRY(placed(read_npz(bytes_of(bytes))));
  if (path.ends_with(".npy")) {
    Tensor tensor = TW_TRY(placed(read_npy(bytes_of(bytes))));
    return NamedTensors{{"", tensor}};
  }
  if (path.ends_with(".pb")) {
    auto proto = TW_TRY(placed(read_tensor_proto(bytes_of(bytes))));
    return NamedTensors{{proto.name, proto.tensor}};
  }
  return Diagnostic(ErrorCode::kInvalidArgument, "the file's suffix says nothing about what is in it", path,
                    "use .npy, .npz or .pb");
}

Status write_tensor_file(const std::string& path, const NamedTensors& tensors) {
  std::string bytes;
  if (path.ends_with(".npz")) {
    bytes = TW_TRY(write_npz(tensors));
  } else if (ends_with_any(path, {".npy", ".pb"})) {
    if (tensors.size() != 1)
      return Diagnostic(ErrorCode::kInvalidArgument, format("{} tensors do not fit into one such file", tensors.size()),
                        path, "use a name that ends in .npz");
    bytes = path.ends_with(".npy") ? TW_TRY(write_npy(tensors[0].second))
                                   : TW_TRY(write_tensor_proto(tensors[0].first, tensors[0].second));
  } else {
    return Diagnostic(ErrorCode::kInvalidArgument, "the file's suffix does not say what to write", path,
                      "use .npz, .npy or .pb");
  }
  return write_file(path, bytes_of(bytes));
}

Result<std::vector<Tensor>> make_inputs(const std::vector<InputInfo>& inputs, const std::vector<std::string>& specs,
                                        uint64_t seed) {
  std::vector<Tensor> out(inputs.size());
  auto find = [&](const std::string& name) -> std::optional<size_t> {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].name == name) return i;
    return std::nullopt;
  };
  for (const std::string& text : specs) {
    Spec spec = TW_TRY(parse_spec(text));
    bool is_file = spec.value[0] == '@';
    std::string path = is_file ? spec.value.substr(1) : "", entry;
    if (size_t colon = path.rfind(".npz:"); colon != std::string::npos) {
      entry = path.substr(colon + 5);
      path.resize(colon + 4);
    }
    if (spec.name.empty() && path.ends_with(".npz") && entry.empty()) {
      bool used = false;
      for (auto& [name, tensor] : TW_TRY(read_tensor_file(path))) {
        auto index = find(name);
        if (!index) continue;
        TW_TRY_STATUS(fits(tensor, inputs[*index], path));
        out[*index] = std::move(tensor);
        used = true;
      }
      if (!used)
        return Diagnostic(ErrorCode::kUnknownInput, "no entry of the file has the name of an input", path,
                          names_of(inputs));
      continue;
    }
    if (spec.name.empty() && inputs.size() != 1)
      return usage(format("'{}' does not say which input it is for", text), names_of(inputs));
    auto index = spec.name.empty() ? std::optional<size_t>(0) : find(spec.name);
    if (!index)
      return Diagnostic(ErrorCode::kUnknownInput, format("no input is named '{}'", spec.name), "--input",
                        names_of(inputs));
    const InputInfo& input = inputs[*index];
    bool is_picture = is_file && !ends_with_any(path, {".npy", ".npz", ".pb"});
    if (!is_picture && spec.value != "random" && !spec.options.empty())
      return usage(format("'{}' has no option '{}'", spec.value, spec.options[0].first));
    if (is_picture) {
      out[*index] = TW_TRY(load_picture(path, TW_TRY(picture_options(spec, input)), input.dtype, input.shape));
    } else if (is_file) {
      auto tensors = TW_TRY(read_tensor_file(path));
      size_t chosen = 0;
      if (path.ends_with(".npz")) {
        const std::string& wanted = entry.empty() ? spec.name : entry;
        for (chosen = 0; chosen < tensors.size() && tensors[chosen].first != wanted;) ++chosen;
        if (entry.empty() && tensors.size() == 1) chosen = 0;
        if (chosen == tensors.size())
          return Diagnostic(ErrorCode::kUnknownInput, format("the file has no entry '{}'", wanted), path,
                            "name it: @x.npz:ENTRY");
      }
      TW_TRY_STATUS(fits(tensors[chosen].second, input, path));
      out[*index] = std::move(tensors[chosen].second);
    } else if (spec.value == "random") {
      out[*index] = TW_TRY(random_tensor(input, spec, seed + *index));
    } else if (spec.value == "zeros" || spec.value == "ones") {
      double v = spec.value == "ones";
      out[*index] = TW_TRY(filled(input, v, v, 0));
    } else {
      out[*index] = TW_TRY(literal(input, spec.value));
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!out[i].defined()) out[i] = TW_TRY(random_tensor(inputs[i], {}, seed + i));
  return out;
}

}  // namespace tilewright::inputs
