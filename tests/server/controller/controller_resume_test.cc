// Sessions that go on with the next torpord.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>

#include "server/controller/model/cuda_errors.h"
#include "tests/server/controller/controller_harness.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

using testing::HasSubstr;
using Files = std::map<wire::SharedMemory, UniqueFd>;

class FakeKeeper final : public SessionKeeper {
 public:
  absl::Status Keep(SessionId session, const SessionFiles& files) override {
    if (!why_not.ok()) return why_not;
    for (const wire::SharedMemory what : SessionFiles::kKinds) {
      kept[session][what] = UniqueFd(dup(files.descriptor(what)));
    }
    return absl::OkStatus();
  }
  void Remove(SessionId session) override { kept.erase(session); }
  absl::StatusOr<std::shared_ptr<SessionFiles>> Take(SessionId session,
                                                     const SessionFiles::Sizes& sizes) override {
    Files copies;
    for (const auto& [what, descriptor] : kept[session]) {
      copies[what] = UniqueFd(dup(descriptor.get()));
    }
    return SessionFiles::Adopt(sizes, std::move(copies));
  }
  absl::Status KeepTenantFile(const std::string& tenant, const MemoryFile& file) override {
    tenant_files[tenant] = UniqueFd(dup(file.descriptor()));
    return absl::OkStatus();
  }
  void RemoveTenantFile(const std::string& tenant) override { tenant_files.erase(tenant); }
  std::shared_ptr<const MemoryFile> TakeTenantFile(const std::string& tenant,
                                                   Bytes image_bytes) override {
    const auto found = tenant_files.find(tenant);
    if (found == tenant_files.end()) return nullptr;
    return SessionFiles::AdoptTenantFile(image_bytes, UniqueFd(dup(found->second.get()))).value();
  }

  absl::Status why_not;
  std::map<SessionId, Files> kept;
  std::map<std::string, UniqueFd> tenant_files;
};

class ResumeTest : public ControllerHarness {
 protected:
  static constexpr Bytes kBlock = wire::kImageBlockBytes;

  ResumeTest() {
    options_.session_keeper = &keeper_;
    KillTorpord();
    StartExecutor(0);
  }
  ~ResumeTest() override { controller_.reset(); }

  // And starts the next one, without executors.
  void KillTorpord() {
    log_ = SessionLog::Open(folder_.path("sessions.log")).value();
    options_.session_log = log_.get();
    RestartTorpord();
  }

  wire::ResumeReply Refusal(const Client& client) {
    return client.link->Take<wire::ResumeReply>().value_or(wire::ResumeReply{});
  }
  // On a new connection; the reply may have to wait.
  void Ask(Client& client, const std::string& token,
           std::uint32_t version = wire::kProtocolVersion) {
    client.link = std::make_shared<FakeSessionLink>();
    wire::Resume resume;
    resume.hello.protocol_version = version;
    resume.hello.token = token;
    resume.session_id = client.hello.session_id;
    resume.session_key = client.hello.session_key;
    Say(client, resume);
  }
  void Resume(Client& client, const std::string& token) {
    Ask(client, token);
    const auto reply = client.link->Take<wire::ResumeReply>();
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->error, kCudaSuccess) << reply->message;
  }
  // The next torpord, with which the client goes on.
  void Restart(Client& client, const std::string& token) {
    KillTorpord();
    StartExecutor(0);
    Resume(client, token);
  }
  // The next torpord, which waits for clients half as long as it may.
  void WaitForHalfOfPatience() {
    KillTorpord();
    StartExecutor(0);
    loop_.Advance(config_.session.resume_patience / 2);
    Settle();
  }
  // A request that an earlier torpord has granted to the function's only instance.
  RequestId GoOn(const std::string& function) {
    const RequestId request{next_request_++};
    controller_->Acquire(
        request,
        {.function = function,
         .id = "r",
         .give_up = loop_.Now() + std::chrono::seconds(5),
         .arrival = loop_.Now(),
         .ran_on = function},
        [this, request](absl::StatusOr<RequestGrant> grant) {
          outcomes_[request].grant = std::move(grant);
        },
        [this, request](absl::Status status) { outcomes_[request].lost = std::move(status); });
    Settle();
    return request;
  }
  std::shared_ptr<SessionFiles> FilesOf(const Client& client) {
    return *repository_.Find(SessionId{client.hello.session_id}, client.hello.session_key);
  }
  std::optional<wire::MemoryReply> Answer(const Client& client) {
    return client.link->Take<wire::MemoryReply>();
  }

  const TemporaryFolder folder_;
  FakeKeeper keeper_;
  std::unique_ptr<SessionLog> log_;
};

