// SPDX-License-Identifier: Apache-2.0
#include "base/advice.h"

#include <cstdlib>
#include <cstring>

namespace tilewright {
namespace {

// By error number, as one string: a table of pointers would take three times the space in the runtime library.
constexpr char kAdvice[] =
    "101 'tilewright VERB --help' and docs/ say what can be given\0"
    "102 check the path and its permissions\0"
    "103 check that the folder exists, may be written and has free space\0"
    "104 make it smaller, or free memory\0"
    "201 fetch or export the model again\0"
    "202 'tilewright ops --onnx' lists what imports; export the model with the operator written out\0"
    "203 give sizes with --shape, or export the model without it\0"
    "204 give the sizes with --shape name=1x3x224x224\0"
    "301 check shapes and dtypes; of a model's file, the sizes given with --shape\0"
    "302 'tilewright ops' lists the operators\0"
    "303 correct the text at that place\0"
    "304 leave the pass out with --disable-pass, and report this\0"
    "305 'tilewright passes' lists them\0"
    "401 'tilewright targets' shows this machine and portable choices\0"
    "402 report this with the model; another -mcpu may help meanwhile\0"
    "403 check what is linked, and the free space of the temporary folder\0"
    "501 copy the file or compile the model again\0"
    "502 compile the model again with the version you run\0"
    "503 compile the model on this machine, or with --target for an older CPU\0"
    "504 'tilewright inspect' shows the model's inputs and outputs\0"
    "505 reshape it, or compile the model for this shape\0"
    "506 convert it, for instance with numpy's astype\0"
    "507 check the name, and that its library is loaded\0"
    "601 report this; --disable-pass with the pass to blame gets you on\0"
    "602 raise --time-limit or --memory-limit\0"
    "603 run it again\0"
    "701 see that the other process still runs; then connect again\0"
    "702 both sides need one token: 'tilewright token' says where it lies\0"
    "703 both sides should have one version; connect again\0"
    "704 the message is the remote machine's\0";
constexpr const char* kBug = "this is a bug in Tilewright; please report it with the model and the command";

[[gnu::cold]] const char* usual_advice(ErrorCode code) {
  for (const char* row = kAdvice; *row; row += std::strlen(row) + 1)
    if (std::atoi(row) == static_cast<int>(code)) return row + 4;
  return kBug;
}

}  // namespace

[[gnu::cold]] std::string advice(const Diagnostic& error) {
  if (!error.hint.empty()) return error.hint;
  if (error.message.find("\n  hint: ") != std::string::npos) return "";
  return usual_advice(error.code);
}

}  // namespace tilewright
