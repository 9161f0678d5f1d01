#include "server/executor/runtime/shared_event.h"

#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

constexpr std::uint32_t kIssued = 11;
constexpr std::uint32_t kDone = 12;

// Events on the page of the session, as the session itself or another one uses them.
class SharedEventTest : public BatchTest {
 protected:
  void SetUp() override {
    for (CUstream& stream : streams_) stream = *s_.device->CreateStream();
  }

  SessionWindow& window() { return s_.memory->window(); }
  SharedEvent Under(std::uint64_t lease) {
    return *SharedEvent::At(window(), kIssued, kDone, LeaseId{lease});
  }
  // Whether what the stream has got so far has run.
  bool HasRun(CUstream stream) { return s_.cuda.driver().StreamQuery(stream) == CUDA_SUCCESS; }

  CUstream streams_[2] = {};
};

TEST_F(SharedEventTest, IsTwoSlotsOfThePage) {
  const auto last = static_cast<std::uint32_t>(wire::kCompletionSlots);
  EXPECT_FALSE(SharedEvent::At(window(), last, 1, LeaseId{5}));
  EXPECT_FALSE(SharedEvent::At(window(), 1, ~0u, LeaseId{5}));
  EXPECT_FALSE(SharedEvent::At(window(), 1, 1, LeaseId{5}));
  EXPECT_TRUE(SharedEvent::At(window(), last - 1, 1, LeaseId{5}));
}

TEST_F(SharedEventTest, NobodyWaitsForWhatWasNeverRecorded) {
  EXPECT_TRUE(Under(5).IsComplete());
  EXPECT_EQ(Under(5).Await(streams_[0]), CUDA_SUCCESS);
  EXPECT_TRUE(HasRun(streams_[0]));
}

TEST_F(SharedEventTest, WhoWaitsWaitsForTheLatestRecord) {
  s_.cuda.HoldStreams();
  ASSERT_EQ(Under(5).Record(streams_[1]), CUDA_SUCCESS);
  EXPECT_FALSE(Under(5).IsComplete());
  ASSERT_EQ(Under(5).Await(streams_[0]), CUDA_SUCCESS);
  EXPECT_FALSE(HasRun(streams_[0]));
  s_.cuda.Release();
  EXPECT_TRUE(HasRun(streams_[0]));
  EXPECT_TRUE(Under(5).IsComplete());
}

// Work of the stream that was created last runs first: the record of the other one, which is
// earlier, must not be the last word.
TEST_F(SharedEventTest, RecordsCompleteInTheirOrder) {
  s_.cuda.HoldStreams();
  ASSERT_EQ(Under(5).Record(streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(Under(5).Record(streams_[1]), CUDA_SUCCESS);
  s_.cuda.Release();
  EXPECT_TRUE(Under(5).IsComplete());
  EXPECT_TRUE(HasRun(streams_[0]));
  EXPECT_TRUE(HasRun(streams_[1]));
}

TEST_F(SharedEventTest, ARecordOfAnotherLeaseIsOver) {
  s_.cuda.HoldStreams();
  ASSERT_EQ(Under(5).Record(streams_[1]), CUDA_SUCCESS);  // and its executor is lost
  EXPECT_TRUE(Under(6).IsComplete());
  EXPECT_EQ(Under(6).Await(streams_[0]), CUDA_SUCCESS);
  EXPECT_TRUE(HasRun(streams_[0]));
  EXPECT_EQ(Under(6).Record(streams_[0]), CUDA_SUCCESS);
  EXPECT_FALSE(Under(6).IsComplete());
  s_.cuda.Release();
  EXPECT_TRUE(Under(6).IsComplete());
}

TEST_F(SharedEventTest, NobodyWaitsForARecordThatFailed) {
  s_.cuda.Break(CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(Under(5).Record(streams_[0]), CUDA_ERROR_UNKNOWN);
  EXPECT_TRUE(Under(5).IsComplete());
  s_.cuda.Break(CUDA_SUCCESS);
}

TEST_F(SharedEventTest, NobodyWaitsForASessionThatIsClosed) {
  s_.cuda.HoldStreams();
  ASSERT_EQ(Under(5).Record(streams_[0]), CUDA_SUCCESS);
  window().ReachAll();
  EXPECT_TRUE(Under(5).IsComplete());
  // Later records are its page's again.
  ASSERT_EQ(Under(5).Record(streams_[1]), CUDA_SUCCESS);
  s_.cuda.Release();
  EXPECT_TRUE(Under(5).IsComplete());
}

TEST_F(SharedEventTest, CallsNameASessionOfTheirFunction) {
  wire::SharedEventQuery query{s_.identity.id.value, kIssued, kDone};
  EXPECT_EQ(Call(BatchBuilder().Add(query)).status, cudaSuccess);
  query.owner = 99;
  EXPECT_EQ(Call(BatchBuilder().Add(query)).status, cudaErrorInvalidResourceHandle);
  query.owner = s_.identity.id.value;
  query.done_slot = ~0u;
  EXPECT_EQ(Call(BatchBuilder().Add(query)).status, cudaErrorInvalidResourceHandle);
  const wire::SharedEventRecord record{s_.identity.id.value, kIssued, kDone, 4711};
  EXPECT_EQ(Call(BatchBuilder().Add(record)).status, cudaErrorInvalidResourceHandle)
      << "no such stream";
}

TEST_F(SharedEventTest, CallsRecordUnderTheSessionsLease) {
  const wire::SharedEventRecord record{s_.identity.id.value, kIssued, kDone, 0};
  EXPECT_EQ(Call(BatchBuilder().Add(record)).status, cudaSuccess);
  EXPECT_EQ(window().Slot(kIssued)->load() >> 32, kLease);
  EXPECT_EQ(window().Slot(kDone)->load(), window().Slot(kIssued)->load());
  const wire::SharedEventWait wait{s_.identity.id.value, kIssued, kDone, 0};
  EXPECT_EQ(Call(BatchBuilder().Add(wait)).status, cudaSuccess);
}

// A window whose session has gone, but which work in hand still names.
TEST_F(SharedEventTest, WorkKeepsTheWindowThatItNames) {
  SessionIdentity other = s_.identity;
  other.id = other.first = {2};
  other.device_base = 0x5520'0000'0000;
  other.host_base = 0x5530'0000'0000;
  auto gone = *SessionMemory::Open(*s_.device, *s_.gpu_memory, s_.hasher, other,
                                   MakeSessionFiles(other), s_.directory);
  const std::weak_ptr<SessionWindow> window = gone->WindowOf(other.id);
  const wire::SharedEventRecord record{other.id.value, kIssued, kDone, 0};
  EXPECT_EQ(Call(BatchBuilder().Add(record)).status, cudaSuccess);
  gone.reset();
  EXPECT_FALSE(window.expired());
  ASSERT_TRUE(
      s_.session->EndLease(LeaseId{kLease}, SteadyClock().Now() + std::chrono::seconds(9)).ok());
  EXPECT_TRUE(window.expired());
}

}  // namespace
}  // namespace torpor::executor
