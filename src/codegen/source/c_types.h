// SPDX-License-Identifier: Apache-2.0
// Spelling of the loop IR's types and numbers in C99.
#pragma once
#include <optional>
#include <string>

#include "base/dtype.h"

namespace tilewright::codegen {

// The C type of an element in memory and as a value ("float", "uint8_t"); null if C has none. Floats of 16 bits or
// fewer are integers holding their bits, bool is uint8_t, integers below 8 bits are held in the next larger type.
const char* c_type(DataType dtype);
// The type of elements in memory: those below 8 bits are packed into bytes.
inline const char* c_storage_type(DataType dtype) { return dtype.bits < 8 ? "uint8_t" : c_type(dtype.element()); }
// "f32", "i64", "u8", as in names of helper functions. Narrow integers are computed as "i32".
std::string c_suffix(DataType dtype);
// A constant, in parentheses if necessary.
std::string c_integer(int64_t value, DataType dtype);
std::string c_float(double value, DataType dtype);
// Turns any text into an identifier that is neither a keyword nor a name of the C library.
std::string c_identifier(const std::string& text);
// Makes any text safe inside a comment.
std::string c_comment(const std::string& text);
// A string literal of any text.
std::string c_string(const std::string& text);
inline bool is_bits_float(DataType t) { return t.is_float() && t.bits <= 16; }

// The definitions of all helper functions (tw_...) that `code` calls directly or indirectly, in a fixed order.
std::string c_helpers(const std::string& code);
// The includes that those need.
std::string c_helper_headers(const std::string& helpers);
// The calls that convert a float of 16 bits or fewer to and from float.
std::string c_widen_call(DataType from, const std::string& value);
std::string c_narrow_call(DataType to, const std::string& value);

}  // namespace tilewright::codegen
