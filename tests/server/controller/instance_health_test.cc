#include "server/controller/instance_health.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

using scheduler::Health;

class InstanceHealthTest : public NodeWorld {
 protected:
  Health health() { return instance_.standing.health; }

  InstanceHealth health_{tables_.instances, tables_.sessions, events_, loop_};
  FunctionInstance& instance_ = InstanceOf("a");
};

TEST_F(InstanceHealthTest, ASessionMakesAnInstanceServe) {
  health_.Check(instance_);
  EXPECT_EQ(health(), Health::kUnproven);
  const SessionPtr session = AddSession("a");
  health_.Forgive(instance_);
  EXPECT_EQ(health(), Health::kServing);
  session->is_lost = true;
  health_.Check(instance_);
  EXPECT_EQ(health(), Health::kUnproven);
  const auto told = events_.Of<scheduler::HealthChanged>();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[1].instance, instance_.id);
  EXPECT_EQ(told[1].health, Health::kServing);
}

TEST_F(InstanceHealthTest, TheSchedulerHearsOfChangesOnly) {
  health_.Check(instance_);
  health_.Check(instance_);
  EXPECT_EQ(events_.fed.size(), 1u);
}

TEST_F(InstanceHealthTest, WithoutAnUpstreamItIsDown) {
  instance_.upstream.clear();
  AddSession("a");
  health_.Check(instance_);
  EXPECT_EQ(health(), Health::kDown);
}

TEST_F(InstanceHealthTest, ARefusalCountsForAWhileAndLongerInARow) {
  AddSession("a");
  health_.Check(instance_);
  for (Duration pause = InstanceHealth::kFirstPause; pause < InstanceHealth::kLongestPause;
       pause *= 2) {
    health_.OnRefused(instance_);
    loop_.Advance(pause - std::chrono::milliseconds(1));
    EXPECT_EQ(health(), Health::kDown);
    loop_.Advance(std::chrono::milliseconds(1));
    EXPECT_EQ(health(), Health::kServing);
  }
  health_.OnAnswered(instance_);
  health_.OnRefused(instance_);
  loop_.Advance(InstanceHealth::kFirstPause);
  EXPECT_EQ(health(), Health::kServing);
}

TEST_F(InstanceHealthTest, ANewProcessIsForgiven) {
  AddSession("a");
  health_.OnRefused(instance_);
  EXPECT_EQ(health(), Health::kDown);
  health_.Forgive(instance_);
  EXPECT_EQ(health(), Health::kServing);
}

}  // namespace
}  // namespace torpor::server
