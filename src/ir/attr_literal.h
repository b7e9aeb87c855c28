// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tilewright {

// A string attribute that begins with this character is not a string: the rest is the text of a value that no kind of
// AttrValue holds, as None, a map or a list of several kinds. Texts have it without quotes.
inline constexpr char kLiteralAttr = '\x01';

}  // namespace tilewright
