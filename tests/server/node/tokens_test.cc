#include "server/node/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "server/config/token_file.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

class TokensTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "tokens-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Add(const std::string& function, const std::string& text) {
    config_.functions[function].name = function;
    config_.functions[function].token_file = folder_ / function;
    std::ofstream(folder_ / function) << text;
  }
  std::string Error() const { return std::string(ReadTokens(config_).status().message()); }

  std::filesystem::path folder_;
  Config config_;
};

TEST_F(TokensTest, TheFirstWordCounts) {
  Add("a", "\n 0123456789abcdefghijkl  # of a\n");
  Add("b", "abcdefghijkl0123456789\r\n");
  config_.functions["anonymous"];
  const auto tokens = ReadTokens(config_);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, (std::map<std::string, std::string>{{"a", "0123456789abcdefghijkl"},
                                                         {"b", "abcdefghijkl0123456789"}}));
}

TEST_F(TokensTest, EveryInstanceHasItsOwn) {
  const std::string x(kLeastTokenLength, 'x');
  const std::string y(kLeastTokenLength, 'y');
  Add("a-x", x);
  Add("a-y", y);
  FunctionConfig& a = config_.functions["a"];
  a.name = "a";
  for (const char* name : {"x", "y"}) {
    a.instances[name] = {name, "", folder_ / (std::string("a-") + name)};
    config_.functions.erase(std::string("a-") + name);
  }
  const auto tokens = ReadTokens(config_);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, (std::map<std::string, std::string>{{"a/x", x}, {"a/y", y}}));
}

TEST_F(TokensTest, AFileWithoutATokenIsNamed) {
  Add("a", " \n");
  EXPECT_THAT(Error(), HasSubstr((folder_ / "a").string() + ": is empty"));
  std::filesystem::remove(folder_ / "a");
  EXPECT_THAT(Error(), HasSubstr("cannot be read"));
}

TEST_F(TokensTest, ATokenThatCouldBeGuessedIsRefused) {
  Add("a", std::string(kLeastTokenLength - 1, 'x'));
  EXPECT_THAT(Error(), HasSubstr("function a has 21 characters"));
  EXPECT_THAT(Error(), HasSubstr("/dev/urandom"));
}

TEST_F(TokensTest, TwoFunctionsMayNotShareAToken) {
  const std::string same(kLeastTokenLength, 's');
  Add("a", same);
  Add("b", same);
  EXPECT_THAT(Error(), HasSubstr("functions a and b have the same token"));
}

}  // namespace
}  // namespace torpor::server
