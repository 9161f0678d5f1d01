#include "server/broker/retry_after.h"

#include <gtest/gtest.h>

#include "server/broker/broker_messages.h"

namespace torpor::server {
namespace {

TEST(RetryAfter, IsToldInWholeSeconds) {
  const absl::Status plain = absl::PermissionDeniedError("no");
  EXPECT_EQ(RetryAfterSeconds(plain), std::nullopt);
  EXPECT_EQ(RetryAfterSeconds(WithRetryAfter(plain, std::chrono::milliseconds(1))), 1);
  EXPECT_EQ(RetryAfterSeconds(WithRetryAfter(plain, std::chrono::milliseconds(1001))), 2);
  EXPECT_EQ(RetryAfterSeconds(WithRetryAfter(plain, -std::chrono::seconds(1))), 1);
}

TEST(RetryAfter, ReachesARouterInAnotherProcess) {
  const absl::Status refusal =
      WithRetryAfter(absl::PermissionDeniedError("not now"), std::chrono::seconds(17));
  const absl::Status read = FromMessage(ToMessage(4, refusal));
  EXPECT_EQ(read, refusal);
  EXPECT_EQ(RetryAfterSeconds(read), 17);
  const absl::Status plain = absl::NotFoundError("nobody");
  EXPECT_EQ(FromMessage(ToMessage(4, plain)), plain);
}

}  // namespace
}  // namespace torpor::server
