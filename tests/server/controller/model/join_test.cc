#include "server/controller/model/join.h"

#include <gtest/gtest.h>

#include <optional>

namespace torpor::server {
namespace {

struct Outcome {
  Join join() {
    return Join([this](const absl::Status& ended) {
      EXPECT_FALSE(status) << "ended twice";
      status = ended;
    });
  }
  std::optional<absl::Status> status;
};

TEST(Join, EndsWithItsCreatorWhereNothingWasAdded) {
  Outcome outcome;
  const Join join = outcome.join();
  EXPECT_FALSE(outcome.status);
  join.Done();
  EXPECT_TRUE(outcome.status && outcome.status->ok());
}

TEST(Join, WaitsForOperationsThatEndBeforeTheLastIsAdded) {
  Outcome outcome;
  Join join = outcome.join();
  join.Add();
  join.Done();
  join.Add(2);
  join.Done();
  join.Done();
  EXPECT_FALSE(outcome.status);
  join.Done();
  EXPECT_TRUE(outcome.status && outcome.status->ok());
}

TEST(Join, GivesTheFirstFailure) {
  Outcome outcome;
  Join join = outcome.join();
  join.Add(2);
  const Join copy = join;
  copy.Done(absl::NotFoundError("first"));
  join.Done(absl::InternalError("second"));
  join.Done();
  EXPECT_EQ(outcome.status, absl::NotFoundError("first"));
}

}  // namespace
}  // namespace torpor::server
