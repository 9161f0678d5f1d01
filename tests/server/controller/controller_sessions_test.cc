#include <vector>

#include "base/descriptor_limit.h"
#include "server/controller/model/cuda_errors.h"
#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

class ControllerSessions : public ControllerHarness {};

class ControllerSessionsOfTwoGpus : public ControllerHarness {
 protected:
  ControllerSessionsOfTwoGpus() : ControllerHarness(2) {}
};

TEST_F(ControllerSessions, HelloIsAnsweredOnceExecutorsKnowTheSession) {
  StartExecutor(0);
  answers_ = [](const v1::DaemonMessage&) { return std::nullopt; };
  const Client client = Hello("token-a");
  EXPECT_TRUE(client.link->received.empty());
  ASSERT_EQ(executors_[0].link->operations.size(), 1u);
  const v1::SessionDescription opened = executors_[0].link->operations[0].open_session().session();
  answers_ = nullptr;
  Settle();
  const auto reply = client.link->Take<wire::HelloReply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, 0);
  EXPECT_EQ(reply->function, "a");
  EXPECT_EQ(reply->session_id, opened.session_id());
  EXPECT_EQ(reply->device_base, opened.device_base());
  EXPECT_EQ(reply->memory_limit, 48 * kMiB);
  ASSERT_EQ(reply->devices.size(), 1u);
  EXPECT_EQ(reply->devices[0].name, "Fake GPU");
  EXPECT_TRUE(repository_.Find(SessionId{reply->session_id}, reply->session_key).ok());
}

TEST_F(ControllerSessions, ExecutorsLearnWhoseChangesMayBeForgotten) {
  StartExecutor(0);
  answers_ = [](const v1::DaemonMessage&) { return std::nullopt; };
  const Client kept = Hello("token-c");
  const Client stateless = Hello("token-b");
  const Client without_durability = Hello("token-a");
  const auto& operations = executors_[0].link->operations;
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_FALSE(operations[0].open_session().session().is_stateless());
  EXPECT_TRUE(operations[1].open_session().session().is_stateless());
  EXPECT_TRUE(operations[2].open_session().session().is_stateless());
}

TEST_F(ControllerSessions, WaitsForTheFirstExecutor) {
  const Client client = Hello("token-a");
  EXPECT_TRUE(client.link->received.empty());
  StartExecutor(0);
  EXPECT_TRUE(client.link->Take<wire::HelloReply>());
}

TEST_F(ControllerSessions, AFunctionsSessionsAreLimitedUntilOneEnds) {
  StartExecutor(0);
  Reconfigure([](Config& config) { config.functions["a"].max_sessions = 1; });
  const Client first = Connect("token-a");
  const auto refused = Hello("token-a").link->Take<wire::HelloReply>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error, kCudaErrorDevicesUnavailable);
  EXPECT_NE(refused->message.find("max_sessions"), std::string::npos) << refused->message;
  EXPECT_EQ(Hello("token-b").link->Take<wire::HelloReply>()->error, kCudaSuccess);
  Disconnect(first);
  EXPECT_EQ(Hello("token-a").link->Take<wire::HelloReply>()->error, kCudaSuccess);
}

TEST_F(ControllerSessions, DoesNotWaitForEver) {
  const Client client = Hello("token-a");
  loop_.Advance(std::chrono::minutes(1));
  const auto reply = client.link->Take<wire::HelloReply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, kCudaErrorDevicesUnavailable);
  EXPECT_TRUE(client.link->closed);
}

TEST_F(ControllerSessions, RefusesAnUnknownToken) {
  StartExecutor(0);
  for (const char* token : {"", "token-", "token-aa"}) {
    const Client client = Hello(token);
    loop_.Advance(std::chrono::milliseconds(100));  // of several mistakes
    const auto reply = client.link->Take<wire::HelloReply>();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error, kCudaErrorNotPermitted);
    EXPECT_TRUE(client.link->closed);
  }
}

TEST_F(ControllerSessions, RefusesAnotherProtocol) {
  StartExecutor(0);
  Client client;
  client.link = std::make_shared<FakeSessionLink>();
  wire::Hello hello;
  hello.protocol_version = 99;
  hello.token = "token-a";
  Say(client, hello);
  EXPECT_EQ(client.link->Take<wire::HelloReply>()->error, kCudaErrorInsufficientDriver);
}

