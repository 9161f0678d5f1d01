#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

constexpr std::int32_t kInvalidValue = 1;
constexpr std::int32_t kInvalidContext = 201;
constexpr std::int32_t kInvalidHandle = 400;

// Two processes of a function, one of which shares memory.
class ControllerSharedMemory : public ControllerHarness {
 protected:
  explicit ControllerSharedMemory(int gpus = 1, const char* token = "token-a")
      : ControllerHarness(gpus) {
    for (int gpu = 0; gpu < gpus; ++gpu) StartExecutor(gpu);
    owner_ = Connect(token);
    opener_ = Connect(token);
    address_ = Malloc(owner_, kBytes)->address;
    token_ = Share(owner_, address_)->token;
  }

  // It has had no lease.
  void ShareFromALaterProcess() {
    owner_ = Connect("token-a");
    address_ = Malloc(owner_, kBytes)->address;
    token_ = Share(owner_, address_)->token;
  }

  std::optional<wire::ShareMemoryReply> Share(Client& client, std::uint64_t address) {
    Say(client, wire::ShareMemory{client.next_request++, address});
    return client.link->Take<wire::ShareMemoryReply>();
  }
  wire::OpenMemory Request(Client& client) {
    return {client.next_request++, owner_.hello.session_id, address_, token_};
  }
  std::int32_t Open(Client& client) { return Open(client, Request(client)); }
  std::int32_t Open(Client& client, const wire::OpenMemory& request) {
    Say(client, request);
    opened_ = client.link->Take<wire::OpenMemoryReply>();
    return opened_ ? opened_->error : -1;
  }
  std::int32_t Close(Client& client) {
    Say(client, wire::CloseMemory{client.next_request++, owner_.hello.session_id, address_});
    const auto reply = client.link->Take<wire::MemoryReply>();
    return reply ? reply->error : -1;
  }
  std::optional<wire::LeaseGrant> WantLease(const Client& client) {
    Say(client, wire::LeaseRequest{});
    return TakeLease(client);
  }
  bool IsThere(const Client& client, int gpu = 0) {
    return executors_[gpu].resident.count(client.hello.session_id) > 0;
  }
  bool IsKnown(const Client& client, int gpu = 0) {
    return executors_[gpu].sessions.count(client.hello.session_id) > 0;
  }
  // What of a's memory limit of 48 MiB is free.
  std::uint64_t FreeBytes(Client& client) {
    Say(client, wire::MemGetInfo{client.next_request++});
    return client.link->Take<wire::MemGetInfoReply>()->free_bytes;
  }

  static constexpr Bytes kBytes = 4 * kMiB;
  Client owner_;
  Client opener_;
  std::uint64_t address_ = 0;
  std::array<std::uint8_t, 16> token_{};
  std::optional<wire::OpenMemoryReply> opened_;
};

TEST_F(ControllerSharedMemory, IsWhereItsOwnerHasIt) {
  ASSERT_EQ(Open(opener_), 0);
  EXPECT_EQ(opened_->bytes, kBytes);
  EXPECT_EQ(opened_->device, 0);
  EXPECT_EQ(Share(owner_, address_)->token, token_) << "the same each time";
  EXPECT_EQ(Close(opener_), 0);
  EXPECT_EQ(Open(opener_), 0) << "the handle is good for more than once";
}

TEST_F(ControllerSharedMemory, OnlyWholeAllocationsAreShared) {
  EXPECT_EQ(Share(owner_, address_ + 512)->error, kInvalidValue);
  EXPECT_EQ(Share(opener_, address_)->error, kInvalidValue) << "of others";
  EXPECT_EQ(Share(owner_, 0)->error, kInvalidValue);
}

TEST_F(ControllerSharedMemory, IsOpenedByOtherProcessesOfTheFunctionOnly) {
  EXPECT_EQ(Open(owner_), kInvalidContext);
  Client stranger = Connect("token-b");
  EXPECT_EQ(Open(stranger), kInvalidHandle);
  EXPECT_FALSE(stranger.link->closed);
}

TEST_F(ControllerSharedMemory, AForgedHandleOpensNothing) {
  wire::OpenMemory request = Request(opener_);
  request.token[15] ^= 1;
  EXPECT_EQ(Open(opener_, request), kInvalidHandle);
  request = Request(opener_);
  request.address += 512;
  EXPECT_EQ(Open(opener_, request), kInvalidHandle);
  request = Request(opener_);
  request.owner_session = 1u << 30;
  EXPECT_EQ(Open(opener_, request), kInvalidHandle);
  request.owner_session = opener_.hello.session_id;
  EXPECT_EQ(Open(opener_, request), kInvalidHandle);
}

