// Functions that do not give the GPU back: it is taken from them, and their neighbour loses
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/server/router/raw_http.h"

namespace torpor::e2e {
namespace {

using ::testing::HasSubstr;

constexpr const char* kOneGpu = R"(version: v1
gpus:
  - memory: 96MiB
)";
constexpr std::size_t kMoreThanIsBuffered = 4 << 20;
constexpr auto kRunLimit = std::chrono::milliseconds(1500);

// Functions held and neighbour, which keep sums, on one GPU.
class RunLimits : public testing::Test {
 protected:
  void SetUp() override {
    node_.Start();
    for (const char* name : {"held", "neighbour"}) {
      if (!HasFatalFailure()) StartFunction(name);
    }
    if (HasFatalFailure()) return;
    ExpectSum("neighbour", 5, 5);
    ExpectSum("held", 3, 3);
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  void StartFunction(const std::string& name) {
    node_.StartFunction(name, {std::string(DRIVEN_DIR) + "/endless_server"});
  }
  Reply Ask(const std::string& function, const std::string& what) {
    return node_.PostOne("/function/" + function + "/" + what, "{\"value\":[1]}");
  }
  void ExpectSum(const std::string& function, unsigned value, unsigned sum) {
    const Reply reply = node_.PostOne("/function/" + function + "/add",
                                      "{\"value\":[" + std::to_string(value) + "]}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, "{\"sum\":" + std::to_string(sum) + "}\n");
  }
  // While `held` has the GPU, its neighbour asks for it and gets it.
  void ExpectTakenAway(const std::string& what, const std::function<void()>& meanwhile) {
    const TimePoint begin = SteadyClock().Now();
    Reply refusal;
    std::thread holds([&] { refusal = Ask("held", what); });
    EXPECT_EQ(Await("the GPU is held", [this] { return IsHeld(); }), absl::OkStatus());
    meanwhile();
    ExpectSum("neighbour", 2, 7);
    const Duration waited = SteadyClock().Now() - begin;
    std::printf("the GPU was there %.1f s beyond run_limit\n", ToSeconds(waited - kRunLimit));
    holds.join();
    EXPECT_EQ(refusal.status, 504) << refusal.body;
    EXPECT_THAT(refusal.body, HasSubstr("run_limit"));
  }
  bool IsHeld() const {
    const nlohmann::json gpus = node_.Status().at("gpus");
    return gpus.at(0).at("leased_to").get<std::string>().starts_with("held");
  }

  EmulatedNode node_{kOneGpu, {"held", "neighbour"}, "", 1, "run_limit: 1500ms"};
};

TEST_F(RunLimits, AKernelWithoutEndCostsItsOwnFunction) {
  const pid_t executor = node_.ExecutorOf(0);
  ExpectTakenAway("spin", [] {});
  node_.WaitUntilKnownDead(0, executor);
  node_.StopFunction("held");
  ASSERT_NO_FATAL_FAILURE(StartFunction("held"));
  ExpectSum("held", 4, 4);
  ExpectSum("neighbour", 1, 8);
}

TEST_F(RunLimits, AStoppedProcessLosesItsSession) {
  const pid_t executor = node_.ExecutorOf(0);
  ExpectTakenAway("wait", [this] { node_.function("held").Signal(SIGSTOP); });
  EXPECT_EQ(node_.ExecutorOf(0), executor) << "nothing ran there";
  node_.StopFunction("held");
  ASSERT_NO_FATAL_FAILURE(StartFunction("held"));
  ExpectSum("held", 4, 4);
}

// A client that sends more of its request's body than the router keeps in memory, then byte by
// byte, and never all of it.
TEST_F(RunLimits, ABodyThatDripsTakesNoGpu) {
  server::RawConnection client = server::RawConnection::To(node_.http_address());
  ASSERT_TRUE(client.Send(
      "POST /function/held/add HTTP/1.1\r\nHost: node\r\nContent-Length: 10000000\r\n\r\n{"));
  ASSERT_TRUE(client.Send(std::string(kMoreThanIsBuffered, ' ')));
  for (const unsigned sum : {6, 7, 8, 9, 10}) {
    ASSERT_TRUE(client.Send(" "));
    ExpectSum("neighbour", 1, sum);
    EXPECT_FALSE(IsHeld());
  }
  client.Close();
  ExpectSum("held", 4, 7);
}

TEST_F(RunLimits, AServerThatDoesNotAnswerGivesTheGpuBack) {
  const pid_t executor = node_.ExecutorOf(0);
  ExpectTakenAway("wait", [] {});
  EXPECT_EQ(node_.ExecutorOf(0), executor);
  ExpectSum("neighbour", 1, 8);
}

}  // namespace
}  // namespace torpor::e2e
