// SPDX-License-Identifier: Apache-2.0
// Attribute visitor for passes that only need an operator's string fields: layouts, dtype names, modes.
#pragma once
#include "ir/attrs.h"

namespace tilewright {

class StringFields : public AttrVisitor {
 public:
  virtual void field(const char* name, std::string* value) = 0;

  void visit(const char*, bool*) final {}
  void visit(const char*, int64_t*) final {}
  void visit(const char*, double*) final {}
  void visit(const char* name, std::string* value) final { field(name, value); }
  void visit(const char*, DataType*) final {}
  void visit(const char*, std::optional<int64_t>*) final {}
  void visit(const char*, std::vector<int64_t>*) final {}
  void visit(const char*, std::optional<std::vector<int64_t>>*) final {}
  void visit(const char*, std::vector<double>*) final {}
  void visit(const char*, std::vector<std::string>*) final {}
  void visit(const char*, std::vector<std::vector<int64_t>>*) final {}
};

}  // namespace tilewright
