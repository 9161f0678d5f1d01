#include "server/controller/memory/shared_allocations.h"

#include "server/controller/model/cuda_errors.h"
#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class SharedAllocationsTest : public NodeWorld {
 protected:
  SharedAllocationsTest() { owner_->memory.device->Allocate(kChunk); }

  SessionKey Share() {
    shared_.Share(owner_, {1, owner_->memory.device_base});
    return LinkOf(owner_).Take<wire::ShareMemoryReply>()->token;
  }
  std::optional<wire::OpenMemoryReply> Open(const SessionPtr& opener, const SessionKey& token) {
    wire::OpenMemory call;
    call.request_id = 2;
    call.owner_session = owner_->id.value;
    call.address = owner_->memory.device_base;
    call.token = token;
    shared_.Open(opener, call);
    return LinkOf(opener).Take<wire::OpenMemoryReply>();
  }

  int finished_ = 0;
  PeerAccess peers_{tables_.executors, tables_.sessions};
  ImageSwaps swaps_{tables_.executors,
                    tables_.instances,
                    tables_.sessions,
                    peers_,
                    host_.room,
                    telemetry_,
                    loop_,
                    [] {}};
  MemoryLimits limits_{tables_.sessions, tables_.executors, kChunk};
  FreedPages freed_{tables_.sessions, tables_.executors, loop_};
  DeviceAllocations allocations_{
      tables_.instances, tables_.sessions, tables_.executors, peers_, limits_, host_.segments,
      host_.room,        freed_,           events_,           loop_};
  SharedAllocations shared_{tables_.instances,
                            tables_.sessions,
                            swaps_,
                            peers_,
                            allocations_,
                            [this](const SessionPtr&, const StepQueue::Finish& finish) {
                              ++finished_;
                              finish();
                            }};
  const SessionPtr owner_ = AddSession("a");
  const SessionPtr opener_ = AddSession("a");
};

TEST_F(SharedAllocationsTest, AnotherProcessOpensABlockByItsToken) {
  const SessionKey token = Share();
  EXPECT_TRUE(InstanceOf("a").is_sharing);
  const auto reply = Open(opener_, token);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, kCudaSuccess);
  EXPECT_EQ(reply->bytes, kChunk);
  EXPECT_TRUE(owner_->shared.is_open());
  EXPECT_EQ(Open(opener_, token)->error, kCudaErrorInvalidResourceHandle) << "it has it open";
}

TEST_F(SharedAllocationsTest, OnlyProcessesOfTheFunctionWithTheTokenMay) {
  const SessionKey token = Share();
  EXPECT_EQ(Open(opener_, SessionKey{})->error, kCudaErrorInvalidResourceHandle);
  EXPECT_EQ(Open(AddSession("pair"), token)->error, kCudaErrorInvalidResourceHandle);
  EXPECT_EQ(Open(owner_, token)->error, kCudaErrorDeviceUninitialized);
}

TEST_F(SharedAllocationsTest, UnderALeaseTheOwnersImageComesFirst) {
  const SessionKey token = Share();
  GiveLease("a");
  EXPECT_FALSE(Open(opener_, token));
  EXPECT_EQ(Operation(0).swap_in().session_id(), owner_->id.value);
  Answer(0);
  EXPECT_FALSE(LinkOf(opener_).Take<wire::OpenMemoryReply>()) << "copies go on";
  swaps_.EndArrival(*owner_);
  loop_.RunAll();
  EXPECT_TRUE(LinkOf(opener_).Take<wire::OpenMemoryReply>());
  EXPECT_TRUE(owner_->image.has_changes()) << "the opener may be at work";
}

TEST_F(SharedAllocationsTest, TheLastOpenerFreesWhatTheOwnerHasFreed) {
  ASSERT_TRUE(Open(opener_, Share()));
  EXPECT_EQ(owner_->shared.Free(0), SharedBlocks::FreeTime::kWhenClosed);
  shared_.Close(opener_, {3, owner_->id.value, owner_->memory.device_base});
  EXPECT_EQ(LinkOf(opener_).Take<wire::MemoryReply>()->error, kCudaSuccess);
  loop_.RunAll();
  EXPECT_EQ(owner_->memory.device->live_bytes(), 0u);
}

TEST_F(SharedAllocationsTest, TheLastOpenerEndsAnOwnerWhoseProcessHasGone) {
  ASSERT_TRUE(Open(opener_, Share()));
  owner_->is_kept = true;
  shared_.CloseAll(*opener_);
  EXPECT_EQ(finished_, 1);
  EXPECT_TRUE(opener_->opened_blocks.empty());
}

TEST_F(SharedAllocationsTest, ClosesOnlyWhatIsOpen) {
  shared_.Close(opener_, {3, owner_->id.value, owner_->memory.device_base});
  EXPECT_EQ(LinkOf(opener_).Take<wire::MemoryReply>()->error, kCudaErrorInvalidValue);
}

}  // namespace
}  // namespace torpor::server
