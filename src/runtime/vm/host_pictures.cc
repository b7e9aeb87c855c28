// SPDX-License-Identifier: Apache-2.0
// ImageDecoder: decodes images to tensors. The decoders are in a separate library, opened on first use.
#include <dlfcn.h>

#include <string>

#include "base/format.h"
#include "runtime/vm/host_functions.h"

namespace tilewright::runtime::vm {
namespace {

constexpr const char* kPicturesLibrary = "libtilewright_pictures.so";

using DecodePicture = int32_t (*)(const uint8_t* bytes, uint64_t size,
                                  uint8_t* (*allocate)(void* context, int64_t height, int64_t width), void* context,
                                  const char** missing);

struct Decoders {
  DecodePicture decode = nullptr;
  std::string why;  // why it could not be opened
};

// Searched beside the program or library that contains the runtime, in the installation's lib, and on the system's
// path. Stays open until the process ends.
Decoders open_decoders() {
  Decoders out;
  Dl_info own{};
  std::string folder;
  if (dladdr(reinterpret_cast<const void*>(&open_decoders), &own) && own.dli_fname) {
    const std::string file(own.dli_fname);
    if (const size_t slash = file.rfind('/'); slash != std::string::npos) folder = file.substr(0, slash + 1);
  }
  for (const std::string& place :
       {folder + kPicturesLibrary, folder + "../lib/" + kPicturesLibrary, std::string(kPicturesLibrary)}) {
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      out.decode = reinterpret_cast<DecodePicture>(dlsym(library, "tw_pictures_decode"));
      if (out.decode) return out;
    }
    if (const char* error = dlerror()) out.why = error;
  }
  return out;
}

struct Pixels {
  HostCall& call;
  Tensor tensor;
  Status status = Ok{};
};

uint8_t* allocate_pixels(void* context, int64_t height, int64_t width) {
  auto& into = *static_cast<Pixels*>(context);
  auto made = into.call.pool.allocate(kUInt8, {height, width, 3});
  if (!made.ok()) {
    into.status = std::move(made).error();
    return nullptr;
  }
  into.tensor = std::move(*made);
  return reinterpret_cast<uint8_t*>(into.tensor.mutable_raw());
}

// Luma by ITU-R 601, in rounded 16-bit fixed point.
Result<Tensor> in_grey(HostCall& c, const Tensor& rgb) {
  Tensor out = TW_TRY(c.pool.allocate(kUInt8, {rgb.shape()[0], rgb.shape()[1], 1}));
  const auto* from = reinterpret_cast<const uint8_t*>(rgb.raw());
  auto* to = reinterpret_cast<uint8_t*>(out.mutable_raw());
  for (int64_t i = 0; i < out.size(); ++i, from += 3)
    to[i] = static_cast<uint8_t>((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
  return out;
}

Status image_decoder(HostCall& c) {
  static const Decoders decoders = open_decoders();
  const Tensor encoded = TW_TRY(c.tensor(0));
  if (encoded.dtype() != kUInt8)
    return Diagnostic(ErrorCode::kTypeMismatch,
                      format("an encoded picture is a vector of uint8, not {}", encoded.dtype().str()));
  const auto format_of = c.attributes.find("pixel_format");
  const std::string pixels = format_of == c.attributes.end() ? "RGB" : format_of->second;
  if (pixels != "RGB" && pixels != "BGR" && pixels != "Grayscale")
    return host_error(format("the pixel_format '{}' is unknown", pixels));
  if (!decoders.decode)
    return Diagnostic(ErrorCode::kLinkFailed, format("pictures cannot be decoded: {}", decoders.why), {},
                      format("put {} and the libraries it names beside the runtime", kPicturesLibrary));
  Pixels into{c, {}};
  const char* missing = "";
  const int32_t code = decoders.decode(reinterpret_cast<const uint8_t*>(encoded.raw()),
                                       static_cast<uint64_t>(encoded.size()), allocate_pixels, &into, &missing);
  TW_TRY_STATUS(std::move(into.status));
  if (code == 2)
    return Diagnostic(
        ErrorCode::kLinkFailed,
        format("this picture is decoded by {}, which was missing when {} was built", missing, kPicturesLibrary), {},
        "install it and build again, or give a BMP or PNM picture");
  const bool grey = pixels == "Grayscale";
  if (code != 0) {  // the operator's result for undecodable data
    c.give(0, make_tensor(TW_TRY(c.pool.allocate(kUInt8, {0, 0, grey ? 1 : 3}))));
    return Ok{};
  }
  if (grey) {
    c.give(0, make_tensor(TW_TRY(in_grey(c, into.tensor))));
    return Ok{};
  }
  if (pixels == "BGR") {
    auto* p = reinterpret_cast<uint8_t*>(into.tensor.mutable_raw());
    for (int64_t i = 0; i < into.tensor.size(); i += 3) std::swap(p[i], p[i + 2]);
  }
  c.give(0, make_tensor(std::move(into.tensor)));
  return Ok{};
}

constexpr HostEntry kPictureFunctions[] = {{"ImageDecoder", image_decoder}};

}  // namespace

std::span<const HostEntry> picture_functions() { return kPictureFunctions; }

}  // namespace tilewright::runtime::vm
