// SPDX-License-Identifier: Apache-2.0
// How values and numbers of the loop IR are written in C99.
#pragma once
#include <optional>
#include <string>

#include "base/dtype.h"

namespace tilewright::codegen {

// The C type of an element in memory and as a value ("float", "uint8_t"); null where C has none. Floats of 16 bits and
// fewer are integers that hold their bits, bool is uint8_t, integers of fewer than 8 bits lie in the next larger type.
const char* c_type(DataType dtype);
// The same of elements in memory: of fewer than 8 bits, the bytes that hold them.
inline const char* c_storage_type(DataType dtype) { return dtype.bits < 8 ? "uint8_t" : c_type(dtype.element()); }
// "f32", "i64", "u8": in the names of helper functions. Small integers compute as "i32".
std::string c_suffix(DataType dtype);
// A constant, parenthesised where it needs to be.
std::string c_integer(int64_t value, DataType dtype);
std::string c_float(double value, DataType dtype);
// Any text as an identifier that is no keyword and no name of the C library's.
std::string c_identifier(const std::string& text);
// Any text as a piece of a comment.
std::string c_comment(const std::string& text);
inline bool is_bits_float(DataType t) { return t.is_float() && t.bits <= 16; }

// The definitions of the helper functions (tw_...) that `code` calls, and of those which these call, in a fixed order.
std::string c_helpers(const std::string& code);
// What those need to have included.
std::string c_helper_headers(const std::string& helpers);
// The calls that convert a float of 16 bits or fewer to and from float.
std::string c_widen_call(DataType from, const std::string& value);
std::string c_narrow_call(DataType to, const std::string& value);

}  // namespace tilewright::codegen
