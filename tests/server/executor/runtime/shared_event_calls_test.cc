#include "server/executor/runtime/shared_event_calls.h"

#include <driver_types.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint32_t kIssued = 11;
constexpr std::uint32_t kDone = 12;

class SharedEventCallsTest : public RuntimeTest {
 protected:
  void SetUp() override { calls_.SetLease({5}); }

  bool IsComplete() {
    wire::SharedEventQueryResult result;
    EXPECT_TRUE(calls_.SharedEventQuery({session(), kIssued, kDone}, result).ok());
    return result.is_complete != 0;
  }
  std::uint64_t session() const { return s_.identity.id.value; }

  PeerWindows windows_{*s_.memory};
  SharedEventCalls calls_{*s_.device, streams_, windows_};
};

TEST_F(SharedEventCallsTest, AnEventIsCompleteWhenItsRecordHasRun) {
  s_.cuda.HoldStreams();
  wire::SharedEventRecordResult nothing;
  ASSERT_TRUE(calls_.SharedEventRecord({session(), kIssued, kDone, 0}, nothing).ok());
  EXPECT_FALSE(IsComplete());
  wire::SharedEventWaitResult waited;
  EXPECT_TRUE(calls_.SharedEventWait({session(), kIssued, kDone, 0}, waited).ok());
  s_.cuda.Release();
  EXPECT_TRUE(IsComplete());
}

TEST_F(SharedEventCallsTest, ARecordOfAnEarlierLeaseIsComplete) {
  s_.cuda.HoldStreams();
  wire::SharedEventRecordResult nothing;
  ASSERT_TRUE(calls_.SharedEventRecord({session(), kIssued, kDone, 0}, nothing).ok());
  calls_.SetLease({6});
  EXPECT_TRUE(IsComplete());
  s_.cuda.Release();
}

TEST_F(SharedEventCallsTest, OnlySessionsOfTheFunctionAreWaitedFor) {
  wire::SharedEventQueryResult result;
  EXPECT_EQ(calls_.SharedEventQuery({99, kIssued, kDone}, result).code,
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(calls_.StreamWaitMark({0, 99, 1, 1}).code, cudaErrorInvalidResourceHandle);
  EXPECT_EQ(calls_.StreamWaitMark({4711, session(), 1, 1}).code, cudaErrorInvalidResourceHandle)
      << "no such stream";
}

TEST_F(SharedEventCallsTest, AWindowInUseStaysUntilItsWorkIsForgotten) {
  const SessionIdentity other = [&] {
    SessionIdentity identity = MakeIdentity(2);
    identity.function = s_.identity.function;
    return identity;
  }();
  auto memory = *SessionMemory::Open(*s_.device, *s_.gpu_memory, s_.hasher, other,
                                     MakeSessionFiles(other), s_.directory);
  const std::weak_ptr<SessionWindow> window = memory->WindowOf(other.id);
  wire::SharedEventRecordResult nothing;
  ASSERT_TRUE(calls_.SharedEventRecord({other.id.value, kIssued, kDone, 0}, nothing).ok());
  memory.reset();
  EXPECT_FALSE(window.expired());
  windows_.Forget();
  EXPECT_TRUE(window.expired());
}

}  // namespace
}  // namespace torpor::executor
