// SPDX-License-Identifier: Apache-2.0
// The profile as a page: what it holds, that names from a model cannot leave their place, and that a browser shows it.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "runtime/artifact_maker.h"
#include "test_folders.h"

namespace tilewright::cli {
namespace {
using testing::TempFolder;

class ProfilePage : public ::testing::Test {
 protected:
  void SetUp() override {
    auto source = testing::small_model();
    source.plan.model_name = "</script><script>document.title='taken'</script>";
    source.plan.steps[0].source = "<img src=x onerror=alert(1)> & \"Add\"";
    testing::make_artifact(source, folder_ / "m.so");
    const std::string command = "cd " + (folder_ / ".") +
                                " && " TW_BUILD_DIR
                                "/tilewright run m.so --input ones --repeat 20 --html page.html >out.txt 2>err.txt";
    ASSERT_EQ(std::system(command.c_str()), 0) << testing::read_file(folder_ / "err.txt");
    page_ = testing::read_file(folder_ / "page.html");
  }
  nlohmann::json data() const {
    const std::string start = "<script type=\"application/json\" id=\"data\">";
    const size_t at = page_.find(start) + start.size();
    return nlohmann::json::parse(page_.substr(at, page_.find("</script>", at) - at));
  }
  TempFolder folder_;
  std::string page_;
};

TEST_F(ProfilePage, HoldsStepsRooflinesAndTheMemoryPlan) {
  const auto d = data();
  ASSERT_EQ(d["steps"].size(), 2u);
  EXPECT_EQ(d["steps"][0]["kernel"], "add_one");
  EXPECT_EQ(d["steps"][0]["from"], nlohmann::json::array({"i0"}));
  EXPECT_EQ(d["steps"][1]["from"], nlohmann::json::array({"s0"}));
  EXPECT_EQ(d["steps"][1]["buffers"].size(), 3u);
  for (const auto& step : d["steps"]) {
    EXPECT_GT(step["min_us"].get<double>(), 0);
    EXPECT_GT(step["roofline_us"].get<double>(), 0);
  }
  ASSERT_EQ(d["memory"].size(), 1u);
  EXPECT_EQ(d["memory"][0]["bytes"], 256);
  EXPECT_EQ(d["memory"][0]["first"], 0);
  EXPECT_EQ(d["memory"][0]["last"], 1);
  EXPECT_GT(d["peak_gflops"].get<double>(), 0);
}

TEST_F(ProfilePage, IsOneFileAndNamesStayInTheirPlace) {
  EXPECT_EQ(page_.find("http://", 0), page_.find("http://www.w3.org/2000/svg"));  // a name, not an address that is read
  EXPECT_EQ(page_.find("https://"), std::string::npos);
  EXPECT_EQ(page_.find(" src="), page_.find(" src=x onerror"));  // only inside the data
  EXPECT_EQ(page_.find("document.title='taken'</script>"), std::string::npos);
  EXPECT_EQ(data()["model"], "</script><script>document.title='taken'</script>");
}

TEST_F(ProfilePage, ABrowserShowsIt) {
  std::string browser;
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (browser.empty() && std::system(format("command -v {} >/dev/null 2>&1", name).c_str()) == 0) browser = name;
  if (browser.empty()) GTEST_SKIP() << "no browser is installed (chromium, chromium-browser or google-chrome)";
  const std::string command = format(
      "cd {} && HOME={} timeout 120 {} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
      "--window-size=1200,900 --virtual-time-budget=3000 "
      "--dump-dom page.html >dom.html 2>browser.txt",
      folder_ / ".", folder_ / ".", browser);
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 124) GTEST_SKIP() << "the browser did not finish within two minutes";
  ASSERT_EQ(status, 0) << testing::read_file(folder_ / "browser.txt");
  const std::string dom = testing::read_file(folder_ / "dom.html");
  EXPECT_NE(dom.find("data-ready=\"2\""), std::string::npos) << dom.substr(0, 2000);
  for (const char* part :
       {"class=\"node", "class=\"edge", "class=\"life", "add_one", "Memory plan over the steps", "of the roofline"})
    EXPECT_NE(dom.find(part), std::string::npos) << part;
  EXPECT_EQ(dom.find("<title>taken"), std::string::npos);
  EXPECT_EQ(dom.find("<img"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::cli
