#include "server/controller/executor_losses.h"
#include "server/controller/executor_recovery.h"
#include "server/controller/model/cuda_errors.h"
#include "server/controller/node_snapshots.h"
#include "server/controller/session_closing.h"
#include "server/controller/session_opening.h"
#include "server/controller/session_resuming.h"
#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

// The parts that open, close and lose sessions, wired with each other but with no scheduler.
class SessionLivesTest : public NodeWorld {
 protected:
  SessionLivesTest() {
    tell_ = [this](GpuExecutor& executor) { recovery_.TellOfSessions(executor); };
  }

  SessionPtr SayHello(wire::Hello hello) {
    hello.protocol_version = wire::kProtocolVersion;
    SessionPtr session = tables_.sessions.OfLink(std::make_shared<FakeSessionLink>());
    opening_.Greet(session, hello);
    return session;
  }
  static wire::Hello WithToken(const std::string& token) {
    wire::Hello hello;
    hello.token = token;
    return hello;
  }

  const std::unique_ptr<scheduler::Scheduler> own_scheduler_ = MakeScheduler();
  scheduler::Scheduler& scheduler_ = *own_scheduler_;
  ImageServices images_{tables_, scheduler_, events_, host_.room, seats_, telemetry_, loop_, [] {}};
  MemoryServices memory_{tables_,
                         images_,
                         events_,
                         loop_,
                         kChunk,
                         host_.segments,
                         host_.room,
                         [this](const SessionPtr& session, const StepQueue::Finish& finish) {
                           closing_.Finish(session, finish);
                         }};
  ImplicitRequests implicit_{tables_.sessions, events_};
  InstanceHealth health_{tables_.instances, tables_.sessions, events_, loop_};
  LeaseService leases_{tables_.instances,
                       tables_.sessions,
                       tables_.executors,
                       seats_,
                       health_,
                       images_.swaps,
                       implicit_,
                       events_,
                       telemetry_,
                       loop_,
                       {.taken = [](FunctionInstance&) {},
                        .ended = [](const InstanceLease&) {},
                        .close = [](const SessionPtr&, const std::string&) {}}};
  RequestTraces traces_{tables_.instances, scheduler_, loop_, 10};
  SessionSaves saves_{tables_.sessions, images_.swaps, loop_};
  Requests requests_{tables_.instances,
                     tables_.sessions,
                     tables_.executors,
                     health_,
                     saves_,
                     traces_,
                     events_,
                     loop_};
  SessionClosing closing_{tables_.instances, tables_.sessions, tables_.executors, health_,
                          images_.swaps,     leases_,          implicit_,         saves_,
                          memory_.shared,    storage_,         events_,           loop_};
  SessionOpening::Close close_ = [this](const SessionPtr& session, const std::string& why) {
    closing_.Close(session, why);
  };
  SessionJournal journal_{nullptr, nullptr};
  SessionOpening opening_{{.anonymous_function = "",
                           .descriptor_socket = "/nowhere",
                           .window_bytes = kMiB,
                           .is_emulated = true,
                           .hello_timeout = std::chrono::seconds(30)},
                          tables_.instances,
                          tables_.sessions,
                          tables_.executors,
                          tables_.domains,
                          seats_,
                          health_,
                          memory_.limits,
                          storage_,
                          journal_,
                          telemetry_,
                          loop_,
                          close_};
  SessionResuming resuming_{
      tables_.instances,
      tables_.sessions,
      tables_.executors,
      health_,
      opening_,
      leases_,
      requests_,
      telemetry_,
      loop_,
      {.close = close_, .refused = [](const FunctionInstance&, const std::string&) {}}};
  ExecutorRecovery recovery_{{.chunk_bytes = kChunk, .is_emulated = true},
                             tables_.executors,
                             tables_.spares,
                             tables_.domains,
                             seats_,
                             tables_.sessions,
                             opening_,
                             resuming_,
                             journal_,
                             events_,
                             loop_,
                             close_};
  FunctionStrikes strikes_{tables_.instances, journal_, loop_, telemetry_,
                           [](const RegisteredFunction&, const absl::Status&) {}};
  ExecutorLosses losses_{
      tables_.executors, tables_.instances, tables_.sessions, images_.swaps, images_.peers, leases_,
      implicit_,         requests_,         strikes_,         seats_,        events_};
};

