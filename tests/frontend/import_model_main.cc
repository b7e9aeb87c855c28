// SPDX-License-Identifier: Apache-2.0
// Imports a model and prints what it became: import_model FILE.onnx [NAME=1x3x224x224]...
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "frontend/onnx/import.h"
#include "relay/op.h"

using namespace tilewright;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  onnx::ImportOptions options;
  for (int i = 2; i < argc; ++i) {
    std::string text = argv[i];
    size_t eq = text.find('=');
    if (eq == std::string::npos) return 2;
    auto& sizes = options.shapes[text.substr(0, eq)];
    for (const char* p = text.c_str() + eq; *p;) {
      char* end = nullptr;
      sizes.push_back(std::strtoll(p + 1, &end, 10));
      p = end;
      if (p == nullptr || (*p != 'x' && *p)) return 2;
    }
  }
  auto begin = std::chrono::steady_clock::now();
  auto module = onnx::import_onnx(argv[1], options);
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (!module) {
    std::printf("%s\n", module.error().str().c_str());
    return 1;
  }
  std::map<std::string, int> counts;
  const auto* main = module->main_function();
  for (const auto& e : relay::post_order(main->body))
    if (const auto* op = relay::called_op(e)) ++counts[op->name];
  std::printf("%s: %.0f ms;", argv[1], ms);
  for (const auto& p : main->params) std::printf(" %s", type_str(p->type).c_str());
  std::printf(" -> %s\n ", type_str(main->body->type).c_str());
  for (const auto& [name, n] : counts) std::printf(" %s:%d", name.c_str(), n);
  std::printf("\n");
}
