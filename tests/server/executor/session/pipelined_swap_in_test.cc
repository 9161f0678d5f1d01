// Swap-ins whose copies are still under way while the session's commands come.
#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two allocations of a group each. They come in the other order than that of their addresses.
constexpr memory::Extent kLast{0, 2 * kMiB};
constexpr memory::Extent kFirst{2 * kMiB, 4 * kMiB};
constexpr std::uint8_t kOldByte = 7;

class PipelinedSwapInTest : public BatchTest {
 protected:
  // Events of the copies' stream: of the first group, the last, everything.
  enum Step : std::size_t { kFirstIsThere = 1, kLastIsThere, kAllIsThere };

  void SetUp() override {
    LoadKernel();
    std::memset(OnGpu(0), kOldByte, 4 * kMiB);
  }
  std::uint8_t* OnGpu(Bytes offset) { return reinterpret_cast<std::uint8_t*>(base() + offset); }

  void Evict(const SwapOutOptions& options = {.drop = true}) {
    s_.memory->image().MarkDirty();
    ASSERT_TRUE(s_.session->EndLease({kLease}, TimePoint::max()).ok());
    s_.findings = {};
    ASSERT_TRUE(s_.session->SwapOut(options, s_.stream, s_.findings).ok());
  }
  // Swaps in and begins a lease, while nothing is copied yet.
  void Return(bool first_holds_addresses = false, bool learn = false) {
    s_.cuda.HoldStreams();
    ASSERT_TRUE(s_.session->SwapIn({{kFirst, first_holds_addresses}, {kLast}}, false).ok());
    ASSERT_TRUE(s_.session->BeginLease({kLease}, learn).ok());
  }
  // Swaps in, and does `work` under a lease before more than the first group is enqueued.
  void ReturnDuring(const std::function<void()>& work) {
    s_.cuda.HoldStreams();
    const auto on_begun = [&] {
      ASSERT_TRUE(s_.session->BeginLease({kLease}).ok());
      work();
    };
    ASSERT_TRUE(s_.session->SwapIn({{kFirst}, {kLast}}, false, nullptr, false, on_begun).ok());
  }
  // Kernel 4 of module 3, which has the fake's variable.
  void LoadVariable(const std::vector<std::uint8_t>& image = UsingModule()) {
    wire::ModuleUse use;
    use.module = 3;
    use.hash = Sha256(image.data(), image.size());
    ASSERT_TRUE(s_.modules->Store(use.hash, s_.memory->tenant(), image).ok());
    use.variables = {"counter"};
    wire::KernelCreate create;
    create.kernel = 4;
    create.module = 3;
    create.name = "record";
    ASSERT_TRUE(s_.Run(BatchBuilder().Add(use).Add(create).Frame(kLease)).ok());
  }
  void EnqueueUpload(Bytes to, std::span<const std::uint8_t> bytes) {
    constexpr Bytes kAt = 128 * kKiB;  // of the window
    std::memcpy(s_.memory->window().Payload(kAt, bytes.size()), bytes.data(), bytes.size());
    wire::MemcpyHtoD copy;
    copy.dst = base() + to;
    copy.bytes = bytes.size();
    copy.payload = wire::Payload::kWindow;
    copy.offset = kAt;
    Enqueue(copy);
  }
  template <typename Command>
  void Enqueue(const Command& command) {
    ASSERT_TRUE(s_.Run(BatchBuilder().Add(command).Frame(kLease)).ok());
  }
  void EnqueueLaunch(std::uint64_t parameter) { Enqueue(Launch(parameter)); }
  // Lets the copies go on by so many steps, and everything else as far as it can.
  void Arrive(std::size_t steps) {
    s_.cuda.ReleaseUpTo(s_.memory->image().arrival().stream(), steps);
  }
  std::size_t launches() const { return s_.cuda.launches().size(); }
  // After how many steps a launch with this parameter runs.
  std::size_t StepsUntilLaunched(std::uint64_t parameter) {
    EnqueueLaunch(parameter);
    Arrive(0);
    std::size_t steps = 0;
    for (; launches() == 0 && steps < kAllIsThere; ++steps) Arrive(1);
    return steps;
  }
};

