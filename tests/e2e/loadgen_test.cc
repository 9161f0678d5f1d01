// torpor-loadgen as a program: what it prints and writes, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "examples/service/http_server.h"
#include "nlohmann/json.hpp"
#include "tests/base/temporary_folder.h"
#include "tests/e2e/child_process.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::e2e {
namespace {

using examples::HttpRequest;
using examples::HttpResponse;
using testing::HasSubstr;

class Loadgen : public testing::Test {
 protected:
  Loadgen() : server_([this](const HttpRequest& request) { return Answer(request); }) {
    const int port = server_.Listen("127.0.0.1", 0);
    thread_ = std::thread([this] { server_.Run(); });
    folder_.Write("pairs.jsonl", R"({"request":{"x":1},"expected":{"y":2}})"
                                 "\n");
    workload_ = folder_.Write("workload.yaml", R"(version: v1
arrivals: constant
duration_s: 0.5
warm_up_s: 0.2
target: 127.0.0.1:)" + std::to_string(port) +
                                                   R"(
functions:
  - name: checked
    rate_per_s: 40
    objective_ms: 10000
    expected: pairs.jsonl
  - name: other
    rate_per_s: 20
    body: '{"x":1}'
)");
  }

  ~Loadgen() override {
    server_.Stop();
    thread_.join();
  }

  HttpResponse Answer(const HttpRequest& request) {
    if (request.path != "/function/checked/") return {200, "anything"};
    const int number = checked_++;
    if (number == refused_) return {404, "{}"};
    return {200, number == wrong_ ? R"({"y":3})" : R"({"y":2})"};
  }

  std::unique_ptr<ChildProcess> Run(const std::vector<std::string>& arguments) const {
    return RunToItsEnd("torpor-loadgen", arguments, folder_.path());
  }

  const TemporaryFolder folder_;
  std::string workload_;
  examples::HttpServer server_;
  std::thread thread_;
  std::atomic<int> checked_{0};  // requests so far
  std::atomic<int> refused_{-1};
  std::atomic<int> wrong_{-1};
};

TEST_F(Loadgen, ReportsACleanRunWithStatus0) {
  const std::string report = folder_.path() + "/report.json";
  const auto run = Run({workload_, "--json", report});
  EXPECT_EQ(run->Wait(Duration::zero()), 0) << run->Stderr();
  EXPECT_THAT(run->Stdout(), HasSubstr("\nchecked "));
  EXPECT_THAT(run->Stdout(), HasSubstr("\nother "));
  EXPECT_THAT(run->Stderr(), HasSubstr("42 of 42 sent, 0 under way, 0 errors, 0 wrong"));
  std::ifstream file(report);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json.at("requests"), 30);
  EXPECT_EQ(json.at("warm_up").at("requests"), 12);
  EXPECT_EQ(json.at("errors"), 0);
  EXPECT_EQ(json.at("functions").at(0).at("requests"), 20);
  EXPECT_EQ(json.at("functions").at(1).at("requests"), 10);
}

TEST_F(Loadgen, AnErrorIsStatus1AndTold) {
  refused_ = 20;
  const auto run = Run({workload_});
  EXPECT_EQ(run->Wait(Duration::zero()), 1);
  EXPECT_THAT(run->Stderr(), HasSubstr("checked: HTTP 404"));
}

TEST_F(Loadgen, AWrongAnswerIsStatus1AndToldAlsoInTheWarmUp) {
  wrong_ = 0;
  const auto run = Run({workload_});
  EXPECT_EQ(run->Wait(Duration::zero()), 1);
  EXPECT_THAT(run->Stderr(), HasSubstr("checked: wrong answer at /y: expected 2, got 3"));
}

TEST_F(Loadgen, FlagsReplaceWhatTheFileSays) {
  const auto run = Run({workload_, "--quiet", "--duration-s", "0.25", "--warm-up-s", "0",
                        "--rate-factor", "2", "--seed", "7", "--arrivals", "constant"});
  EXPECT_EQ(run->Wait(Duration::zero()), 0);
  EXPECT_EQ(run->Stderr(), "");
  EXPECT_EQ(checked_, 20);
}

TEST_F(Loadgen, WritesEverythingIntoAFolder) {
  const std::string folder = folder_.path() + "/new/report";
  const auto run = Run({workload_, "--output", folder});
  EXPECT_EQ(run->Wait(Duration::zero()), 0) << run->Stderr();
  std::ifstream file(folder + "/report.json");
  EXPECT_EQ(nlohmann::json::parse(file).at("requests"), 30);
  std::ifstream csv(folder + "/report.csv");
  int lines = 0;
  for (std::string line; std::getline(csv, line);) ++lines;
  EXPECT_EQ(lines, 1 + 3 * 5);  // the header; all and two functions, together and by path
  for (const char* name : {"latency", "latency_by_minute", "requests_by_minute", "objectives"}) {
    std::ifstream plot(folder + "/" + name + ".plot.json");
    EXPECT_TRUE(nlohmann::json::parse(plot).contains("kind")) << name;
  }
}