TEST_F(ResumeTest, AClientGoesOnWithItsMemory) {
  Client client = Connect("token-c");
  const auto first = Malloc(client, 3 * kMiB);
  ASSERT_TRUE(first && first->error == kCudaSuccess);
  Say(client, wire::HostAlloc{client.next_request++, 8192});
  const auto host = Answer(client);
  ASSERT_TRUE(host && host->error == kCudaSuccess);
  Restart(client, "token-c");
  EXPECT_EQ(counts_.outlived[OutlivedFate::kResumed], 1);
  EXPECT_TRUE(executors_[0].sessions.contains(client.hello.session_id));
  const auto second = Malloc(client, 3 * kMiB);
  ASSERT_TRUE(second && second->error == kCudaSuccess);
  EXPECT_NE(second->address, first->address);
  Say(client, wire::HostAlloc{client.next_request++, 8192});
  EXPECT_NE(Answer(client)->address, host->address);
  EXPECT_EQ(Free(client, first->address)->error, kCudaSuccess);
  Say(client, wire::HostFree{client.next_request++, host->address});
  EXPECT_EQ(Answer(client)->error, kCudaSuccess);
  Serve("c", client);
}

TEST_F(ResumeTest, BlocksInTheTenantsFileStayThere) {
  Client client = Connect("token-c");
  const auto block = Malloc(client, 3 * kMiB);
  ASSERT_TRUE(block && block->error == kCudaSuccess);
  const Bytes begin = block->address - client.hello.device_base;
  constexpr std::array<std::uint8_t, 3> kBytes = {1, 2, 3};
  {
    const auto files = FilesOf(client);
    ASSERT_TRUE(files->file(wire::SharedMemory::kTenantFile).Write(20 * kBlock, kBytes).ok());
    MappedStates mapped = files->MapStates({begin, begin + kBlock}).value();
    mapped.states().Move(begin / kBlock - mapped.first_block(), memory::TenantHome(20));
  }
  for (const Duration after : {std::chrono::seconds(5), std::chrono::seconds(0)}) {
    options_.config.share_equal_blocks = after;  // 0: no more blocks are shared
    Restart(client, "token-c");
    loop_.Advance(std::chrono::seconds(2));
    Settle();
    EXPECT_EQ(controller_->Snapshot().sharing.used, kBlock);
    std::array<std::uint8_t, 3> read{};
    const auto files = FilesOf(client);
    EXPECT_TRUE(files->file(wire::SharedMemory::kTenantFile).Read(20 * kBlock, read).ok());
    EXPECT_EQ(read, kBytes);
  }
  ASSERT_EQ(Free(client, block->address)->error, kCudaSuccess);
  memory::Checkpoint checkpoint = FilesOf(client)->checkpoint();
  checkpoint.Commit(1);
  for (int second = 0; second < 3; ++second) {
    loop_.Advance(std::chrono::seconds(1));
    Settle();
  }
  EXPECT_EQ(controller_->Snapshot().sharing.used, 0u);
}

TEST_F(ResumeTest, WithoutItsTenantsFileASessionGoesOnAndSharesNothing) {
  Client client = Connect("token-c");
  ASSERT_TRUE(Malloc(client, 3 * kMiB));
  keeper_.tenant_files.clear();
  Restart(client, "token-c");
  EXPECT_LT(FilesOf(client)->descriptor(wire::SharedMemory::kTenantFile), 0)
      << "a new file would have other bytes";
  Serve("c", client);
}

TEST_F(ResumeTest, WhatASessionHasStaysUnderASmallerBudget) {
  Client client = Connect("token-c");
  const auto first = Malloc(client, 8 * kMiB);
  ASSERT_TRUE(first && first->error == kCudaSuccess);
  options_.host_budget = 4 * kMiB;
  Restart(client, "token-c");
  EXPECT_GT(controller_->Snapshot().host_memory.used, 8 * kMiB);
  EXPECT_EQ(controller_->Snapshot().host_memory.budget, 4 * kMiB);
  const auto second = Malloc(client, kMiB);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->error, kCudaErrorMemoryAllocation);
  EXPECT_NE(second->message.find("host_memory 4MiB"), std::string::npos) << second->message;
  EXPECT_EQ(Free(client, first->address)->error, kCudaSuccess);
  const auto third = Malloc(client, kMiB);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->error, kCudaSuccess) << third->message;
  Serve("c", client);
}

