#include "emulator/node/model_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

namespace torpor::emulator {
namespace {

using std::chrono::milliseconds;
using testing::StartsWith;

TEST(ModelAccountTest, SaysWhetherTheEmulationKeepsUp) {
  const std::string path = testing::TempDir() + "account-" + std::to_string(getpid());
  EXPECT_FALSE(ModelAccount::Open(path).ok());
  const auto node = NodeFile::Join(path, "a node");
  ASSERT_TRUE(node.ok());
  auto account = ModelAccount::Open(path);
  ASSERT_TRUE(account.ok());
  unlink(path.c_str());

  EXPECT_TRUE(account->Read().is_valid());
  EXPECT_THAT(account->Read().ToText(), StartsWith("NOTHING MODELLED"));
  Note((*node)->state().copies_done, milliseconds(100), milliseconds(104));
  Note((*node)->state().kernels_done, milliseconds(10), milliseconds(10));
  ModelReport report = account->Read();
  EXPECT_EQ(report.copies.count, 1U);
  EXPECT_EQ(report.copies.modelled, milliseconds(100));
  EXPECT_EQ(report.copies.real, milliseconds(104));
  EXPECT_NEAR(report.copies.behind(), 0.04, 1e-9);
  EXPECT_THAT(report.ToText(), StartsWith("VALID: 1 copies"));

  Note((*node)->state().kernels_done, milliseconds(10), milliseconds(12));
  report = account->Read();
  EXPECT_NEAR(report.kernels.behind(), 0.1, 1e-9);
  EXPECT_FALSE(report.is_valid());
  EXPECT_THAT(report.ToText(), StartsWith("INVALID: "));

  account->Reset();
  EXPECT_EQ(account->Read().kernels.count, 0U);
  EXPECT_TRUE(account->Read().is_valid());
}

}  // namespace
}  // namespace torpor::emulator