TEST_F(Loadgen, TakesRatesFromATable) {
  const std::string rates = folder_.Write("rates.csv", "minute_0,minute_1\n2400,1\n1200,1\n");
  const std::vector<std::string> flags = {workload_, "--quiet", "--warm-up-s", "0", "--rates"};
  const auto run_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), more.begin(), more.end());
    return Run(all);
  };
  EXPECT_EQ(run_with({rates})->Wait(Duration::zero()), 0);
  EXPECT_EQ(checked_, 20);
  EXPECT_EQ(run_with({rates, "--rate-factor", "0.5"})->Wait(Duration::zero()), 0);
  EXPECT_EQ(checked_, 30);
  for (const char* source : {"trace-like", "gamma:4"}) {
    const auto run = run_with({source, "--arrivals", "gamma", "--cv", "2"});
    EXPECT_EQ(run->Wait(Duration::zero()), 0) << run->Stderr();
  }
}

TEST_F(Loadgen, WritesTheRatesThatItWouldSend) {
  const std::string rates = folder_.path() + "/drawn.csv";
  const auto run = Run({workload_, "--rate-factor", "2", "--write-rates", rates});
  EXPECT_EQ(run->Wait(Duration::zero()), 0) << run->Stderr();
  EXPECT_EQ(checked_, 0);
  std::ifstream file(rates);
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(written, "minute_0\n4800\n2400\n");
}

TEST_F(Loadgen, ARateFilesMistakeIsToldWithItsPlace) {
  const std::string rates = folder_.Write("rates.csv", "minute_0,minute_1\n2400,x\n");
  const auto run = Run({workload_, "--rates", rates});
  EXPECT_EQ(run->Wait(Duration::zero()), 2);
  EXPECT_THAT(run->Stderr(), HasSubstr("rates.csv: line 2, column 6: minute_1 is 'x'"));
}

TEST_F(Loadgen, AGeneratorThatIsTooLateGivesUp) {
  const auto run = Run({workload_, "--abort-lag-ms", "0.0001"});
  EXPECT_EQ(run->Wait(Duration::zero()), 3);
  EXPECT_THAT(run->Stderr(), HasSubstr("INVALID: the generator gave up"));
  EXPECT_EQ(checked_, 0);
}

TEST_F(Loadgen, ALateGeneratorsFiguresAreStatus3) {
  const auto run = Run({workload_, "--max-lag-ms", "0.000001"});
  EXPECT_EQ(run->Wait(Duration::zero()), 3);
  EXPECT_THAT(run->Stderr(), HasSubstr("INVALID"));
}

TEST_F(Loadgen, WrongUseIsStatus2) {
  EXPECT_EQ(Run({"/nowhere.yaml"})->Wait(Duration::zero()), 2);
  EXPECT_EQ(Run({})->Wait(Duration::zero()), 2);
  EXPECT_EQ(Run({workload_, "--arrivals", "sometimes"})->Wait(Duration::zero()), 2);
  EXPECT_EQ(Run({workload_, "--cv", "2"})->Wait(Duration::zero()), 2);
  EXPECT_EQ(Run({workload_, "--rates", "gamma:0"})->Wait(Duration::zero()), 2);
  EXPECT_EQ(Run({workload_, "--json", "/nowhere/report.json"})->Wait(Duration::zero()), 2);
  EXPECT_EQ(Run({"--help"})->Wait(Duration::zero()), 0);
}

// Three functions, of which a GPU holds one.
TEST(LoadgenOnANode, TellsThePathsOfATablesRequests) {
  const std::vector<std::string> names = {"a", "b", "c"};
  EmulatedNode node(kTwoLinkedGpus, names);
  ASSERT_NO_FATAL_FAILURE(node.Start());
  std::string workload = "version: v1\ntarget: " + node.http_address() +
                         "\narrivals: artifact\nrates: rates.csv\nduration_s: 2\nfunctions:\n";
  for (const std::string& name : names) {
    ASSERT_NO_FATAL_FAILURE(
        node.StartFunction(name, {std::string(DRIVEN_DIR) + "/state_server", "--megabytes", "48"}));
    workload.append("  - {name: ").append(name).append(", path: /function/").append(name);
    workload += "/add, objective_ms: 30000, expected: sums.jsonl}\n";
  }
  const TemporaryFolder& folder = node.folder();
  folder.Write("sums.jsonl", R"({"request":{"value":[0]},"expected":{"sum":0}})"
                             "\n");
  folder.Write("rates.csv", "minute_0,minute_1\n120,0\n240,0\n120,0\n");
  const auto run =
      RunToItsEnd("torpor-loadgen",
                  {folder.Write("workload.yaml", workload), "--output", folder.path() + "/report"},
                  folder.path());
  EXPECT_EQ(run->Wait(Duration::zero()), 0) << run->Stderr() << node.Logs();

  std::ifstream file(folder.path() + "/report/report.json");
  const auto report = nlohmann::json::parse(file);
  EXPECT_GE(report.at("requests"), 10);
  EXPECT_EQ(report.at("compliant_functions"), 3);
  EXPECT_FALSE(report.at("paths").contains("unknown"));
  std::uint64_t on_paths = 0;
  for (const auto& [path, entry] : report.at("paths").items()) {
    on_paths += entry.at("requests").get<std::uint64_t>();
    EXPECT_GT(entry.at("run_ms"), 0) << path;
  }
  EXPECT_EQ(report.at("requests"), on_paths);
  EXPECT_GT(report.at("swaps_pcie").get<int>() + report.at("swaps_nvlink").get<int>(), 0);
}

}  // namespace
}  // namespace torpor::e2e