TEST_F(ControllerSharedMemory, IsOpenedAndClosedOnceAProcess) {
  EXPECT_EQ(Close(opener_), kInvalidValue);
  ASSERT_EQ(Open(opener_), 0);
  EXPECT_EQ(Open(opener_), kInvalidHandle);
  Client other = Connect("token-a");
  EXPECT_EQ(Close(other), kInvalidValue) << "another has it open";
  EXPECT_EQ(Open(other), 0);
  EXPECT_EQ(Close(opener_), 0);
  EXPECT_EQ(Close(opener_), kInvalidValue);
  EXPECT_EQ(Close(other), 0);
}

TEST_F(ControllerSharedMemory, ProcessesThatShareHaveOneLease) {
  const auto lease = WantLease(owner_);
  const auto joined = WantLease(opener_);
  ASSERT_TRUE(lease && joined);
  EXPECT_EQ(joined->lease_id, lease->lease_id);
}

TEST_F(ControllerSharedMemory, WhoRunsHasTheOwnersMemoryThere) {
  ASSERT_EQ(Open(opener_), 0);
  ASSERT_TRUE(WantLease(opener_));
  EXPECT_TRUE(IsThere(owner_));
}

TEST_F(ControllerSharedMemory, WhatIsOpenedUnderALeaseIsBroughtFirst) {
  ASSERT_TRUE(WantLease(opener_));
  ShareFromALaterProcess();
  Hold(&v1::DaemonMessage::has_swap_in);
  EXPECT_EQ(Open(opener_), -1) << "not yet";
  answers_ = nullptr;
  Settle();
  opened_ = opener_.link->Take<wire::OpenMemoryReply>();
  ASSERT_TRUE(opened_);
  EXPECT_EQ(opened_->error, 0);
  EXPECT_TRUE(IsThere(owner_));
}

TEST_F(ControllerSharedMemory, NothingIsOpenBeforeItHasArrived) {
  owner_ = Connect("token-b");
  opener_ = Connect("token-b");
  address_ = Malloc(owner_, kBytes)->address;
  completes_swap_ins_ = false;
  ASSERT_TRUE(WantLease(owner_));
  token_ = Share(owner_, address_)->token;
  EXPECT_EQ(Open(opener_), -1) << "not yet";
  CompleteSwapIn(0, owner_);
  opened_ = opener_.link->Take<wire::OpenMemoryReply>();
  ASSERT_TRUE(opened_);
  EXPECT_EQ(opened_->error, 0);
}

TEST_F(ControllerSharedMemory, WhatCannotBeBroughtIsNotOpen) {
  ASSERT_TRUE(WantLease(opener_));
  ShareFromALaterProcess();
  Refuse(&v1::DaemonMessage::has_swap_in, absl::ResourceExhaustedError("no"));
  EXPECT_EQ(Open(opener_), 2);
  answers_ = nullptr;
  EXPECT_EQ(Close(opener_), kInvalidValue);
}

TEST_F(ControllerSharedMemory, NobodyRunsWithoutWhatItHasOpen) {
  ASSERT_EQ(Open(opener_), 0);
  answers_ = [&](const v1::DaemonMessage& operation) -> absl::Status {
    const bool is_owners = operation.swap_in().session_id() == owner_.hello.session_id;
    return is_owners ? absl::ResourceExhaustedError("no") : absl::OkStatus();
  };
  EXPECT_FALSE(WantLease(opener_));
  const auto lost = opener_.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->sticky);
}

TEST_F(ControllerSharedMemory, AnImageThatOthersMayHaveChangedIsWrittenBack) {
  ASSERT_EQ(Open(opener_), 0);
  const auto lease = WantLease(opener_);
  ASSERT_TRUE(lease);
  std::set<std::uint64_t> shared;
  answers_ = [&](const v1::DaemonMessage& operation) {
    if (operation.swap_out().is_shared()) shared.insert(operation.swap_out().session_id());
    return absl::OkStatus();
  };
  Say(opener_, wire::LeaseReturned{lease->lease_id});
  EXPECT_EQ(shared, std::set<std::uint64_t>{owner_.hello.session_id});
}

TEST_F(ControllerSharedMemory, FreedMemoryStaysUntilItIsClosed) {
  const std::uint64_t before = FreeBytes(owner_);
  ASSERT_EQ(Open(opener_), 0);
  EXPECT_EQ(Free(owner_, address_)->error, 0);
  EXPECT_EQ(FreeBytes(owner_), before);
  EXPECT_EQ(Free(owner_, address_)->error, kInvalidValue) << "twice";
  EXPECT_EQ(FreeBytes(owner_), before);
  EXPECT_EQ(Share(owner_, address_)->error, kInvalidValue);
  Client late = Connect("token-a");
  EXPECT_EQ(Open(late), kInvalidHandle);
  EXPECT_EQ(Close(opener_), 0);
  EXPECT_EQ(FreeBytes(owner_), before + kBytes);
}

TEST_F(ControllerSharedMemory, FreedMemoryGoesAtOnceWhenNobodyHasItOpen) {
  const std::uint64_t before = FreeBytes(owner_);
  EXPECT_EQ(Free(owner_, address_)->error, 0);
  EXPECT_EQ(FreeBytes(owner_), before + kBytes);
  EXPECT_EQ(Open(opener_), kInvalidHandle);
  EXPECT_EQ(Free(owner_, address_)->error, kInvalidValue);
}

