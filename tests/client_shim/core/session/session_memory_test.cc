#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/client_shim/core/session/session_fixture.h"

namespace torpor::shim {
namespace {

TEST_F(SessionTest, TheWindowIsReusedRoundAndRound) {
  ASSERT_EQ(Start(), cudaSuccess);
  constexpr std::uint64_t kBytes = std::uint64_t{8} << 20;  // eight times the whole window
  for (std::uint64_t at = 0; at < kBytes;) {
    WindowPiece piece;
    ASSERT_EQ(session_->AcquireWindow(kBytes - at, piece), cudaSuccess);
    ASSERT_GE(piece.bytes, 1u);
    std::fill_n(piece.data, piece.bytes, std::uint8_t{0xcd});
    wire::MemcpyHtoD copy;
    copy.bytes = piece.bytes;
    copy.payload = wire::Payload::kWindow;
    copy.offset = piece.offset;
    copy.slot = piece.slot;
    copy.value = piece.value;
    const auto fields = Encoded(copy);
    ASSERT_EQ(session_->Enqueue({wire::MemcpyHtoD::kCallId, fields, &piece}), cudaSuccess);
    at += piece.bytes;
  }
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, PiecesOfALostLeaseComeBack) {
  ASSERT_EQ(Start(), cudaSuccess);
  first_->set_page(nullptr);  // nothing ever completes
  std::vector<WindowPiece> filling(1);
  ASSERT_EQ(session_->AcquireWindow(64, filling[0]), cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    WindowPiece piece;
    ASSERT_EQ(session_->AcquireWindow(200'000, piece), cudaSuccess);
    wire::MemcpyHtoD copy;
    copy.slot = piece.slot;
    copy.value = piece.value;
    const auto fields = Encoded(copy);
    ASSERT_EQ(session_->Enqueue({wire::MemcpyHtoD::kCallId, fields, &piece}), cudaSuccess);
  }
  first_->Await(wire::MemcpyHtoD::kCallId, 3);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "gone"});
  session_->ReleaseWindow(filling[0]);
  // More than was left: it takes the lost pieces' room.
  for (int i = 0; i < 3; ++i) {
    WindowPiece piece;
    ASSERT_EQ(session_->AcquireWindow(200'000, piece), cudaSuccess);
    session_->ReleaseWindow(piece);
  }
}

TEST_F(SessionTest, UseIsWhatThisProcessHasAllocatedAndHowLongItHadAGpu) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::uint64_t device = 0;
  std::uint64_t host = 0;
  ASSERT_EQ(session_->Malloc(1000, device), cudaSuccess);
  ASSERT_EQ(session_->HostAlloc(5000, host), cudaSuccess);
  EXPECT_EQ(session_->CurrentUse().allocated_bytes, 1000u);
  EXPECT_EQ(session_->CurrentUse().recent_share, 0);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_GT(session_->CurrentUse().recent_share, 0);
  ASSERT_EQ(session_->Free(device), cudaSuccess);
  EXPECT_EQ(session_->CurrentUse().allocated_bytes, 0u);
}

TEST_F(SessionTest, AllocationsAreFoundByAddress) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::uint64_t device = 0;
  std::uint64_t host = 0;
  ASSERT_EQ(session_->Malloc(1000, device), cudaSuccess);
  ASSERT_EQ(session_->HostAlloc(5000, host), cudaSuccess);
  ClientCore::Allocation found;
  ASSERT_TRUE(session_->FindAllocation(device + 999, found));
  EXPECT_TRUE(found.on_device);
  EXPECT_EQ(found.begin, device);
  EXPECT_FALSE(session_->FindAllocation(device + 1000, found));
  ASSERT_TRUE(session_->FindAllocation(host, found));
  EXPECT_FALSE(found.on_device);
  *reinterpret_cast<std::uint64_t*>(host) = 42;  // it is real memory

  EXPECT_EQ(session_->HostFree(device), cudaErrorInvalidValue);
  EXPECT_EQ(session_->Free(device), cudaSuccess);
  EXPECT_EQ(session_->Free(device), cudaErrorInvalidValue);
  EXPECT_EQ(session_->HostFree(host), cudaSuccess);
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  EXPECT_EQ(session_->MemGetInfo(free_bytes, total_bytes), cudaSuccess);
  EXPECT_EQ(total_bytes, FakeDaemon::kDeviceBytes);
}

class SlowDaemonTest : public SessionTest {
 protected:
  SlowDaemonTest() : SessionTest(Slow()) {}
  static FakeDaemon::Script Slow() {
    FakeDaemon::Script script;
    script.answers_memory = false;
    return script;
  }
};
TEST_F(SlowDaemonTest, AnAnswerBehindAStickyErrorStillReleasesItsCaller) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  auto allocation = std::async(std::launch::async, [this] {
    std::uint64_t address = 0;
    return session_->Malloc(16, address);
  });
  const std::uint64_t request = daemon_.Await<wire::Malloc>().request_id;
  daemon_.Send(wire::LeaseLost{lease, cudaErrorIllegalAddress, true, "a kernel went astray"});
  daemon_.Send(wire::MemoryReply{request, 0, "", FakeDaemon::kDeviceBase});
  EXPECT_EQ(allocation.get(), cudaSuccess);
  EXPECT_EQ(Launch(), cudaErrorIllegalAddress);
}

TEST_F(SessionTest, SlotsOfALostLeaseCountAsReached) {
  ASSERT_EQ(Start(), cudaSuccess);
  first_->set_page(nullptr);
  const std::uint32_t slot = session_->AllotSlot();
  ASSERT_NE(slot, 0u);
  const std::uint64_t value = session_->NextSlotValue(slot);
  ASSERT_EQ(
      session_->Enqueue({wire::StreamMark::kCallId, Encoded(wire::StreamMark{0, slot, value})}),
      cudaSuccess);
  first_->Await(wire::StreamMark::kCallId);
  EXPECT_LT(session_->SlotValue(slot), value);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "gone"});
  while (session_->SlotValue(slot) < value) std::this_thread::yield();
  EXPECT_EQ(session_->TakeAsyncError(), cudaErrorUnknown);
  EXPECT_EQ(session_->TakeAsyncError(), cudaSuccess);
}

