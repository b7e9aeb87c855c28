// SPDX-License-Identifier: Apache-2.0
#include "tilewright/compiler.h"
#include "tilewright/function.h"
bool fits(const std::string& graph);
tilewright::Module make_module(const std::string& symbol, const std::string& graph,
                               const std::vector<DLTensor>& constants);
tilewright::Module load_module(const std::string& bytes);
tilewright::ExternalCodegen codegen();
namespace accelerator {
void register_loader();
}