TEST_F(ControllerSharedMemory, OutlivesItsOwnerForThoseThatHaveItOpen) {
  ASSERT_EQ(Open(opener_), 0);
  ASSERT_TRUE(WantLease(owner_));
  const auto lease = WantLease(opener_);
  ASSERT_TRUE(lease);
  Disconnect(owner_);
  EXPECT_TRUE(IsKnown(owner_));
  EXPECT_TRUE(IsThere(owner_));
  EXPECT_EQ(executors_[0].leases.count(owner_.hello.session_id), 0u) << "its work has ended";
  Client late = Connect("token-a");
  EXPECT_EQ(Open(late), kInvalidHandle) << "nobody lends it any more";
  // It moves with the others.
  Say(opener_, wire::LeaseReturned{lease->lease_id});
  Client b = Connect("token-b");
  ASSERT_EQ(Malloc(b, 48 * kMiB)->error, 0);
  ASSERT_EQ(Malloc(opener_, 16 * kMiB)->error, 0);
  Serve("b", b);
  EXPECT_FALSE(IsThere(owner_));
  ASSERT_TRUE(WantLease(opener_));
  EXPECT_TRUE(IsThere(owner_));
  EXPECT_EQ(Close(opener_), 0);
  EXPECT_FALSE(IsKnown(owner_));
  EXPECT_EQ(controller_->Snapshot().sessions, 3u);
}

TEST_F(ControllerSharedMemory, AnOpenersDeathClosesWhatItHadOpen) {
  const std::uint64_t before = FreeBytes(owner_);
  ASSERT_EQ(Open(opener_), 0);
  ASSERT_TRUE(WantLease(opener_));
  EXPECT_EQ(Free(owner_, address_)->error, 0);
  Hold(&v1::DaemonMessage::has_close_session);
  Disconnect(opener_);
  EXPECT_EQ(FreeBytes(owner_), before) << "its kernels may still use it";
  answers_ = nullptr;
  Settle();
  EXPECT_EQ(FreeBytes(owner_), before + kBytes);
}

TEST_F(ControllerSharedMemory, NothingIsLeftWhenAllHaveGone) {
  ASSERT_EQ(Open(opener_), 0);
  Disconnect(owner_);
  Disconnect(opener_);
  EXPECT_TRUE(executors_[0].sessions.empty());
  EXPECT_EQ(controller_->Snapshot().sessions, 0u);
}

TEST_F(ControllerSharedMemory, AKeptImageSurvivesItsExecutor) {
  ASSERT_EQ(Open(opener_), 0);
  Disconnect(owner_);
  KillExecutor(0);
  StartExecutor(0);
  EXPECT_TRUE(IsKnown(owner_));
  ASSERT_TRUE(WantLease(opener_));
  EXPECT_TRUE(IsThere(owner_));
}

// Two processes, each with a session on each of two GPUs.
class ControllerSharedDevices : public ControllerSharedMemory {
 protected:
  ControllerSharedDevices() : ControllerSharedMemory(2, "token-pair") {
    further_ = ConnectDevice("token-pair", opener_, 1);
  }
  Client further_;
};

TEST_F(ControllerSharedDevices, AnotherDeviceReachesWhatIsOpen) {
  ASSERT_EQ(Open(opener_), 0);
  ASSERT_TRUE(WantLease(opener_));
  const auto lease = WantLease(further_);
  ASSERT_TRUE(lease);
  EXPECT_EQ(executors_[lease->gpu].reached[owner_.hello.session_id], kBytes);
}

TEST_F(ControllerSharedDevices, WhatIsOpenedUnderALeaseIsReachedFromThere) {
  ASSERT_TRUE(WantLease(opener_));
  const auto lease = WantLease(further_);
  ASSERT_TRUE(lease);
  EXPECT_EQ(Open(further_), kInvalidHandle) << "the process's first session opens";
  ASSERT_EQ(Open(opener_), 0);
  EXPECT_EQ(executors_[lease->gpu].reached[owner_.hello.session_id], kBytes);
}

TEST_F(ControllerSharedDevices, AProcessThatGoesDisturbsNobody) {
  ASSERT_EQ(Open(opener_), 0);
  ASSERT_TRUE(WantLease(opener_));
  ASSERT_TRUE(WantLease(further_));
  ASSERT_TRUE(WantLease(owner_));
  Disconnect(further_);
  EXPECT_FALSE(IsKnown(opener_));
  EXPECT_FALSE(owner_.link->closed);
  EXPECT_EQ(Malloc(owner_, kBytes)->error, 0);
  EXPECT_EQ(Free(owner_, address_)->error, 0);
  EXPECT_TRUE(processes_.killed.empty());
}

}  // namespace
}  // namespace torpor::server
