#include "base/secret.h"

#include <gtest/gtest.h>

namespace torpor {
namespace {

TEST(Secrets, AreEqualOnlyAsAWhole) {
  EXPECT_TRUE(SecretsEqual("abc", "abc"));
  EXPECT_FALSE(SecretsEqual("abc", "abd"));
  EXPECT_FALSE(SecretsEqual("abc", "ab"));
  EXPECT_TRUE(SecretsEqual("", ""));
}

}  // namespace
}  // namespace torpor
