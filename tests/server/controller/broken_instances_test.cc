#include "server/controller/broken_instances.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BrokenInstancesTest : public ControllerHarness, public InstanceLives {
 protected:
  void SetUp() override {
    options_.lives = this;
    RestartTorpord();
    StartExecutor(0);
  }
  void OnRemoved(const std::string& full_name) override { removed_.push_back(full_name); }
  void OnBroken(const std::string& full_name, const std::string&) override {
    broken_.push_back(full_name);
  }
  // The client's kernel writes where it may not.
  void Break(const Client& client) {
    LoseContext(client, 700);
    KillExecutor(0);
    StartExecutor(0);
  }
  // Two processes serve a request of the function under one lease, and one breaks the GPU.
  void BreakOneOfTwo(const std::string& function) {
    Client first = Connect("token-" + function);
    Client second = Connect("token-" + function);
    const RequestId request = Acquire(function);
    TakeLease(first);
    TakeLease(second);
    Break(first);
    Release(request, scheduler::Ending::kFailed);
    PassSeconds(3);
  }
  void PassSeconds(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      loop_.Advance(std::chrono::seconds(1));
      Settle();
    }
  }

  std::vector<std::string> removed_;
  std::vector<std::string> broken_;
};

TEST_F(BrokenInstancesTest, ABrokenProcessIsToldOnceWhenItsRequestIsOver) {
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Serve("b", b);
  const RequestId request = Acquire("a");
  TakeLease(a);
  Break(a);
  PassSeconds(3);
  EXPECT_THAT(broken_, IsEmpty()) << "it may still answer";
  Release(request, scheduler::Ending::kFailed);
  PassSeconds(3);
  EXPECT_THAT(broken_, ElementsAre("a"));
  Disconnect(a);
  PassSeconds(3);
  EXPECT_THAT(broken_, ElementsAre("a"));
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(BrokenInstancesTest, AnotherProcessOfTheInstanceServes) {
  BreakOneOfTwo("c");
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(BrokenInstancesTest, ProcessesThatBreakTogetherAreToldTogether) {
  BreakOneOfTwo("a");
  EXPECT_THAT(broken_, ElementsAre("a")) << "what the second had done is lost as well";
}

TEST_F(BrokenInstancesTest, AClientThatIsRefusedIsBroken) {
  Client stranger{std::make_shared<FakeSessionLink>(), {}};
  wire::Resume resume;
  resume.session_id = 77;
  resume.hello.protocol_version = wire::kProtocolVersion;
  resume.hello.token = "token-b";
  Say(stranger, resume);
  EXPECT_THAT(broken_, ElementsAre("b"));
  resume.hello.token = "token-nobody";
  Client other{std::make_shared<FakeSessionLink>(), {}};
  Say(other, resume);
  EXPECT_THAT(broken_, ElementsAre("b"));
}

TEST_F(BrokenInstancesTest, ARemovedInstanceIsToldWhenNothingRunsThere) {
  Client a = Connect("token-a");
  const RequestId request = Acquire("a");
  TakeLease(a);
  Reconfigure([](Config& config) { config.functions.erase("a"); });
  EXPECT_THAT(removed_, IsEmpty());
  Release(request);
  GiveBack(a);
  Disconnect(a);
  EXPECT_THAT(removed_, ElementsAre("a"));
}

}  // namespace
}  // namespace torpor::server
