#include "server/executor/gpu/huge_pages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace torpor::executor {
namespace {

TEST(SharedHugePages, AreGivenWhereTheKernelSaysSo) {
  const std::string file = testing::TempDir() + "shmem_enabled-" + std::to_string(getpid());
  const auto given = [&](const char* text) {
    std::ofstream(file) << text;
    return GivesSharedHugePages(file);
  };
  EXPECT_TRUE(given("always within_size [advise] never deny force\n"));
  EXPECT_TRUE(given("[always] within_size advise never deny force\n"));
  EXPECT_TRUE(given("always [within_size] advise never deny force\n"));
  EXPECT_FALSE(given("always within_size advise [never] deny force\n"));
  EXPECT_FALSE(given("always within_size advise never [deny] force\n"));
  EXPECT_FALSE(given(""));
  std::filesystem::remove(file);
  EXPECT_FALSE(GivesSharedHugePages(file)) << "a kernel without";
}

}  // namespace
}  // namespace torpor::executor