TEST_F(ResumeTest, AnExecutorLearnsOfPinnedMemoryToo) {
  Client client = Connect("token-c");
  Say(client, wire::HostAlloc{client.next_request++, 8192});
  KillTorpord();
  StartExecutor(0);
  const auto& log = executors_[0].link->log;
  EXPECT_EQ(std::count_if(log.begin(), log.end(), [](const auto& o) { return o.has_map_host(); }),
            1);
}

TEST_F(ResumeTest, WhatWasDoneIsAnsweredAgainAndNotDoneTwice) {
  Client client = Connect("token-c");
  const auto kept = Malloc(client, kMiB);
  const auto freed = Malloc(client, kMiB);
  const std::uint64_t free = client.next_request;
  ASSERT_EQ(Free(client, freed->address)->error, kCudaSuccess);
  Restart(client, "token-c");
  Say(client, wire::Malloc{kept->request_id, kMiB});
  EXPECT_EQ(Answer(client)->address, kept->address);
  Say(client, wire::Free{free, freed->address});
  EXPECT_EQ(Answer(client)->error, kCudaSuccess);
  Say(client, wire::Free{client.next_request++, freed->address});
  EXPECT_EQ(Answer(client)->error, kCudaErrorInvalidValue);
  Say(client, wire::MemGetInfo{client.next_request++});
  EXPECT_EQ(client.link->Take<wire::MemGetInfoReply>()->free_bytes, 47 * kMiB);
}

TEST_F(ResumeTest, SessionsOutliveOneTorpordAfterAnother) {
  Client client = Connect("token-c");
  const auto first = Malloc(client, kMiB);
  Restart(client, "token-c");
  const auto second = Malloc(client, kMiB);
  Restart(client, "token-c");
  EXPECT_EQ(Free(client, first->address)->error, kCudaSuccess);
  EXPECT_EQ(Free(client, second->address)->error, kCudaSuccess);
  Disconnect(client);
  EXPECT_TRUE(keeper_.kept.empty());
  EXPECT_TRUE(log_->state().sessions().empty());
}

TEST_F(ResumeTest, AResumeWaitsForAnExecutor) {
  Client client = Connect("token-c");
  KillTorpord();
  Ask(client, "token-c");
  EXPECT_FALSE(client.link->Take<wire::ResumeReply>());
  Disconnect(client);
  Ask(client, "token-c");
  StartExecutor(0);
  EXPECT_TRUE(client.link->Take<wire::ResumeReply>());
  Serve("c", client);
}

TEST_F(ResumeTest, MemoryThatNobodyHadReadsAsZero) {
  Client client = Connect("token-c");
  const auto kept = Malloc(client, kMiB);
  const auto freed = Malloc(client, kMiB);
  Free(client, freed->address);
  const SessionId id{client.hello.session_id};
  const int image = keeper_.kept[id][wire::SharedMemory::kImage].get();
  const auto offset = [&](std::uint64_t address) {
    return static_cast<off_t>(address - client.hello.device_base);
  };
  // As if the first torpord had died before it cleared what was freed.
  for (const std::uint64_t address : {kept->address, freed->address}) {
    ASSERT_EQ(pwrite(image, "x", 1, offset(address)), 1);
  }
  Restart(client, "token-c");
  std::array<char, 2> read{};
  ASSERT_EQ(pread(image, &read[0], 1, offset(kept->address)), 1);
  ASSERT_EQ(pread(image, &read[1], 1, offset(freed->address)), 1);
  EXPECT_EQ(read[0], 'x');
  EXPECT_EQ(read[1], '\0');
}

TEST_F(ResumeTest, ARequestThatRanGetsItsInstancesNextLease) {
  Client client = Connect("token-c");
  Malloc(client, kMiB);
  const RequestId before = Acquire("c");
  const auto granted = TakeLease(client);
  ASSERT_TRUE(IsRunning(before));
  KillTorpord();
  const RequestId request = GoOn("c");
  Ask(client, "token-c");
  StartExecutor(0);
  const auto lease = TakeLease(client);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->is_explicit);
  EXPECT_TRUE(lease->replays);
  EXPECT_NE(lease->lease_id, granted->lease_id) << "routers tell them apart";
  EXPECT_FALSE(outcome(request).grant) << "it has one";
  Release(request);
  EXPECT_TRUE(GiveBack(client));
  Serve("c", client);
}

TEST_F(ResumeTest, AClientThatComesLateJoinsTheLeaseOfItsRequest) {
  Client client = Connect("token-c");
  Malloc(client, kMiB);
  KillTorpord();
  const RequestId request = GoOn("c");
  StartExecutor(0);
  Resume(client, "token-c");
  const auto lease = TakeLease(client);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->is_explicit);
  EXPECT_TRUE(lease->replays);
  Release(request);
  EXPECT_TRUE(GiveBack(client));
}

