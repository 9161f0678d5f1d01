// TORPOR_TRACE, at a desk and under a daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/base/temporary_folder.h"
#include "tests/e2e/child_process.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::e2e {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr auto kPatience = std::chrono::seconds(60);
const std::string kTracedCalls = std::string(DRIVEN_DIR) + "/traced_calls";

class Trace : public testing::Test {
 protected:
  // What the program and torporctl say on stderr.
  std::string Run(const std::map<std::string, std::string>& environment) const {
    ChildProcess run(
        {std::string(TORPOR_BIN_DIR) + "/torporctl", "run", "--standalone", "--", kTracedCalls},
        {folder_.path(), environment});
    EXPECT_EQ(run.Wait(kPatience), 0) << run.Stderr();
    EXPECT_EQ(run.Stdout(), "PASS\n");
    return run.Stderr();
  }

  const TemporaryFolder folder_;
};

TEST_F(Trace, IsOffByDefault) { EXPECT_EQ(Run({}), ""); }

TEST_F(Trace, ASectionSaysWhatItsCallsWere) {
  const std::string said = Run({{"TORPOR_TRACE", "summary"}});
  for (const char* const section : {"first", "second"}) {
    EXPECT_THAT(said, HasSubstr(std::string("torpor: trace: ") + section +
                                ": 1 synchronous call, 10 asynchronous, "));
  }
  EXPECT_THAT(said, ContainsRegex("synchronous: 1 x cudaMemcpy by FetchForTrace in traced_calls: "
                                  "1 answer, [0-9.]+ ms\n"));
  EXPECT_THAT(said, HasSubstr("asynchronous: 10 x __cudaLaunchKernel\n"));
  EXPECT_THAT(said, ContainsRegex("local: 10 x __cudaPopCallConfiguration, "
                                  "10 x __cudaPushCallConfiguration, 1 x cudaGetLastError"));
  EXPECT_THAT(said, ContainsRegex("trace: pinned: 1 synchronous call, 1 asynchronous, 0 local; "
                                  "1048[0-9]+ bytes up"));
  EXPECT_THAT(said, HasSubstr("trace: inputs: 1 synchronous call, 5 asynchronous, "))
      << "inputs are not waited for";
  // Two of cudaMalloc, one of cudaMallocHost, the first launch, which sends the module, one of
  // cudaDeviceSynchronize, three downloads and one of cudaStreamSynchronize.
  EXPECT_THAT(said, HasSubstr("torpor: trace: in all: 9 synchronous calls"));
  EXPECT_THAT(said, HasSubstr("2 x cudaMalloc by main in traced_calls"));
}

TEST_F(Trace, AFileForChromeHasTheCallsThatAreSent) {
  const std::string path = folder_.path() + "/trace.json";
  const std::string said = Run({{"TORPOR_TRACE", "json"}, {"TORPOR_TRACE_FILE", path}});
  EXPECT_THAT(said, HasSubstr("trace: in all: "));
  std::ifstream file(path);
  std::map<std::string, int> events;
  for (const nlohmann::json& event : nlohmann::json::parse(file)) {
    if (event.at("ph") != "X") continue;
    ++events[event.at("name")];
    EXPECT_GE(event.at("dur"), 0);
  }
  EXPECT_EQ(events["__cudaLaunchKernel"], 22);
  EXPECT_EQ(events["cudaMemcpy"], 3);
  EXPECT_EQ(events["wait for the daemon"], 3);
  EXPECT_EQ(events["first"], 1);
  EXPECT_EQ(events.count("cudaGetLastError"), 0U);
}

TEST_F(Trace, AFileThatCannotBeWrittenIsNoReasonToFail) {
  const std::string said =
      Run({{"TORPOR_TRACE", "json"}, {"TORPOR_TRACE_FILE", "/no/such/folder/trace.json"}});
  EXPECT_THAT(said, HasSubstr("cannot write the trace /no/such/folder/trace.json"));
  EXPECT_THAT(said, Not(HasSubstr("in all")));
}

TEST_F(Trace, AnUnknownKindIsSaidOnce) {
  EXPECT_EQ(Run({{"TORPOR_TRACE", "yes"}}),
            "torpor: unknown TORPOR_TRACE; expected off, summary or json: nothing is traced\n");
}

TEST(TraceOfAFunction, EachRequestIsASection) {
  EmulatedNode node("version: v1\ngpus:\n  - memory: 96MiB\n", {"a"});
  node.Start();
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  setenv("TORPOR_TRACE", "summary", 1);
  node.StartFunction("a", {std::string(DRIVEN_DIR) + "/state_server"});
  unsetenv("TORPOR_TRACE");
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  for (int i = 0; i < 3; ++i) {
    node.WaitUntilIdle();
    EXPECT_EQ(node.PostOne("/function/a/add", "{\"value\":[1]}").status, 200) << node.Logs();
  }
  node.WaitUntilIdle();
  const std::string said = node.function("a").Stderr();
  const std::regex request(
      "torpor: trace: request \\(lease [0-9]+\\): 1 synchronous call, 3 asynchronous, ");
  EXPECT_EQ(std::distance(std::sregex_iterator(said.begin(), said.end(), request),
                          std::sregex_iterator()),
            3)
      << said;
}

}  // namespace
}  // namespace torpor::e2e
