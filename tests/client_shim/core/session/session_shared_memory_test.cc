#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/client_shim/core/session/session_fixture.h"

namespace torpor::shim {
namespace {

constexpr ClientCore::MemoryHandle kHandle{9, FakeDaemon::kForeignBase, {1, 2, 3}};

// Whether something of this process may be placed there.
bool IsVacant(std::uint64_t address) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* const got =
      mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED) munmap(got, 4096);
  return got == wanted;
}

TEST_F(SessionTest, TheDaemonNamesSharedMemory) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::uint64_t address = 0;
  ASSERT_EQ(session_->Malloc(100, address), cudaSuccess);
  ClientCore::MemoryHandle handle;
  ASSERT_EQ(session_->ShareMemory(address, handle), cudaSuccess);
  EXPECT_EQ(daemon_.Await<wire::ShareMemory>().address, address);
  EXPECT_EQ(handle.owner_session, session_->session().session_id);
  EXPECT_EQ(handle.address, address);
  EXPECT_EQ(handle.token, kHandle.token);
}

TEST_F(SessionTest, OpenedMemoryIsAnAllocation) {
  ASSERT_EQ(Start(), cudaSuccess);
  ClientCore::Allocation opened;
  ASSERT_EQ(session_->OpenMemory(kHandle, opened), cudaSuccess);
  EXPECT_EQ(daemon_.Await<wire::OpenMemory>().token, kHandle.token);
  ClientCore::Allocation found;
  ASSERT_TRUE(session_->FindAllocation(kHandle.address + 4095, found));
  EXPECT_TRUE(found.is_foreign && found.on_device);
  EXPECT_FALSE(IsVacant(kHandle.address));
  EXPECT_EQ(session_->Free(kHandle.address), cudaErrorInvalidValue);
  EXPECT_EQ(session_->CloseMemory(kHandle.address), cudaSuccess);
  EXPECT_EQ(daemon_.Await<wire::CloseMemory>().owner_session, kHandle.owner_session);
  EXPECT_FALSE(session_->FindAllocation(kHandle.address, found));
  EXPECT_FALSE(IsVacant(kHandle.address)) << "other sessions' memory may come there";
  EXPECT_EQ(session_->CloseMemory(kHandle.address), cudaErrorInvalidValue);
}

TEST_F(SessionTest, MemoryIsClosedAsOftenAsItWasOpened) {
  ASSERT_EQ(Start(), cudaSuccess);
  ClientCore::Allocation opened;
  ASSERT_EQ(session_->OpenMemory(kHandle, opened), cudaSuccess);
  ClientCore::Allocation again;
  ASSERT_EQ(session_->OpenMemory(kHandle, again), cudaSuccess);
  EXPECT_EQ(again.begin, opened.begin);
  EXPECT_EQ(daemon_.Count<wire::OpenMemory>(), 1u);
  ClientCore::MemoryHandle forged = kHandle;
  forged.token[0] ^= 1;
  EXPECT_EQ(session_->OpenMemory(forged, again), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(session_->CloseMemory(kHandle.address), cudaSuccess);
  EXPECT_EQ(daemon_.Count<wire::CloseMemory>(), 0u);
  EXPECT_EQ(session_->CloseMemory(kHandle.address), cudaSuccess);
  EXPECT_EQ(daemon_.Count<wire::CloseMemory>(), 1u);
}

// Rather than to fail when other processes' memory is opened, or more memory allocated.
TEST_F(SessionTest, AnyOfTheNodesAddressesTakenHereIsAnErrorAtTheStart) {
  void* const wanted = reinterpret_cast<void*>(kHandle.address);
  ASSERT_EQ(mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            wanted);
  EXPECT_EQ(Start(), cudaErrorMemoryAllocation);
  EXPECT_EQ(daemon_.Await<wire::HelloAck>().error, cudaErrorMemoryAllocation) << "the daemon knows";
  munmap(wanted, 4096);
}

TEST_F(SessionTest, AResetClosesWhatIsOpen) {
  ASSERT_EQ(Start(), cudaSuccess);
  ClientCore::Allocation opened;
  ASSERT_EQ(session_->OpenMemory(kHandle, opened), cudaSuccess);
  ASSERT_EQ(session_->OpenMemory(kHandle, opened), cudaSuccess);
  EXPECT_EQ(session_->FreeAll(), cudaSuccess);
  EXPECT_EQ(daemon_.Count<wire::CloseMemory>(), 1u);
  EXPECT_EQ(daemon_.Count<wire::Free>(), 0u);
}

class UnsharingDaemonTest : public SessionTest {
 protected:
  UnsharingDaemonTest() : SessionTest(Refusing()) {}
  static FakeDaemon::Script Refusing() {
    FakeDaemon::Script script;
    script.open_error = cudaErrorInvalidResourceHandle;
    return script;
  }
};
TEST_F(UnsharingDaemonTest, ARefusalOpensNothing) {
  ASSERT_EQ(Start(), cudaSuccess);
  ClientCore::Allocation opened;
  EXPECT_EQ(session_->OpenMemory(kHandle, opened), cudaErrorInvalidResourceHandle);
  EXPECT_FALSE(session_->FindAllocation(kHandle.address, opened));
}

}  // namespace
}  // namespace torpor::shim
