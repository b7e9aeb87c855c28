// SPDX-License-Identifier: Apache-2.0
// A profile as a single HTML page without external resources: the graph of fused kernels, each one's time and roofline,
// the model's nodes it computes, and the memory plan over the steps.
#pragma once
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "cli/kernel_table.h"

namespace tilewright::cli {

// `rows` in the order of the plan's steps (kernel_rows).
std::string profile_page(const plan::Plan& plan, const std::vector<KernelRow>& rows, const MachinePeak& peak);

// The page's data as JSON.
std::string profile_page_data(const plan::Plan& plan, const std::vector<KernelRow>& rows, const MachinePeak& peak);

// The page template, with kPageData as the placeholder for the data (profile_page_html.cc).
inline constexpr const char* kPageData = "@DATA@";
extern const char* const kPageHtml;

}  // namespace tilewright::cli