TEST_F(ControllerSessions, AnInquiryIsAnsweredAndOpensNothing) {
  Client client;
  client.link = std::make_shared<FakeSessionLink>();
  wire::Inquiry inquiry;
  inquiry.hello.token = "token-a";
  Say(client, inquiry);
  EXPECT_TRUE(client.link->received.empty()) << "no device is known";
  StartExecutor(0);
  const auto reply = client.link->Take<wire::InquiryReply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->devices.size(), 1u);
  EXPECT_TRUE(client.link->closed);
  EXPECT_TRUE(executors_[0].sessions.empty());
  EXPECT_EQ(controller_->Snapshot().sessions, 0u);
}

TEST_F(ControllerSessions, AnInquiryTellsWhatIsFree) {
  StartExecutor(0);
  Client user = Connect("token-a");
  ASSERT_EQ(Malloc(user, 40 * kMiB)->error, 0);
  Client client;
  client.link = std::make_shared<FakeSessionLink>();
  wire::Inquiry inquiry;
  inquiry.hello.token = "token-a";
  Say(client, inquiry);
  const auto reply = client.link->Take<wire::InquiryReply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->free_bytes,
            std::vector<std::uint64_t>{reply->devices.at(0).total_bytes - 40 * kMiB});
}

// Of 64 GiB each, as it was, 416 would be all.
TEST_F(ControllerSessions, ThousandsHaveAddressesOfTheirOwn) {
  constexpr std::size_t kSessions = 2000;
  RaiseDescriptorLimit();
  StartExecutor(0);
  Reconfigure([](Config& config) { config.functions["b"].max_sessions = kSessions; });
  std::vector<Client> clients;
  for (std::size_t i = 0; i < kSessions; ++i) {
    clients.push_back(Connect("token-b"));
    ASSERT_EQ(clients.back().hello.error, 0) << clients.back().hello.message;
  }
  const NodeSnapshot node = controller_->Snapshot();
  EXPECT_EQ(node.addresses.bytes - node.addresses.free_bytes, kSessions * kGiB);
  const auto reply = Malloc(clients.back(), 4 * kKiB);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, 0) << reply->message;
  EXPECT_GE(reply->address, clients.back().hello.device_base);
}

// Processes of a function, and libraries of a process, must agree on the device's properties.
TEST_F(ControllerSessionsOfTwoGpus, AFunctionsDeviceIsDescribedAlikeWhicheverGpusComeLater) {
  StartExecutor(1);
  const auto first = Hello("token-a").link->Take<wire::HelloReply>();
  ASSERT_TRUE(first);
  StartExecutor(0);
  const auto second = Hello("token-a").link->Take<wire::HelloReply>();
  ASSERT_TRUE(second);
  ASSERT_EQ(first->devices.size(), 1u);
  ASSERT_EQ(second->devices.size(), 1u);
  EXPECT_EQ(first->devices[0].pci_bus_id, "0000:11:00.0") << "the second GPU's";
  EXPECT_EQ(second->devices[0].pci_bus_id, first->devices[0].pci_bus_id);
}

TEST_F(ControllerSessions, AnInquiryWithoutATokenIsRefused) {
  StartExecutor(0);
  Client client;
  client.link = std::make_shared<FakeSessionLink>();
  Say(client, wire::Inquiry{});
  EXPECT_EQ(client.link->Take<wire::HelloReply>()->error, kCudaErrorNotPermitted);
  EXPECT_TRUE(client.link->closed);
}

TEST_F(ControllerSessions, WhoSpeaksOutOfTurnIsCutOff) {
  StartExecutor(0);
  Client mute;
  mute.link = std::make_shared<FakeSessionLink>();
  Say(mute, wire::LeaseRequest{});
  EXPECT_TRUE(mute.link->closed);

  const Client hasty = Hello("token-a");
  Say(hasty, wire::LeaseRequest{});
  EXPECT_TRUE(hasty.link->closed);

  const Client twice = Connect("token-a");
  Say(twice, wire::Hello{});
  EXPECT_TRUE(twice.link->closed);
  EXPECT_TRUE(executors_[0].sessions.empty());
}

TEST_F(ControllerSessions, SessionsHaveAddressesOfTheirOwn) {
  StartExecutor(0);
  Client first = Connect("token-a");
  Client second = Connect("token-b");
  EXPECT_EQ(second.hello.device_base, first.hello.device_base) << "the node's";
  EXPECT_GE(first.hello.host_base, first.hello.device_base + first.hello.device_bytes);
  EXPECT_NE(Malloc(first, kMiB)->address / kGiB, Malloc(second, kMiB)->address / kGiB);
}

