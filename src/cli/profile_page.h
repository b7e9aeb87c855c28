// SPDX-License-Identifier: Apache-2.0
// A profile as one page for a browser: the graph of fused kernels, the time and the roofline of each, the model's nodes
// it came from, and the memory plan over the steps. One file, nothing from the network.
#pragma once
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "cli/kernel_table.h"

namespace tilewright::cli {

// `rows` in the order of the plan's steps (kernel_rows).
std::string profile_page(const plan::Plan& plan, const std::vector<KernelRow>& rows, const MachinePeak& peak);

// What the page shows, as JSON.
std::string profile_page_data(const plan::Plan& plan, const std::vector<KernelRow>& rows, const MachinePeak& peak);

// The page without its data, which belongs where kPageData stands (profile_page_html.cc).
inline constexpr const char* kPageData = "@DATA@";
extern const char* const kPageHtml;

}  // namespace tilewright::cli