TEST_F(PipelinedSwapInTest, AKernelWaitsForTheAllocationItPointsInto) {
  Evict();
  Return();
  EXPECT_EQ(StepsUntilLaunched(base() + kFirst.begin + 5), kFirstIsThere);
  EXPECT_THAT(s_.cuda.bytes_seen(), ElementsAre(kOldByte));
  EXPECT_TRUE(s_.memory->image().arrival().is_pending());
}

TEST_F(PipelinedSwapInTest, OneThatPointsIntoTheLastWaitsLonger) {
  Evict();
  Return();
  EXPECT_EQ(StepsUntilLaunched(base() + kLast.begin), kLastIsThere);
  EXPECT_THAT(s_.cuda.bytes_seen(), ElementsAre(kOldByte));
}

TEST_F(PipelinedSwapInTest, WorkComesBeforeAllCopiesAreEnqueued) {
  Evict();
  ReturnDuring([&] {
    EXPECT_EQ(StepsUntilLaunched(base() + kFirst.begin + 5), kFirstIsThere);
    EXPECT_THAT(s_.cuda.bytes_seen(), ElementsAre(kOldByte));
  });
  s_.cuda.Release();
  EXPECT_FALSE(s_.memory->image().arrival().is_pending());
  EXPECT_THAT(s_.events.arrived, ElementsAre(4 * kMiB, 4 * kMiB));
  EXPECT_EQ(*OnGpu(kLast.begin), kOldByte);
}

TEST_F(PipelinedSwapInTest, WorkEnqueuesTheCopiesThatItNeeds) {
  Evict();
  ReturnDuring([&] {
    EXPECT_EQ(StepsUntilLaunched(base() + kLast.begin), kLastIsThere);
    EXPECT_THAT(s_.cuda.bytes_seen(), ElementsAre(kOldByte));
  });
}

TEST_F(PipelinedSwapInTest, WorkThatNeedsVariablesRestoresThem) {
  LoadVariable();
  Evict();
  ReturnDuring([&] {
    const std::uint64_t number = 1;
    wire::LaunchKernel launch = Launch(number);
    launch.kernel = 4;
    Enqueue(launch);
    Arrive(kLastIsThere);
    EXPECT_EQ(launches(), 0u);
    Arrive(1);
    EXPECT_EQ(launches(), 1u);
  });
}

TEST_F(PipelinedSwapInTest, AKernelWithoutPointersWaitsForNothing) {
  Evict();
  Return();
  EXPECT_EQ(StepsUntilLaunched(1234), 0u);
}

TEST_F(PipelinedSwapInTest, AnAllocationThatHoldsAddressesMeansAll) {
  Evict();
  Return(/*first_holds_addresses=*/true);
  EXPECT_EQ(StepsUntilLaunched(base() + kFirst.begin), kAllIsThere);
}

TEST_F(PipelinedSwapInTest, APointerToPinnedMemoryMayLeadAnywhere) {
  Evict();
  Return();
  EXPECT_EQ(StepsUntilLaunched(s_.identity.host_base + 8), kAllIsThere);
}

TEST_F(PipelinedSwapInTest, AKernelThatUsesVariablesWaitsForAll) {
  LoadVariable();
  Evict();
  Return();
  const std::uint64_t number = 1;
  wire::LaunchKernel launch = Launch(number);
  launch.kernel = 4;
  Enqueue(launch);
  Arrive(kLastIsThere);
  EXPECT_EQ(launches(), 0u);
  Arrive(1);
  EXPECT_EQ(launches(), 1u);
}

TEST_F(PipelinedSwapInTest, AKernelWhoseModuleHasVariablesForNothingDoesNot) {
  LoadVariable(EmptyFatbin());
  Evict();
  Return();
  const std::uint64_t number = 1;
  wire::LaunchKernel launch = Launch(number);
  launch.kernel = 4;
  Enqueue(launch);
  Arrive(0);
  EXPECT_EQ(launches(), 1u);
}

