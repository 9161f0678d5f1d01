#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr GpuIndex kGpu{0};

// One GPU, and functions a, b and c of three tenants. The test plays the supervisor: the executors
// in `seats_` are the processes at the seats of GPU 0.
class ControllerDomains : public ControllerHarness {
 protected:
  explicit ControllerDomains(int executors_per_gpu = 2,
                             const std::function<void(Config&)>& more = nullptr)
      : ControllerHarness(1, AddressMode::kMap, [&more](Config& config) {
          config.isolation = Isolation::kTenant;
          for (const char* const name : {"a", "b", "c"}) config.functions[name].tenant = name;
          if (more) more(config);
        }) {
    options_.executors_per_gpu = executors_per_gpu;
    RestartTorpord();
  }

  // As the supervisor: another process is at the seat, and registers.
  void StartAt(int seat) {
    Executor& executor = executors_[seat] = {};
    executor.epoch = next_epoch_++;
    controller_->OnExecutorStarting({kGpu, seat}, executor.epoch);
    executor.link = std::make_shared<FakeExecutorLink>();
    v1::ExecutorMessage message = Registration(0, executor.epoch);
    message.mutable_register_()->set_pid(1000 + static_cast<int>(executor.epoch));
    message.mutable_register_()->set_socket_path(SocketOf(seat));
    message.mutable_register_()->set_pool_owner_pid(9);
    controller_->OnExecutorMessage(executor.link, message);
    Settle();
  }
  void KillAt(int seat, int signal = SIGKILL) {
    const Executor dead = std::move(executors_[seat]);
    executors_.erase(seat);
    controller_->OnExecutorClosed(dead.link);
    controller_->OnExecutorExited({kGpu, seat}, dead.epoch, signal);
    Settle();
  }
  static std::string SocketOf(int seat) { return "/nowhere/" + std::to_string(seat); }
  std::vector<std::string> Domains() {
    std::vector<std::string> domains;
    for (const ExecutorSnapshot& executor : controller_->Snapshot().gpus.at(0).executors) {
      domains.push_back(executor.domain);
    }
    return domains;
  }
  // Has the request run, and returns the socket of the executor that ran it; empty if none did.
  std::string SocketOfRun(const std::string& function, const Client& client) {
    const RequestId request = Acquire(function);
    const auto lease = TakeLease(client);
    if (!lease) return "";
    Release(request);
    EXPECT_TRUE(GiveBack(client));
    return lease->executor_socket;
  }
};

TEST_F(ControllerDomains, EachGetsAnExecutorOfItsOwn) {
  StartAt(0);
  EXPECT_THAT(Domains(), ElementsAre(""));
  Client a = Connect("token-a");
  EXPECT_THAT(Domains(), ElementsAre("tenant/a"));
  EXPECT_THAT(processes_.wanted, IsEmpty());
  Client b = Connect("token-b");
  EXPECT_THAT(processes_.wanted, ElementsAre(ExecutorSeat(kGpu, 1)));
  EXPECT_THAT(Domains(), ElementsAre("tenant/a", "tenant/b"));
  StartAt(1);
  EXPECT_THAT(executors_[0].sessions, ElementsAre(a.hello.session_id));
  EXPECT_THAT(executors_[1].sessions, ElementsAre(b.hello.session_id));
  ASSERT_TRUE(Malloc(a, kChunk));
  ASSERT_TRUE(Malloc(b, kChunk));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(SocketOfRun("a", a), SocketOf(0));
    EXPECT_EQ(SocketOfRun("b", b), SocketOf(1));
  }
  EXPECT_THAT(executors_[0].resident, ElementsAre(a.hello.session_id));
  EXPECT_THAT(executors_[1].resident, ElementsAre(b.hello.session_id)) << "both stay";
  EXPECT_THAT(processes_.replaced, IsEmpty());
}

