// SPDX-License-Identifier: Apache-2.0
// GNU vector types in generated C, and the functions on them. A type's name is tw_ELEMENTxLANES ("tw_f32x8"); the same
// with "_at" is the type of such elements in memory, aligned as one element is. Lanes are a power of two: a vector of
// the loop IR with another number has more in C, of no meaning.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace tilewright::codegen {

struct CVector {
  char kind;  // 'f', 'i' or 'u'
  int bits, lanes;
  std::string name() const;
  std::string element() const;  // "float", "uint8_t"
  int width() const { return bits * lanes; }
  CVector with(char other) const { return {other, bits, lanes}; }
  CVector mask() const { return with('i'); }  // what comparisons give: all bits of a lane, or none
  CVector half() const { return {kind, bits, lanes / 2}; }
};

// The type of an expression's value; small floats are their bits. A bool has none: it is a mask of some width.
CVector c_vector(DataType dtype);
// Whether operators of C on such lanes are those of the loop IR: not for small floats and integers below 8 bits.
bool is_plain_vector(DataType dtype);
// Reads "f32x8" or "f32x8_at".
std::optional<CVector> parse_c_vector(const std::string& text);

// The text of a function "tw_OP_f32x8"; none if the name is no function on vectors. It may call others.
std::optional<std::string> c_vector_function(const std::string& name);
// One of elementary functions of float lanes (c_vector_math.cc); none if there is none of this name.
std::optional<std::string> c_vector_math(const std::string& op, const CVector& t);
// The head of an inlined function on vectors; `params`: "tw_f32x8 x".
std::string c_vector_head(const std::string& result, const std::string& name, const std::string& params);
// What stands before the functions: type definitions of all these names.
std::string c_vector_definitions(const std::set<std::string>& names);

}  // namespace tilewright::codegen