TEST_F(PipelinedSwapInTest, APointerToAVariableMeansAll) {
  LoadVariable();
  wire::SymbolAddress ask;
  ask.module = 3;
  ask.variable = "counter";
  const wire::Reply reply = Call(BatchBuilder().Add(ask));
  wire::SymbolAddressResult answer;
  wire::Reader reader(reply.result);
  reader(answer);
  Evict();
  Return();
  EXPECT_EQ(StepsUntilLaunched(answer.address), kAllIsThere);
}

TEST_F(PipelinedSwapInTest, CopiesAndFillsWaitForTheirBytes) {
  Evict();
  Return();
  wire::Memset fill;
  fill.dst = base() + kFirst.begin;
  fill.element_bytes = 1;
  fill.value = 9;
  fill.count = 16;
  Enqueue(fill);
  wire::MemcpyDtoD copy;
  copy.dst = base() + kLast.begin;
  copy.src = base() + kFirst.begin;
  copy.bytes = 32;
  Enqueue(copy);
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(kFirst.begin)[0], 9) << "not undone by what arrived later";
  EXPECT_EQ(OnGpu(kFirst.begin)[16], kOldByte);
  EXPECT_EQ(OnGpu(kLast.begin)[15], 9);
  EXPECT_EQ(OnGpu(kLast.begin)[16], kOldByte);
  EXPECT_EQ(OnGpu(kLast.begin)[32], kOldByte);
}

TEST_F(PipelinedSwapInTest, AnUploadIsNotUndoneAndReachesTheHost) {
  Evict();
  Return();
  EnqueueUpload(kLast.begin + 8, std::vector<std::uint8_t>(64, 42));
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(kLast.begin)[8], 42);
  ASSERT_TRUE(s_.session->EndLease({kLease}, TimePoint::max()).ok());
  ASSERT_TRUE(s_.session->SwapOut({.drop = true}, s_.stream, s_.findings).ok());
  EXPECT_THAT(s_.findings.uploaded, ElementsAre(kLast.begin));
  ASSERT_TRUE(s_.session->SwapIn({{kLast}}, true).ok());
  EXPECT_EQ(OnGpu(kLast.begin)[8], 42);
  EXPECT_EQ(OnGpu(kLast.begin)[7], kOldByte);
}

TEST_F(PipelinedSwapInTest, AnUploadedAddressMeansAll) {
  Evict();
  Return();
  const std::uint64_t address = base() + kLast.begin;
  EnqueueUpload(kFirst.begin, {reinterpret_cast<const std::uint8_t*>(&address), sizeof address});
  EXPECT_EQ(StepsUntilLaunched(base() + kFirst.begin + 64), kAllIsThere);
}

TEST_F(PipelinedSwapInTest, NewMemoryIsItsOwnAtOnce) {
  Evict();
  Return();
  // In a chunk with nothing else.
  const memory::Extent grown{6 * kMiB, 6 * kMiB + 4096};
  ASSERT_TRUE(s_.session->Grow(grown, s_.stream).ok());
  EXPECT_EQ(OnGpu(grown.begin)[0], 0);
  wire::Memset fill;
  fill.dst = base() + grown.begin;
  fill.element_bytes = 1;
  fill.value = 5;
  fill.count = 16;
  Enqueue(fill);
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(grown.begin)[0], 5);
}

TEST_F(PipelinedSwapInTest, FreeingInTheMiddleWaits) {
  Evict();
  Return();
  memory::ExtentSet live;
  live.Add(kFirst);
  ASSERT_TRUE(s_.session->Shrink(kLast, live).ok());
  EXPECT_FALSE(s_.memory->image().arrival().is_pending());
  EXPECT_EQ(s_.cuda.mapped_chunks(), 1u);
  EXPECT_EQ(OnGpu(kFirst.begin)[0], kOldByte);
}

TEST_F(PipelinedSwapInTest, LeavingInTheMiddleLosesNothing) {
  Evict();
  Return();
  EnqueueLaunch(base() + kFirst.begin);
  Arrive(kFirstIsThere);
  ASSERT_TRUE(s_.memory->image().arrival().is_pending());
  ASSERT_NO_FATAL_FAILURE(Evict());
  EXPECT_EQ(s_.cuda.mapped_chunks(), 0u);
  ASSERT_TRUE(s_.session->SwapIn({{kFirst}, {kLast}}, true).ok());
  EXPECT_EQ(OnGpu(kFirst.begin)[0], kOldByte);
  EXPECT_EQ(OnGpu(kLast.begin)[0], kOldByte);
}