TEST_F(SessionLivesTest, ASessionIsOfferedWhenAllExecutorsKnowIt) {
  const SessionPtr session = SayHello(WithToken("token-a"));
  loop_.RunAll();
  EXPECT_EQ(Operation(0).open_session().session().function(), "a");
  EXPECT_FALSE(LinkOf(session).Take<wire::HelloReply>());
  Settle();
  const auto reply = LinkOf(session).Take<wire::HelloReply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->memory_limit, 48 * kMiB);
  EXPECT_EQ(reply->devices.size(), 1u);
  EXPECT_TRUE(reply->has_peer_access);
  opening_.Acknowledge(session, {});
  EXPECT_EQ(session->state, ClientSession::State::kOpen);
}

TEST_F(SessionLivesTest, StrangersAreRefused) {
  for (const char* token : {"", "token-b"}) {
    const SessionPtr session = SayHello(WithToken(token));
    EXPECT_EQ(LinkOf(session).Take<wire::HelloReply>()->error, kCudaErrorNotPermitted);
    EXPECT_TRUE(LinkOf(session).closed);
    EXPECT_EQ(tables_.sessions.Find(session->id), nullptr);
  }
  opening_.Stop();
  const SessionPtr late = SayHello(WithToken("token-a"));
  EXPECT_EQ(LinkOf(late).Take<wire::HelloReply>()->error, kCudaErrorDevicesUnavailable);
}

TEST_F(SessionLivesTest, ASecondarySessionShowsThePrimarysKey) {
  const SessionPtr primary = AddSession("pair");
  wire::DeviceHello hello;
  hello.hello = WithToken("token-pair");
  hello.hello.protocol_version = wire::kProtocolVersion;
  hello.primary_session = primary->id.value;
  hello.device = 1;
  const SessionPtr stranger = tables_.sessions.OfLink(std::make_shared<FakeSessionLink>());
  opening_.Greet(stranger, hello);
  EXPECT_EQ(LinkOf(stranger).Take<wire::HelloReply>()->error, kCudaErrorInvalidValue);
  hello.primary_key = primary->memory.key;
  const SessionPtr secondary = tables_.sessions.OfLink(std::make_shared<FakeSessionLink>());
  opening_.Greet(secondary, hello);
  Settle();
  EXPECT_EQ(LinkOf(secondary).Take<wire::HelloReply>()->error, 0);
  EXPECT_EQ(secondary->primary, primary->id);
  EXPECT_EQ(secondary->device_index, 1);
}

TEST_F(SessionLivesTest, AnInquiryIsAnsweredWithoutASession) {
  wire::Inquiry inquiry;
  inquiry.hello = WithToken("token-pair");
  inquiry.hello.protocol_version = wire::kProtocolVersion;
  const SessionPtr session = tables_.sessions.OfLink(std::make_shared<FakeSessionLink>());
  opening_.Greet(session, inquiry);
  const auto reply = LinkOf(session).Take<wire::InquiryReply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->devices.size(), 2u);
  EXPECT_EQ(reply->free_bytes, std::vector<std::uint64_t>(2, 48 * kMiB));
  EXPECT_TRUE(LinkOf(session).closed);
  EXPECT_TRUE(IsQuiet(0));
}

TEST_F(SessionLivesTest, AClosedSessionIsForgottenWhenExecutorsHaveLetGo) {
  const SessionPtr session = AddSession("a");
  session->memory.device->Allocate(kChunk);
  closing_.Close(session, "a test");
  EXPECT_TRUE(LinkOf(session).closed);
  loop_.RunAll();
  Answer(0);
  EXPECT_TRUE(tables_.sessions.Find(session->id));
  Answer(1);
  EXPECT_FALSE(tables_.sessions.Find(session->id));
  EXPECT_EQ(events_.Of<scheduler::ImageShrunk>().at(0).bytes, kChunk);
  EXPECT_FALSE(session->memory.files);
  EXPECT_TRUE(InstanceOf("a").sessions.empty());
}

TEST_F(SessionLivesTest, ASessionTakesItsProcessAlong) {
  const SessionPtr primary = AddSession("pair");
  const SessionPtr secondary = AddSession("pair", 1, primary);
  closing_.Close(secondary, "a test");
  EXPECT_EQ(primary->state, ClientSession::State::kClosing);
}

