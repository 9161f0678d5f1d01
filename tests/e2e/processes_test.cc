// Functions whose processes torpord runs: they are killed, broken, removed, and torpord is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

constexpr unsigned kElements = 4u << 18;  // of a state_server
const std::string kServer = std::string("exec ") + DRIVEN_DIR + "/state_server --megabytes 4";

// A setting of every function: `script` is run by a shell, with the port in PORT.
std::string RunBy(const std::string& script) {
  std::string setting = "command: [/bin/sh, -c, '" + script + "']\n    stop_grace: 20s";
  if (geteuid() == 0) setting += "\n    user: nobody";
  return setting;
}

class Processes : public testing::Test {
 protected:
  explicit Processes(const std::string& script = kServer + " --port $PORT")
      : node_(kTwoSmallGpus, {"a", "b"}, "socket_mode: 0666\n", 1, RunBy(script)) {
    // The user of the functions must reach sockets and tokens.
    chmod(node_.folder().path().c_str(), 0755);
  }
  void SetUp() override { node_.StartUnderInit(); }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  nlohmann::json ProcessOf(const std::string& name) const {
    const auto functions =
        nlohmann::json::parse(node_.Torporctl({"functions", "--output", "json"})).at("functions");
    for (const auto& function : functions) {
      if (function.at("name") == name) return function.at("process");
    }
    return {};
  }
  pid_t PidOf(const std::string& name) const {
    const nlohmann::json process = ProcessOf(name);
    return process.is_null() ? 0 : process.at("pid").get<pid_t>();
  }
  void AwaitReady(const std::string& name) const {
    const auto is_ready = [&] {
      return ReadPage(node_.http_address(), "/v2/models/" + name + "/ready").find("HTTP/1.1 200") ==
             0;
    };
    ASSERT_EQ(Await(name + " is ready", is_ready), absl::OkStatus());
  }
  // Adds to a function's state, which must be `sum` afterwards.
  void ExpectSum(const std::string& name, unsigned value, std::uint64_t sum) const {
    const Reply reply =
        node_.PostOne("/function/" + name + "/add", "{\"value\":[" + std::to_string(value) + "]}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, "{\"sum\":" + std::to_string(sum * kElements) + "}\n");
  }
  void AwaitAnother(const std::string& name, pid_t than) const {
    const auto is_another = [&] {
      const pid_t pid = PidOf(name);
      return pid != 0 && pid != than;
    };
    ASSERT_EQ(Await("another process of " + name, is_another), absl::OkStatus());
  }

  // The program may learn of its fault before torpord.
  void AwaitStrikes(const std::string& name, int strikes) const {
    const auto are_counted = [&] {
      return ValueOf(node_.Metrics(), "torpor_function_strikes_total",
                     {"function=\"" + name + "\"", "cause=\"fault\""}) == strikes;
    };
    ASSERT_EQ(Await("strikes of " + name, are_counted), absl::OkStatus());
  }

  EmulatedNode node_;
};

TEST_F(Processes, OneThatIsKilledIsStartedAgain) {
  for (const char* name : {"a", "b"}) AwaitReady(name);
  ExpectSum("a", 3, 3);
  ExpectSum("b", 5, 5);
  const pid_t first = PidOf("a");
  ASSERT_GT(first, 0);
  ASSERT_EQ(kill(first, SIGKILL), 0);
  AwaitAnother("a", first);
  AwaitReady("a");
  ExpectSum("a", 4, 4);
  ExpectSum("b", 1, 6);
  EXPECT_EQ(ProcessOf("a").at("restarts"), 1);
  EXPECT_EQ(ProcessOf("a").at("last_end"), "signal 9");
  EXPECT_EQ(ProcessOf("b").at("restarts"), 0);
  const std::string metrics = node_.Metrics();
  EXPECT_EQ(ValueOf(metrics, "torpor_function_restarts_total", {"function=\"a\""}), 1);
  EXPECT_EQ(ValueOf(metrics, "torpor_function_restarts_total", {"function=\"b\""}), 0);
}

TEST_F(Processes, TheNextTorpordGoesOnWithThem) {
  for (const char* name : {"a", "b"}) AwaitReady(name);
  ExpectSum("a", 3, 3);
  const pid_t a = PidOf("a");
  const pid_t b = PidOf("b");
  for (std::uint64_t round = 1; round <= 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(node_.RestartTorpord());
    ExpectSum("a", 1, 3 + round);
    EXPECT_EQ(PidOf("a"), a);
    EXPECT_EQ(PidOf("b"), b);
  }
  // Adopted ones are kept running as well.
  ASSERT_EQ(kill(b, SIGKILL), 0);
  AwaitAnother("b", b);
  AwaitReady("b");
  ExpectSum("b", 2, 2);
}

TEST_F(Processes, OneWhoseGpuCannotBeUsedAnyMoreIsStartedAnew) {
  for (const char* name : {"a", "b"}) AwaitReady(name);
  const pid_t first = PidOf("a");
  EXPECT_NE(node_.PostOne("/function/a/fault", "{}").status, 200);
  AwaitAnother("a", first);
  AwaitReady("a");
  ExpectSum("a", 4, 4);
  ExpectSum("b", 1, 1);
}

TEST_F(Processes, AnOffenderGetsNoGpuForAWhile) {
  for (const char* name : {"a", "b"}) AwaitReady(name);
  // A slow machine may miss the first refusals; each lasts twice as long as the one before.
  constexpr int kMaxFaults = 6;
  Reply refused;
  for (int faults = 1; faults <= kMaxFaults && refused.status != 503; ++faults) {
    const pid_t before = PidOf("a");
    EXPECT_NE(node_.PostOne("/function/a/fault", "{}").status, 200);
    AwaitStrikes("a", faults);
    if (faults > 1) refused = node_.PostOne("/function/a/add", "{\"value\":[1]}");
    if (refused.status == 503) break;
    AwaitAnother("a", before);
    AwaitReady("a");
    ExpectSum("a", 4, 4);
  }
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("\"struck\""), std::string::npos) << refused.body;
  ExpectSum("b", 5, 5);
  const auto serves = [&] {
    return node_.PostOne("/function/a/add", "{\"value\":[1]}").status == 200;
  };
  EXPECT_EQ(Await("the offender is served again", serves), absl::OkStatus());
  EXPECT_EQ(ValueOf(node_.Metrics(), "torpor_function_strikes_total", {"function=\"b\""}), 0);
}