TEST_F(PipelinedSwapInTest, ClosingInTheMiddleGivesAllBack) {
  Evict();
  Return();
  ASSERT_TRUE(s_.session->Close(TimePoint::max()).ok());
  EXPECT_EQ(s_.cuda.mapped_chunks(), 0u);
}

TEST_F(PipelinedSwapInTest, AWholeOneIsThereWhenItReturns) {
  Evict();
  s_.cuda.HoldStreams();
  ASSERT_TRUE(s_.session->SwapIn({{kFirst}, {kLast}}, /*is_whole=*/true).ok());
  EXPECT_FALSE(s_.memory->image().arrival().is_pending());
  EXPECT_EQ(OnGpu(kLast.begin)[0], kOldByte);
}

TEST_F(PipelinedSwapInTest, TheEndIsToldWithItsBytes) {
  Evict();
  s_.events.arrived.clear();
  Return();
  EXPECT_THAT(s_.events.arrived, IsEmpty());
  EXPECT_TRUE(s_.session->is_active());
  s_.cuda.Release();
  EXPECT_THAT(s_.events.arrived, ElementsAre(4 * kMiB));
}

TEST_F(PipelinedSwapInTest, OneThatCannotBeEnqueuedLeavesNothing) {
  Evict();
  s_.cuda.Break(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(s_.session->SwapIn({{kFirst}, {kLast}}, false).ok());
  s_.cuda.Break(CUDA_SUCCESS);
  EXPECT_EQ(s_.cuda.mapped_chunks(), 0u);
  EXPECT_FALSE(s_.memory->image().Contains(base(), 1));
  EXPECT_TRUE(s_.session->SwapIn({{kFirst}, {kLast}}, false).ok());
}

TEST_F(PipelinedSwapInTest, TheOrderOfFirstUseIsLearned) {
  Evict();
  Return(false, /*learn=*/true);
  s_.cuda.Release();
  EnqueueLaunch(base() + kFirst.begin + 8);
  EnqueueLaunch(17);
  EnqueueLaunch(base() + kLast.begin + 8);
  EnqueueLaunch(base() + kFirst.begin);
  EXPECT_THAT(s_.session->TakeTouched(), ElementsAre(kFirst.begin, kLast.begin));
}

TEST_F(PipelinedSwapInTest, WithoutLearningOnlyWhatIsUsedDuringTheSwapInIsNoted) {
  Evict();
  Return();
  EnqueueLaunch(base() + kFirst.begin + 8);
  s_.cuda.Release();
  EnqueueLaunch(base() + kLast.begin + 8);
  EXPECT_THAT(s_.session->TakeTouched(), ElementsAre(kFirst.begin));
}

TEST_F(PipelinedSwapInTest, AddressesAreFoundWhenTheImageLeaves) {
  const std::uint64_t address = base() + kLast.begin + 12;
  Evict();
  EXPECT_THAT(s_.findings.address_holders, IsEmpty());
  Return();
  s_.cuda.Release();
  std::memcpy(OnGpu(kFirst.begin + 800), &address, sizeof address);
  Evict();
  EXPECT_THAT(s_.findings.address_holders, ElementsAre(kFirst.begin));
}

TEST_F(PipelinedSwapInTest, AddressesOfOldAreFoundOnlyWhenAllIsLookedAt) {
  const std::uint64_t address = base() + kLast.begin;
  Evict();
  Return();
  s_.cuda.Release();
  std::memcpy(OnGpu(kFirst.begin), &address, sizeof address);
  Evict();
  Return();
  s_.cuda.Release();
  Evict();
  EXPECT_THAT(s_.findings.address_holders, IsEmpty()) << "nothing has changed since";
  Return();
  s_.cuda.Release();
  Evict({.drop = true, .searches_whole_image = true});
  EXPECT_TRUE(s_.findings.searched_whole_image);
  EXPECT_THAT(s_.findings.address_holders, ElementsAre(kFirst.begin));
}

}  // namespace
}  // namespace torpor::executor
