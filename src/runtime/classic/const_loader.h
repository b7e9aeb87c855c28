// SPDX-License-Identifier: Apache-2.0
// The classic stack's module of constants: it wraps modules of external code generators and initialises each function
// by calling __init_<function> with its constants, before the function is first returned. Its bytes: vector<string>
// variables; u64 n, n tensor records; vector<string> functions; u64 m, m x vector<string>, the variables of each
// function.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/module.h"

namespace tilewright::runtime {

inline constexpr const char* kConstLoader = "const_loader";

struct ConstLoaderRecord {
  struct Variable {
    std::string name;
    DataType dtype;
    std::vector<int64_t> shape;
    std::span<const std::byte> data;
  };
  struct Function {
    std::string name;
    std::vector<std::string> variables;
  };
  std::vector<Variable> variables;
  std::vector<Function> functions;
};
std::string write_const_loader(const ConstLoaderRecord& record);
// Errors: BadArtifact.
Result<std::shared_ptr<Module>> load_const_loader(std::string_view bytes);

}  // namespace tilewright::runtime
