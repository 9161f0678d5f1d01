// What a node does where the driver gives no addresses, or others than a node wants.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/address_mode.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

constexpr int kMegabytes = 4;

std::string Topology(const std::string& addresses) {
  return "version: v1\ngpus:\n  - {memory: 96MiB, count: 2}\nstrict: {addresses: " + addresses +
         "}\n";
}

class Addresses : public testing::TestWithParam<const char*> {
 protected:
  void Start(const std::string& settings = "") {
    node_ = std::make_unique<EmulatedNode>(Topology(GetParam()), std::vector<std::string>{"a"},
                                           settings);
    node_->Start();
    if (HasFatalFailure()) return;
    node_->StartFunction("a", {std::string(DRIVEN_DIR) + "/state_server", "--megabytes",
                               std::to_string(kMegabytes)});
  }
  void TearDown() override {
    if (HasFailure() && node_ != nullptr) std::fputs(node_->Logs().c_str(), stderr);
  }

  std::unique_ptr<EmulatedNode> node_;
};

// The function's answers are right, and everybody is told of the other mode.
TEST_P(Addresses, RefusedOnesLeaveFunctionsWithTranslatedOnes) {
  if (IsTranslating()) GTEST_SKIP() << "needs no addresses";
  ASSERT_NO_FATAL_FAILURE(Start());
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const Reply reply = node_->PostOne("/function/a/add", "{\"value\":[1]}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    const std::uint64_t sum = round * (std::uint64_t{kMegabytes} << 18);
    EXPECT_EQ(reply.body, "{\"sum\":" + std::to_string(sum) + "}\n");
  }
  const nlohmann::json status = node_->Status();
  EXPECT_EQ(status.at("address_mode"), "translate");
  EXPECT_NE(status.at("address_fallback").get<std::string>(), "");
  EXPECT_NE(node_->Torporctl({"status"}).find("instead of map"), std::string::npos);
  const std::string page = node_->Metrics();
  EXPECT_EQ(ValueOf(page, "torpor_address_fallback", {}), 1);
  EXPECT_EQ(ValueOf(page, "torpor_address_mode", {"mode=\"translate\""}), 1);
  EXPECT_NE(node_->Logs().find("address_mode: translate takes the place of map"),
            std::string::npos);
}

TEST_P(Addresses, WhoAsksForTranslationIsNotWarned) {
  ASSERT_NO_FATAL_FAILURE(Start("address_mode: translate\n"));
  EXPECT_EQ(node_->Status().at("address_fallback"), "");
  EXPECT_EQ(node_->Logs().find("takes the place of map"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(E2e, Addresses, testing::Values("elsewhere", "refused"),
                         [](const auto& info) { return std::string(info.param); });

using HonouredAddresses = Addresses;

TEST_P(HonouredAddresses, AreTakenOnceForAll) {
  if (IsTranslating()) GTEST_SKIP() << "needs no addresses";
  ASSERT_NO_FATAL_FAILURE(Start("address_space: 2TiB\n"));
  const nlohmann::json status = node_->Status();
  EXPECT_EQ(status.at("address_mode"), "map");
  EXPECT_EQ(status.at("address_fallback"), "");
  EXPECT_EQ(status.at("address_bytes"), std::uint64_t{2} << 40);
  EXPECT_EQ(status.at("free_address_bytes"), (std::uint64_t{2} << 40) - (std::uint64_t{1} << 30))
      << "a session begins with a gigabyte";
  EXPECT_EQ(node_->PostOne("/function/a/add", "{\"value\":[1]}").status, 200);
}

INSTANTIATE_TEST_SUITE_P(E2e, HonouredAddresses, testing::Values("honoured"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace torpor::e2e
