#include "server/controller/model/gpu_executor.h"

#include <gtest/gtest.h>

#include "tests/server/controller/fake_links.h"

namespace torpor::server {
namespace {

class ExecutorTest : public testing::Test {
 protected:
  ExecutorTest() {
    v1::ExecutorMessage::Register what;
    what.set_pool_bytes(100);
    executor_.OnRegistered(std::make_shared<FakeExecutorLink>(), what);
  }
  void Tell(std::uint64_t session, Bytes used, Bytes held, Bytes free) {
    v1::ExecutorMessage::OperationDone done;
    done.mutable_memory()->set_session_id(session);
    done.mutable_memory()->set_session_used_bytes(used);
    done.mutable_memory()->set_session_held_bytes(held);
    done.mutable_memory()->set_free_bytes(free);
    executor_.OnOperationDone(done, TimePoint());
  }

  GpuExecutor executor_{GpuIndex{0}};
};

TEST_F(ExecutorTest, KnowsWhatIsKeptOfItsMemoryAndForWhom) {
  EXPECT_EQ(executor_.memory().free, 100u);
  Tell(1, 30, 40, 60);
  Tell(2, 5, 10, 50);
  Tell(0, 0, 0, 50);  // of no session
  EXPECT_EQ(executor_.memory().free, 50u);
  ASSERT_EQ(executor_.memory().sessions.size(), 2u);
  EXPECT_EQ(executor_.memory().sessions.at(SessionId{1}).used, 30u);
  EXPECT_EQ(executor_.memory().sessions.at(SessionId{2}).held, 10u);
  Tell(1, 0, 0, 90);
  EXPECT_EQ(executor_.memory().sessions.size(), 1u);
}

TEST_F(ExecutorTest, HearsOfMemoryWithoutAnOperationToo) {
  Tell(1, 30, 40, 60);
  v1::MemoryUse use;
  use.set_free_bytes(60);
  use.set_fragmented_bytes(25);
  executor_.OnMemory(use);
  EXPECT_EQ(executor_.memory().fragmented, 25u);
  EXPECT_EQ(executor_.memory().sessions.size(), 1u);
}

TEST_F(ExecutorTest, NothingIsKeptByAProcessThatIsGone) {
  Tell(1, 30, 40, 60);
  executor_.OnLost();
  EXPECT_TRUE(executor_.memory().sessions.empty());
  EXPECT_EQ(executor_.memory().free, 0u);
}

}  // namespace
}  // namespace torpor::server