TEST_F(ControllerDomains, ADeathCostsItsOwnDomainOnly) {
  StartAt(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  StartAt(1);
  ASSERT_TRUE(Malloc(a, kChunk));
  ASSERT_TRUE(Malloc(b, kChunk));
  EXPECT_EQ(SocketOfRun("a", a), SocketOf(0));
  const RequestId running = Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  KillAt(0);
  EXPECT_TRUE(IsRunning(running)) << "the lease of another domain goes on";
  EXPECT_THAT(executors_[1].resident, ElementsAre(b.hello.session_id));
  Release(running);
  ASSERT_TRUE(GiveBack(b));
  EXPECT_EQ(SocketOfRun("b", b), SocketOf(1));

  const RequestId waits = Acquire("a");
  EXPECT_FALSE(TakeLease(a)) << "there is no executor";
  StartAt(0);
  const auto lease = TakeLease(a);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->executor_socket, SocketOf(0));
  Release(waits);
  EXPECT_TRUE(GiveBack(a));
}

TEST_F(ControllerDomains, TheHolderDiesWithItsLeaseAndNoOneElse) {
  StartAt(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  StartAt(1);
  ASSERT_TRUE(Malloc(b, kChunk));
  EXPECT_EQ(SocketOfRun("b", b), SocketOf(1));
  const RequestId dies = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waits = Acquire("b");
  EXPECT_FALSE(IsRunning(waits));
  KillAt(0);
  const auto lease = TakeLease(b);
  ASSERT_TRUE(lease) << "the GPU is free at once";
  EXPECT_THAT(executors_[1].resident, ElementsAre(b.hello.session_id)) << "and its image there";
  Release(waits);
  ASSERT_TRUE(GiveBack(b));
  Release(dies);
}

TEST_F(ControllerDomains, AThirdTakesTheSeatOfTheLeastUsed) {
  StartAt(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  StartAt(1);
  Client c = Connect("token-c");
  EXPECT_THAT(Domains(), ElementsAre("tenant/a", "tenant/b"));
  ASSERT_TRUE(Malloc(a, kChunk));
  ASSERT_TRUE(Malloc(b, kChunk));
  ASSERT_TRUE(Malloc(c, kChunk));
  EXPECT_EQ(SocketOfRun("b", b), SocketOf(1));
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(SocketOfRun("a", a), SocketOf(0));
  loop_.Advance(std::chrono::milliseconds(100));

  const RequestId request = Acquire("c");
  EXPECT_FALSE(TakeLease(c));
  EXPECT_THAT(executors_[1].resident, IsEmpty()) << "the images of b have left";
  EXPECT_THAT(processes_.replaced, ElementsAre(std::pair(kGpu, executors_[1].epoch)));
  EXPECT_EQ(counts_.losses, 0);
  KillAt(1);
  EXPECT_EQ(counts_.losses, 0) << "no fault";
  EXPECT_THAT(Domains(), ElementsAre("tenant/a", "tenant/c"));
  StartAt(1);
  EXPECT_THAT(executors_[1].sessions, ElementsAre(c.hello.session_id));
  const auto lease = TakeLease(c);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->executor_socket, SocketOf(1));
  Release(request);
  ASSERT_TRUE(GiveBack(c));

  // b is as before, and comes back in the place of a.
  loop_.Advance(std::chrono::milliseconds(100));
  const RequestId again = Acquire("b");
  EXPECT_FALSE(TakeLease(b));
  KillAt(0);
  StartAt(0);
  EXPECT_TRUE(TakeLease(b));
  Release(again);
  EXPECT_TRUE(GiveBack(b));
  EXPECT_THAT(Domains(), ElementsAre("tenant/b", "tenant/c"));
}

TEST_F(ControllerDomains, AnExecutorThatDoesNotComeKeepsNoGpu) {
  StartAt(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  ASSERT_TRUE(Malloc(a, kChunk));
  ASSERT_TRUE(Malloc(b, kChunk));
  const RequestId request = Acquire("b", std::chrono::minutes(1));
  EXPECT_FALSE(TakeLease(b)) << "its process does not start";
  EXPECT_EQ(SocketOfRun("a", a), SocketOf(0)) << "others have the GPU meanwhile";
  loop_.Advance(std::chrono::seconds(11));
  Settle();
  EXPECT_FALSE(outcome(request).grant) << "it waits on";
  StartAt(1);
  EXPECT_TRUE(TakeLease(b));
  Release(request);
  EXPECT_TRUE(GiveBack(b));
}

TEST_F(ControllerDomains, ADomainStaysIfNobodyWaitsForItsSeatAnyMore) {
  StartAt(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  StartAt(1);
  Client c = Connect("token-c");
  ASSERT_TRUE(Malloc(a, kChunk));
  ASSERT_TRUE(Malloc(b, kChunk));
  EXPECT_EQ(SocketOfRun("a", a), SocketOf(0));
  EXPECT_EQ(SocketOfRun("b", b), SocketOf(1));
  Hold(&v1::DaemonMessage::has_swap_out);
  const RequestId request = Acquire("c", std::chrono::minutes(1));
  EXPECT_THAT(processes_.replaced, IsEmpty()) << "the image of a does not leave";
  Release(request, scheduler::Ending::kCancelled);
  for (int i = 0; i < 2; ++i) {
    loop_.Advance(std::chrono::seconds(11));
    Settle();
  }
  answers_ = nullptr;
  Settle();
  EXPECT_THAT(processes_.replaced, IsEmpty());
  EXPECT_EQ(SocketOfRun("a", a), SocketOf(0));
}

TEST_F(ControllerDomains, AnAdoptedExecutorServesItsOwnDomain) {
  StartAt(0);
  executors_[1].epoch = next_epoch_++;
  controller_->OnExecutorAdopted({kGpu, 1}, executors_[1].epoch, 77);
  executors_[1].link = std::make_shared<FakeExecutorLink>();
  v1::ExecutorMessage message = Registration(0, 5);
  message.mutable_register_()->set_pid(77);
  message.mutable_register_()->set_domain("tenant/b");
  controller_->OnExecutorMessage(executors_[1].link, message);
  Settle();
  EXPECT_THAT(Domains(), ElementsAre("", "tenant/b"));
  Client b = Connect("token-b");
  EXPECT_THAT(executors_[1].sessions, ElementsAre(b.hello.session_id));
  EXPECT_THAT(executors_[0].sessions, IsEmpty());
}

class ControllerLoneExecutor : public ControllerDomains {
 protected:
  ControllerLoneExecutor() : ControllerDomains(1) {}
};

// Without an owner of the memory a GPU has one executor, which the domains have in turn.
TEST_F(ControllerLoneExecutor, IsReplacedForEachDomain) {
  StartAt(0);
  std::map<std::string, Client> clients;
  for (const std::string name : {"a", "b"}) {
    clients[name] = Connect("token-" + name);
    ASSERT_TRUE(Malloc(clients[name], kChunk));
  }
  EXPECT_EQ(SocketOfRun("a", clients["a"]), SocketOf(0));
  for (const std::string name : {"b", "a", "b"}) {
    const std::size_t replaced = processes_.replaced.size();
    const RequestId request = Acquire(name);
    EXPECT_FALSE(TakeLease(clients[name]));
    ASSERT_THAT(processes_.replaced, SizeIs(replaced + 1));
    KillAt(0);
    StartAt(0);
    EXPECT_THAT(executors_[0].sessions, ElementsAre(clients[name].hello.session_id));
    EXPECT_TRUE(TakeLease(clients[name])) << name;
    Release(request);
    EXPECT_TRUE(GiveBack(clients[name]));
  }
}

class ControllerFunctionDomains : public ControllerDomains {
 protected:
  ControllerFunctionDomains()
      : ControllerDomains(3, [](Config& config) {
          for (const char* const name : {"a", "b", "c"}) config.functions[name].tenant = "t";
          config.functions["b"].isolation = FunctionIsolation::kFunction;
          config.functions["c"].isolation = FunctionIsolation::kShared;
        }) {}
};

TEST_F(ControllerFunctionDomains, AFunctionChoosesItsIsolation) {
  StartAt(0);
  for (const char* const name : {"a", "b", "c"}) Hello("token-" + std::string(name));
  EXPECT_THAT(Domains(), ElementsAre("tenant/t", "function/b", "shared"));
}

}  // namespace
}  // namespace torpor::server