TEST_F(SessionLivesTest, AnExecutorThatCannotCloseASessionIsKilled) {
  const SessionPtr session = AddSession("a");
  closing_.Close(session, "a test");
  loop_.RunAll();
  Answer(0, absl::InternalError("no"));
  Answer(1);
  EXPECT_EQ(processes_.killed, std::vector{GpuIndex{0}});
  EXPECT_TRUE(tables_.sessions.Find(session->id));
  KillExecutor(0);
  EXPECT_FALSE(tables_.sessions.Find(session->id));
}

TEST_F(SessionLivesTest, WhatOthersHaveOpenOutlivesItsProcess) {
  const SessionPtr session = AddSession("a");
  session->shared.Share(0);
  session->shared.Open(0, SessionId{99});
  closing_.Close(session, "a test");
  Settle();
  EXPECT_TRUE(session->is_kept);
  EXPECT_TRUE(tables_.sessions.Find(session->id));
}

TEST_F(SessionLivesTest, ARestartedExecutorLearnsOfAllSessions) {
  const SessionPtr session = AddSession("a");
  session->memory.host_blocks[0] = 4096;
  GpuExecutor& executor = tables_.executors.At(GpuIndex{0});
  losses_.Lose(executor);
  EXPECT_EQ(events_.Of<scheduler::ExecutorDown>().size(), 1u);
  executor.OnStarting(9);
  links_[0] = std::make_shared<FakeExecutorLink>();
  v1::ExecutorMessage::Register what;
  what.set_epoch(8);
  recovery_.Register(links_[0], what);
  EXPECT_TRUE(Link(0).closed) << "of another epoch";
  what.set_epoch(9);
  what.set_gpu(0);
  what.set_pool_bytes(kPool + 5);
  what.set_chunk_bytes(kChunk);
  what.add_image_sources(1);
  what.add_image_sources(7);
  recovery_.Register(links_[0], what);
  EXPECT_TRUE(Operation(0).has_open_session());
  Answer(0);
  EXPECT_TRUE(Operation(0).has_map_host());
  Answer(0);
  const auto up = events_.Of<scheduler::ExecutorUp>();
  ASSERT_EQ(up.size(), 1u);
  EXPECT_EQ(up[0].capacity, kPool);
  EXPECT_EQ(executor.state(), GpuExecutor::State::kReady);
}

TEST_F(SessionLivesTest, ADeadExecutorTakesUnsavedSessionsWithIt) {
  const SessionPtr saved = AddSession("a");
  const SessionPtr unsaved = AddSession("a");
  for (const SessionPtr& session : {saved, unsaved}) Land(session, 0);
  unsaved->image.NoteLease(LeaseId{1}, /*is_explicit=*/false);
  losses_.Lose(tables_.executors.At(GpuIndex{0}));
  EXPECT_FALSE(saved->is_lost);
  EXPECT_FALSE(saved->image.gpu());
  EXPECT_TRUE(unsaved->is_lost);
  EXPECT_TRUE(LinkOf(unsaved).Take<wire::LeaseLost>()->sticky);
}

TEST_F(SessionLivesTest, ABrokenContextLosesItsSession) {
  const SessionPtr session = AddSession("a");
  v1::ExecutorMessage::ContextLost what;
  what.set_session_id(session->id.value);
  what.set_cuda_error(700);
  losses_.OnContextLost(GpuIndex{0}, what);
  EXPECT_TRUE(session->is_lost);
  EXPECT_EQ(LinkOf(session).Take<wire::LeaseLost>()->error, 700);
}

TEST_F(SessionLivesTest, ASnapshotShowsSessionsAndLeases) {
  const NodeSnapshots snapshots(tables_.domains, tables_.executors, tables_.spares,
                                tables_.instances, tables_.sessions, leases_, requests_,
                                images_.shards, scheduler_, repository_, loop_);
  AddSession("a");
  NodeSnapshot node = snapshots.Take();
  EXPECT_EQ(node.state, "ready");
  EXPECT_EQ(node.sessions, 1u);
  ASSERT_EQ(node.functions.size(), 2u);
  EXPECT_EQ(node.functions[0].state, "idle");
  EXPECT_EQ(node.functions[1].state, "absent");
  GiveLease("a");
  loop_.Advance(std::chrono::seconds(2));
  node = snapshots.Take();
  EXPECT_EQ(node.functions[0].state, "running");
  EXPECT_EQ(node.gpus[0].leased_to, "a");
  EXPECT_EQ(node.gpus[0].busy_seconds, 2);
}

}  // namespace
}  // namespace torpor::server