TEST_F(ResumeTest, AClientsAbsenceCountsOverTheDeathsOfTorpord) {
  Connect("token-c");
  WaitForHalfOfPatience();
  WaitForHalfOfPatience();
  EXPECT_EQ(counts_.outlived[OutlivedFate::kExpired], 1);
  EXPECT_TRUE(keeper_.kept.empty());
}

TEST_F(ResumeTest, AClientThatCameBackMayStayAwayAsLongAgain) {
  Client client = Connect("token-c");
  WaitForHalfOfPatience();
  Resume(client, "token-c");
  WaitForHalfOfPatience();
  EXPECT_EQ(counts_.outlived[OutlivedFate::kExpired], 0);
}

TEST_F(ResumeTest, ATorpordThatComesLateStillWaitsForASecond) {
  Connect("token-c");
  KillTorpord();
  loop_.Forget();  // there is no torpord for a while
  loop_.Advance(2 * config_.session.resume_patience);
  KillTorpord();
  StartExecutor(0);
  loop_.Advance(std::chrono::milliseconds(999));
  Settle();
  EXPECT_EQ(counts_.outlived[OutlivedFate::kExpired], 0);
  loop_.Advance(std::chrono::milliseconds(1));
  Settle();
  EXPECT_EQ(counts_.outlived[OutlivedFate::kExpired], 1);
}

TEST_F(ResumeTest, AClientThatStaysAwayLosesItsSession) {
  Client client = Connect("token-c");
  KillTorpord();
  StartExecutor(0);
  loop_.Advance(config_.session.resume_patience);
  Settle();
  EXPECT_EQ(counts_.outlived[OutlivedFate::kExpired], 1);
  EXPECT_TRUE(keeper_.kept.empty());
  EXPECT_TRUE(executors_[0].sessions.empty());
  Ask(client, "token-c");
  EXPECT_THAT(Refusal(client).message, HasSubstr("did not come back within 60 s"));
  Client next = Connect("token-c");
  EXPECT_GT(next.hello.session_id, client.hello.session_id);
}

TEST_F(ResumeTest, OnlyItsOwnClientResumesASession) {
  Client client = Connect("token-c");
  KillTorpord();
  StartExecutor(0);
  Client thief = client;
  thief.hello.session_key[0] ^= 1;
  Ask(thief, "token-c");
  EXPECT_EQ(Refusal(thief).error, kCudaErrorDevicesUnavailable);
  EXPECT_TRUE(thief.link->closed);
  Resume(client, "token-c");
  Client second = client;
  Ask(second, "token-c");
  EXPECT_EQ(Refusal(second).error, kCudaErrorDevicesUnavailable);
  Serve("c", client);
}

TEST_F(ResumeTest, AClientOfAnotherVersionOrFunctionIsRefusedForGood) {
  Client old = Connect("token-c");
  Client other = Connect("token-c");
  KillTorpord();
  StartExecutor(0);
  Ask(old, "token-c", wire::kProtocolVersion - 1);
  EXPECT_THAT(Refusal(old).message, HasSubstr("protocol"));
  Ask(other, "token-a");
  EXPECT_THAT(Refusal(other).message, HasSubstr("TORPOR_TOKEN"));
  EXPECT_EQ(counts_.outlived[OutlivedFate::kRefused], 2);
  EXPECT_TRUE(keeper_.kept.empty());
}

TEST_F(ResumeTest, WhatCannotBeRestoredIsLostWithItsReason) {
  Client removed = Connect("token-a");
  Client changed = Connect("token-b");
  Client kept = Connect("token-c");
  options_.config.functions.erase("a");
  options_.config.functions["b"].is_stateless = false;
  options_.config.functions["b"].durability = Durability::kEviction;
  KillTorpord();
  StartExecutor(0);
  EXPECT_EQ(counts_.outlived[OutlivedFate::kDropped], 2);
  EXPECT_EQ(keeper_.kept.size(), 1u);
  Ask(removed, "token-a");
  EXPECT_THAT(Refusal(removed).message, HasSubstr("no longer in the configuration"));
  Ask(changed, "token-b");
  EXPECT_THAT(Refusal(changed).message, HasSubstr("durability"));
  Resume(kept, "token-c");
}

