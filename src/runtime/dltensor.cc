// SPDX-License-Identifier: Apache-2.0
#include "runtime/dltensor.h"

#include <cstring>

#include "base/format.h"
#include "base/tensor.h"

namespace tilewright::runtime {
namespace {

constexpr int kMaxRank = 32;

struct CodePair {
  TypeCode code;
  uint8_t dlpack;
};
constexpr CodePair kCodes[] = {
    {TypeCode::kInt, kDLInt},
    {TypeCode::kUInt, kDLUInt},
    {TypeCode::kFloat, kDLFloat},
    {TypeCode::kBFloat, kDLBfloat},
    {TypeCode::kBool, kDLBool},
    {TypeCode::kFloat8E4M3FN, kDLFloat8_e4m3fn},
    {TypeCode::kFloat8E4M3FNUZ, kDLFloat8_e4m3fnuz},
    {TypeCode::kFloat8E5M2, kDLFloat8_e5m2},
    {TypeCode::kFloat8E5M2FNUZ, kDLFloat8_e5m2fnuz},
    {TypeCode::kFloat8E8M0, kDLFloat8_e8m0fnu},
    {TypeCode::kFloat4E2M1, kDLFloat4_e2m1fn},
    {TypeCode::kComplex, kDLComplex},
    {TypeCode::kString, kDLOpaqueHandle},
    {TypeCode::kHandle, kDLOpaqueHandle},
};

std::string dtype_str(DLDataType t) {
  for (const auto& pair : kCodes)
    if (pair.dlpack == t.code && pair.code != TypeCode::kString) return DataType{pair.code, t.bits, t.lanes}.str();
  return format("dtype(code {}, {} bits, {} lanes)", t.code, t.bits, t.lanes);
}

// Visits the rows of a strided tensor: `row(strided address, compact offset)` per innermost run.
template <class F>
void each_element(const DLTensor& t, uint64_t item, F visit) {
  int64_t index[kMaxRank] = {};
  int64_t count = 1;
  for (int d = 0; d < t.ndim; ++d) count *= t.shape[d];
  char* at = static_cast<char*>(data_of(t));
  for (int64_t i = 0; i < count; ++i) {
    visit(at, static_cast<uint64_t>(i) * item);
    for (int d = t.ndim - 1; d >= 0; --d) {
      at += t.strides[d] * static_cast<int64_t>(item);
      if (++index[d] < t.shape[d]) break;
      at -= index[d] * t.strides[d] * static_cast<int64_t>(item);
      index[d] = 0;
    }
  }
}

uint64_t element_count(const DLTensor& t) {
  uint64_t n = 1;
  for (int d = 0; d < t.ndim; ++d) n *= static_cast<uint64_t>(t.shape[d]);
  return n;
}

Status refuse_packed_strides(DataType dtype) {
  if (dtype.bits % 8 == 0) return Ok{};
  return Diagnostic(ErrorCode::kInvalidArgument, format("a {} tensor with strides cannot be copied", dtype.str()), {},
                    "pass a compact row-major tensor");
}

}  // namespace

DLDataType to_dlpack(DataType dtype) {
  for (const auto& pair : kCodes)
    if (pair.code == dtype.code) return {pair.dlpack, dtype.bits, dtype.lanes};
  return {kDLOpaqueHandle, 0, 1};
}

Result<DataType> from_dlpack(DLDataType t) {
  for (const auto& pair : kCodes)
    if (pair.dlpack == t.code && pair.code != TypeCode::kString && pair.code != TypeCode::kHandle) {
      DataType dtype{pair.code, t.bits, t.lanes};
      auto known = parse_dtype(dtype.str());
      if (t.lanes == 1 && known.ok() && *known == dtype) return dtype;
    }
  return Diagnostic(ErrorCode::kDtypeMismatch, format("tensors of {} are not supported", dtype_str(t)));
}

std::string describe(const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > kMaxRank || (t.ndim > 0 && !t.shape)) return dtype_str(t.dtype) + " of an invalid shape";
  return dtype_str(t.dtype) + " " + shape_str(std::span<const int64_t>(t.shape, static_cast<size_t>(t.ndim)));
}

std::string describe(const plan::TensorInfo& info) { return info.dtype.str() + " " + shape_str(info.shape); }

uint64_t byte_size(const plan::TensorInfo& info) {
  uint64_t n = 1;
  for (int64_t d : info.shape) n *= static_cast<uint64_t>(d);
  return info.dtype.bytes_for(n);
}

Status check_tensor(const DLTensor* tensor, const plan::TensorInfo& info, const std::string& role) {
  auto invalid = [&](std::string what) { return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), role); };
  if (!tensor) return invalid("the tensor is null");
  const DLTensor& t = *tensor;
  if (t.ndim < 0 || t.ndim > kMaxRank || (t.ndim > 0 && !t.shape)) return invalid("the tensor has an invalid shape");
  if (t.device.device_type != kDLCPU && t.device.device_type != kDLCUDAHost && t.device.device_type != kDLROCMHost)
    return invalid(
        format("the tensor is on device type {}, not in host memory", static_cast<int>(t.device.device_type)));
  DLDataType want = to_dlpack(info.dtype);
  if (info.dtype.is_string() || t.dtype.code != want.code || t.dtype.bits != want.bits || t.dtype.lanes != want.lanes)
    return Diagnostic(ErrorCode::kDtypeMismatch, format("expected {}, got {}", describe(info), describe(t)), role,
                      info.dtype.is_string() ? "string tensors cannot be passed to compiled code"
                                             : format("convert the tensor to {}", info.dtype.str()));
  bool same = static_cast<size_t>(t.ndim) == info.shape.size();
  for (int d = 0; same && d < t.ndim; ++d) same = t.shape[d] == info.shape[static_cast<size_t>(d)];
  if (!same)
    return Diagnostic(ErrorCode::kShapeMismatch, format("expected {}, got {}", describe(info), describe(t)), role,
                      "reshape the tensor, or compile the model for this shape with --shape");
  if (!t.data && byte_size(info) != 0) return invalid("the tensor has no data");
  return Ok{};
}

bool is_compact(const DLTensor& t) {
  if (!t.strides) return true;
  int64_t expected = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (t.shape[d] == 0) return true;
    if (t.shape[d] != 1 && t.strides[d] != expected) return false;
    expected *= t.shape[d];
  }
  return true;
}

Status copy_from(const DLTensor& t, DataType dtype, void* compact) {
  if (is_compact(t)) {
    if (uint64_t n = dtype.bytes_for(element_count(t))) std::memcpy(compact, data_of(t), n);
    return Ok{};
  }
  TW_TRY_STATUS(refuse_packed_strides(dtype));
  uint64_t item = dtype.bytes();
  each_element(t, item,
               [&](const char* at, uint64_t offset) { std::memcpy(static_cast<char*>(compact) + offset, at, item); });
  return Ok{};
}

Status copy_to(const DLTensor& t, DataType dtype, const void* compact) {
  if (is_compact(t)) {
    if (uint64_t n = dtype.bytes_for(element_count(t))) std::memcpy(data_of(t), compact, n);
    return Ok{};
  }
  TW_TRY_STATUS(refuse_packed_strides(dtype));
  uint64_t item = dtype.bytes();
  each_element(t, item,
               [&](char* at, uint64_t offset) { std::memcpy(at, static_cast<const char*>(compact) + offset, item); });
  return Ok{};
}

}  // namespace tilewright::runtime