class RecordedSession : public SessionTest {
 protected:
  RecordedSession() : SessionTest(FakeDaemon::Script{.replays = true}) {}
};

TEST_F(RecordedSession, MemoryThatAReplayMayNeedIsFreedWhenAllIsSaved) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  ASSERT_EQ(session_->Malloc(4096, first), cudaSuccess);
  ASSERT_EQ(session_->Malloc(8192, second), cudaSuccess);
  ASSERT_EQ(Launch(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(session_->Free(first), cudaSuccess);
  EXPECT_EQ(session_->Free(second), cudaSuccess);
  EXPECT_EQ(session_->Free(first), cudaErrorInvalidValue) << "to the program it is free";
  ClientCore::Allocation allocation;
  EXPECT_FALSE(session_->FindAllocation(first, allocation));
  EXPECT_EQ(daemon_.Count<wire::Free>(), 0u);
  std::uint64_t again = 0;
  ASSERT_EQ(session_->Malloc(8192, again), cudaSuccess);
  EXPECT_EQ(again, second);
  // Between leases all is saved.
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.Send(wire::LeaseRevoke{lease});
  daemon_.Await<wire::LeaseReturned>();
  daemon_.Send(wire::MemorySaved{2});
  EXPECT_EQ(daemon_.Await<wire::Free>().address, first);
  EXPECT_EQ(Synchronize(), cudaSuccess) << "the answer to an unasked Free is dropped";
}

}  // namespace
}  // namespace torpor::shim