TEST_F(ResumeTest, AnImageThatWasBeingWrittenOverIsLost) {
  Client client = Connect("token-c");
  const SessionId id{client.hello.session_id};
  repository_.Find(id, client.hello.session_key).value()->checkpoint().NoteOverwritten();
  KillTorpord();
  StartExecutor(0);
  Ask(client, "token-c");
  EXPECT_THAT(Refusal(client).message, HasSubstr("being saved"));
}

TEST_F(ResumeTest, WithoutReplayASessionGoesOnIfItsFirstWorkWasSaved) {
  Client saved = Connect("token-a");
  Malloc(saved, kMiB);
  Serve("a", saved);
  Client unsaved = Connect("token-b");
  Malloc(unsaved, kMiB);
  Acquire("b");
  ASSERT_TRUE(TakeLease(unsaved));
  KillTorpord();
  StartExecutor(0);
  Resume(saved, "token-a");
  Ask(unsaved, "token-b");
  EXPECT_THAT(Refusal(unsaved).message, HasSubstr("not saved yet"));
}

TEST_F(ResumeTest, SharedMemoryEndsWithItsTorpord) {
  Client client = Connect("token-c");
  const auto memory = Malloc(client, kMiB);
  Say(client, wire::ShareMemory{client.next_request++, memory->address});
  KillTorpord();
  StartExecutor(0);
  Ask(client, "token-c");
  EXPECT_THAT(Refusal(client).message, HasSubstr("share GPU memory"));
}

TEST_F(ResumeTest, FilesThatAreNotKeptEndWithTheirTorpord) {
  keeper_.why_not = absl::ResourceExhaustedError("full");
  Client client = Connect("token-c");
  Serve("c", client);
  KillTorpord();
  StartExecutor(0);
  Ask(client, "token-c");
  EXPECT_THAT(Refusal(client).message, HasSubstr("could not be kept"));
}

TEST_F(ResumeTest, AnInstanceWithoutItsClientsIsNotReady) {
  Client client = Connect("token-c");
  EXPECT_EQ(controller_->ServingUpstreams("c").size(), 1u);
  KillTorpord();
  StartExecutor(0);
  EXPECT_TRUE(controller_->ServingUpstreams("c").empty());
  Resume(client, "token-c");
  EXPECT_EQ(controller_->ServingUpstreams("c").size(), 1u);
}

TEST_F(ResumeTest, AHandoverLeavesSessionsAndTellsNoEnd) {
  Client client = Connect("token-c");
  Malloc(client, kMiB);
  controller_->LeaveSessions();
  controller_->Shutdown();
  EXPECT_TRUE(client.link->closed);
  EXPECT_FALSE(client.link->Take<wire::LeaseLost>());
  Disconnect(client);
  Restart(client, "token-c");
  Serve("c", client);
}

TEST_F(ResumeTest, AStopEndsSessionsAndTheyHearOfIt) {
  Client client = Connect("token-c");
  controller_->Shutdown();
  const auto lost = client.link->Take<wire::LeaseLost>();
  EXPECT_TRUE(lost && lost->sticky);
  EXPECT_TRUE(keeper_.kept.empty());
  EXPECT_TRUE(log_->state().sessions().empty());
}

// Its memory leaves room for others' as before.
TEST_F(ResumeTest, TheSchedulerKnowsTheSizeOfImages) {
  Client c = Connect("token-c");
  Malloc(c, 40 * kMiB);
  KillTorpord();
  StartExecutor(0);
  Resume(c, "token-c");
  Client a = Connect("token-a");
  Malloc(a, 40 * kMiB);
  Serve("c", c);
  Serve("a", a);
  Serve("c", c);
  EXPECT_EQ(executors_[0].resident, (std::set<std::uint64_t>{c.hello.session_id}));
  Disconnect(c);
  Serve("a", a);
}

TEST_F(ResumeTest, StrikesOutliveTorpord) {
  for (int fault = 0; fault < 3; ++fault) {
    loop_.Advance(std::chrono::minutes(1));
    Client a = Connect("token-a");
    const RequestId request = Acquire("a");
    ASSERT_TRUE(TakeLease(a));
    LoseContext(a, 700);
    KillExecutor(0);
    StartExecutor(0);
    Release(request, scheduler::Ending::kFailed);
    Disconnect(a);
  }
  loop_.Advance(std::chrono::milliseconds(500));
  for (int life = 0; life < 2; ++life) KillTorpord();
  StartExecutor(0);
  Client a = Connect("token-a");
  EXPECT_EQ(Failure(Acquire("a")), absl::StatusCode::kPermissionDenied) << "for 2 s in all";
  loop_.Advance(std::chrono::milliseconds(1500));
  Serve("a", a);
}

}  // namespace
}  // namespace torpor::server