TEST_F(ControllerSessions, DeathFreesEverything) {
  StartExecutor(0);
  Client client = Connect("token-a");
  const auto reply = Malloc(client, 40 * kMiB);
  ASSERT_EQ(reply->error, 0);
  Serve("a", client);
  Disconnect(client);
  EXPECT_TRUE(executors_[0].sessions.empty());
  EXPECT_FALSE(repository_.Find(SessionId{client.hello.session_id}, client.hello.session_key).ok());
  EXPECT_EQ(controller_->Snapshot().gpus[0].used_bytes, 0u);
  EXPECT_EQ(controller_->Snapshot().sessions, 0u);
  // The addresses are given again.
  const AddressSnapshot addresses = controller_->Snapshot().addresses;
  EXPECT_EQ(addresses.free_bytes, addresses.bytes);
  Client next = Connect("token-a");
  EXPECT_EQ(Malloc(next, 40 * kMiB)->address, reply->address);
}

TEST_F(ControllerSessions, DeathUnderALeaseFreesTheGpu) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const Client b = Connect("token-b");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waiting = Acquire("b");
  EXPECT_FALSE(b.link->Take<wire::LeaseGrant>());
  Disconnect(a);
  EXPECT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(waiting));
  EXPECT_TRUE(IsRunning(running));  // its own HTTP answer tells, or the lack of one
  Release(running);
}

TEST_F(ControllerSessions, AGpuThatASessionDoesNotLeaveIsRestartedFirst) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const Client b = Connect("token-b");
  Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waiting = Acquire("b");
  Refuse(&v1::DaemonMessage::has_close_session, absl::DeadlineExceededError("a kernel still runs"));
  Disconnect(a);
  ASSERT_EQ(processes_.killed.size(), 1u);
  EXPECT_FALSE(b.link->Take<wire::LeaseGrant>()) << "the kernel still runs";
  EXPECT_TRUE(repository_.Find(SessionId{a.hello.session_id}, a.hello.session_key).ok());
  KillExecutor(0);
  EXPECT_FALSE(repository_.Find(SessionId{a.hello.session_id}, a.hello.session_key).ok());
  StartExecutor(0);
  EXPECT_EQ(executors_[0].sessions.size(), 1u);
  EXPECT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(waiting));
}

TEST_F(ControllerSessions, AnExecutorThatNeverKnewTheSessionStays) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  Refuse(&v1::DaemonMessage::has_close_session, absl::NotFoundError("not open here"));
  Disconnect(a);
  EXPECT_TRUE(processes_.killed.empty());
  EXPECT_EQ(controller_->Snapshot().sessions, 0u);
}

TEST_F(ControllerSessions, QueuedRequestsOutliveAProcess) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const Client b = Connect("token-b");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waiting = Acquire("b");
  Disconnect(b);  // a worker that its server will start anew, perhaps
  EXPECT_FALSE(outcome(waiting).grant);
  Release(running);
  GiveBack(a);
  EXPECT_TRUE(IsRunning(waiting));
}

TEST_F(ControllerSessions, DeathBetweenGrantAndAcknowledgement) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const RequestId request = Acquire("a");
  ASSERT_TRUE(a.link->Take<wire::LeaseGrant>());
  EXPECT_FALSE(outcome(request).grant);
  Disconnect(a);
  EXPECT_EQ(Failure(request), absl::StatusCode::kUnavailable);
}

TEST_F(ControllerSessions, ClientThatCannotOpenIsClosed) {
  StartExecutor(0);
  const Client client = Hello("token-a");
  Say(client, wire::HelloAck{999, "the addresses are taken"});
  EXPECT_TRUE(client.link->closed);
  EXPECT_TRUE(executors_[0].sessions.empty());
}

TEST_F(ControllerSessions, ExecutorThatCannotOpenRefuses) {
  StartExecutor(0);
  Refuse(&v1::DaemonMessage::has_open_session, absl::AlreadyExistsError("the addresses are taken"));
  const Client client = Hello("token-a");
  EXPECT_NE(client.link->Take<wire::HelloReply>()->error, 0);
  EXPECT_TRUE(client.link->closed);
}

}  // namespace
}  // namespace torpor::server