TEST_F(Processes, TheyEndWithTheirFunctionsAndWithTorpord) {
  for (const char* name : {"a", "b"}) AwaitReady(name);
  const pid_t a = PidOf("a");
  const pid_t b = PidOf("b");
  node_.Torporctl({"function", "remove", "a"});
  EXPECT_TRUE(WaitUntilGone(a, kPatience));
  ExpectSum("b", 1, 1);
  EXPECT_EQ(PidOf("b"), b);
  node_.daemon().Signal(SIGTERM);
  EXPECT_EQ(node_.daemon().Wait(kPatience), 0);
  EXPECT_TRUE(WaitUntilGone(b, Duration::zero()));
}

class EndingProcesses : public Processes {
 protected:
  EndingProcesses() : Processes("echo begins; exit 4") {}
};

TEST_F(EndingProcesses, AreStartedAgainAfterPauses) {
  const auto restarts = [&] { return ProcessOf("a").value("restarts", 0); };
  EXPECT_EQ(Await("some restarts", [&] { return restarts() >= 4; }), absl::OkStatus());
  EXPECT_EQ(ProcessOf("a").at("last_end"), "exit status 4");
  // Four starts lie 0, 0.1, 0.2 and 0.4 s apart, the tenth is half a minute behind.
  EXPECT_LT(restarts(), 10);
  EXPECT_NE(node_.daemon().Stderr().find("begins"), std::string::npos) << "what they write is lost";
}

}  // namespace
}  // namespace torpor::e2e
