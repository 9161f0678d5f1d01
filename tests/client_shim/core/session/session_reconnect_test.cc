#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/client_shim/core/session/session_fixture.h"

// Sessions that outlive their torpord.
namespace torpor::shim {
namespace {

using ::testing::HasSubstr;

class ReconnectTest : public SessionTest {
 protected:
  explicit ReconnectTest(const FakeDaemon::Script& script = Replaying()) : SessionTest(script) {
    settings_.reconnect_timeout = std::chrono::seconds(60);
  }
  static FakeDaemon::Script Replaying() {
    FakeDaemon::Script script;
    script.replays = true;
    return script;
  }
  // torpord dies, with the executor; the next one grants the other executor.
  void KillTorpord() {
    daemon_.set_auto_grant(nullptr);
    daemon_.Stop();
    first_->Die();
  }
  void StartTorpord() {
    daemon_.set_auto_grant(second_.get());
    daemon_.Restart();
  }
  // The next grants ask for a replay.
  void GrantReplay() {
    daemon_.Await<wire::LeaseRequest>();
    wire::LeaseGrant grant;
    grant.lease_id = 100;
    grant.executor_socket = second_->socket();
    grant.executor_epoch = 1;
    grant.replays = true;
    daemon_.Send(grant);
  }
};

TEST_F(ReconnectTest, ACallWaitsForTheNextTorpord) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  first_->Pause();
  auto call = std::async(std::launch::async, [this] { return Synchronize(); });
  first_->Await(wire::DeviceSynchronize::kCallId, 2);
  daemon_.Await<wire::LeaseRequest>();
  KillTorpord();
  daemon_.Restart();
  const auto resume = daemon_.Await<wire::Resume>();
  EXPECT_EQ(resume.session_id, session_->session().session_id);
  EXPECT_EQ(resume.session_key, session_->session().session_key);
  GrantReplay();
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(daemon_.Await<wire::LeaseAck>().lease_id, 100u);
  EXPECT_EQ(session_->Start(), cudaSuccess);
}

TEST_F(ReconnectTest, RequestsAboutMemoryAreSentAgain) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.set_answers_memory(false);
  std::uint64_t address = 0;
  auto call = std::async(std::launch::async, [&] { return session_->Malloc(16, address); });
  const auto first = daemon_.Await<wire::Malloc>();
  KillTorpord();
  daemon_.set_answers_memory(true);
  StartTorpord();
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(address, FakeDaemon::kDeviceBase);
  EXPECT_EQ(daemon_.Await<wire::Malloc>().request_id, first.request_id);
}

TEST_F(ReconnectTest, RequestsMadeMeanwhileWait) {
  ASSERT_EQ(Start(), cudaSuccess);
  KillTorpord();
  std::uint64_t pinned = 0;
  auto call = std::async(std::launch::async, [&] { return session_->HostAlloc(16, pinned); });
  StartTorpord();
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(session_->HostFree(pinned), cudaSuccess);
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(ReconnectTest, MessagesRightBehindTheReplyCount) {
  ASSERT_EQ(Start(), cudaSuccess);
  for (int i = 0; i < 10; ++i) {
    daemon_.Stop();
    daemon_.Restart();
    daemon_.Await<wire::Resume>();
    const std::uint64_t lease = GrantRequest(*second_);
    daemon_.Send(wire::LeaseRevoke{lease});
    EXPECT_EQ(daemon_.Await<wire::LeaseReturned>().lease_id, lease);
  }
}

TEST_F(ReconnectTest, TheLogTellsOfTheWaitOnce) {
  settings_.log = LogLevel::kWarn;
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(Start(), cudaSuccess);
  KillTorpord();
  StartTorpord();
  EXPECT_EQ(Synchronize(), cudaSuccess);
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string gone = "torpord is gone; waiting 60 s for the next";
  EXPECT_THAT(said, HasSubstr(gone));
  EXPECT_EQ(said.find(gone), said.rfind(gone)) << said;
  EXPECT_THAT(said, HasSubstr("torpord is back after "));
  EXPECT_EQ(said.find("is back"), said.rfind("is back")) << said;
}

TEST_F(ReconnectTest, ARefusedSessionIsLost) {
  settings_.log = LogLevel::kWarn;
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(Start(), cudaSuccess);
  KillTorpord();
  daemon_.set_resume_answer(wire::ResumeReply{cudaErrorNotPermitted, "its memory was not kept", 0});
  std::uint64_t address = 0;
  auto call = std::async(std::launch::async, [&] { return session_->Malloc(16, address); });
  StartTorpord();
  EXPECT_NE(call.get(), cudaSuccess);
  while (session_->Start() == cudaSuccess) std::this_thread::yield();
  EXPECT_EQ(session_->Start(), cudaErrorNotPermitted);
  EXPECT_EQ(Synchronize(), cudaErrorNotPermitted);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("its memory was not kept"));
}

TEST_F(ReconnectTest, PatienceEnds) {
  settings_.reconnect_timeout = std::chrono::milliseconds(50);
  std::future<cudaError_t> call = CallWithoutLease();
  daemon_.Stop();
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  EXPECT_EQ(session_->Start(), cudaErrorDevicesUnavailable);
}

TEST_F(ReconnectTest, ASessionThatWasToldItsEndDoesNotComeBack) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  LoseLease({lease, cudaErrorIllegalAddress, true, "a kernel went astray"});
  KillTorpord();
  std::uint64_t address = 0;
  EXPECT_EQ(session_->Malloc(16, address), cudaErrorIllegalAddress);
  StartTorpord();
  process_.reset();
  EXPECT_EQ(daemon_.Count<wire::Resume>(), 0u);
}

class NotReplayedReconnectTest : public ReconnectTest {
 protected:
  NotReplayedReconnectTest() : ReconnectTest(FakeDaemon::Script{}) {}
};
TEST_F(NotReplayedReconnectTest, LosesTheCallsOfTheLeaseOnly) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  first_->Pause();
  auto call = std::async(std::launch::async, [this] { return Synchronize(); });
  first_->Await(wire::DeviceSynchronize::kCallId, 2);
  KillTorpord();
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  StartTorpord();
  daemon_.Await<wire::Resume>();
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

class DevicesReconnectTest : public ReconnectTest {
 protected:
  DevicesReconnectTest() : ReconnectTest(Two()) {}
  static FakeDaemon::Script Two() {
    FakeDaemon::Script script = Replaying();
    script.devices = 2;
    return script;
  }
};
TEST_F(DevicesReconnectTest, EachSessionComesBack) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(session_->OfDevice(1)->Start(), cudaSuccess);
  KillTorpord();
  StartTorpord();
  std::set<std::uint64_t> resumed;
  for (int i = 0; i < 2; ++i) resumed.insert(daemon_.Await<wire::Resume>().session_id);
  EXPECT_EQ(resumed, (std::set<std::uint64_t>{session_->session().session_id,
                                              session_->OfDevice(1)->session().session_id}));
}

TEST_F(DevicesReconnectTest, ASessionMayOpenBehindTheNextTorpord) {
  ASSERT_EQ(Start(), cudaSuccess);
  KillTorpord();
  auto second = std::async(std::launch::async, [this] { return session_->OfDevice(1)->Start(); });
  wire::InquiryReply devices;
  auto inquiry = std::async(std::launch::async, [&] { return session_->Inquire(devices); });
  StartTorpord();
  EXPECT_EQ(second.get(), cudaSuccess);
  EXPECT_EQ(inquiry.get(), cudaSuccess);
  EXPECT_EQ(devices.devices.size(), 2u);
}

}  // namespace
}  // namespace torpor::shim
