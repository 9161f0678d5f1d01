#include "client_shim/core/trace/trace_summary.h"

#include <gtest/gtest.h>

#include <string>

namespace torpor::shim {
namespace {

using namespace std::chrono_literals;

FinishedCall Local(std::string_view name) { return {.name = name}; }
FinishedCall Launch() { return {.name = "cudaLaunchKernel", .commands = 1, .bytes_up = 200}; }
FinishedCall Download(std::string_view caller) {
  return {.name = "cudaMemcpy",
          .caller = caller,
          .commands = 2,
          .answers = 2,
          .bytes_up = 80,
          .bytes_down = 5000,
          .waited = 1500us};
}

TEST(FinishedCall, KindIsByWhatItSentAndWaitedFor) {
  EXPECT_EQ(Local("cudaGetDevice").kind(), CallKind::kLocal);
  EXPECT_EQ(Launch().kind(), CallKind::kAsynchronous);
  EXPECT_EQ(Download("main in a.out").kind(), CallKind::kSynchronous);
  EXPECT_EQ((FinishedCall{.name = "cudaMalloc", .answers = 1}).kind(), CallKind::kSynchronous)
      << "the daemon is asked without a command";
}

TEST(TraceSummary, OfNothing) {
  EXPECT_EQ(TraceSummary().Text("in all"),
            "torpor: trace: in all: 0 synchronous calls, 0 asynchronous, 0 local; 0 bytes up, 0 "
            "down, 0 batches; waited 0.000 ms\n");
}

TEST(TraceSummary, SaysWhichCallsWereOfWhichKind) {
  TraceSummary summary;
  summary.Add(Local("cudaGetDevice"));
  summary.Add(Launch());
  summary.Add(Launch());
  summary.Add(Local("cudaGetLastError"));
  summary.Add(Local("cudaGetLastError"));
  summary.Add(Download("fetch in libmodel.so"));
  summary.AddBatch();
  summary.AddHold(TracedWaitFor::kLease, 250us);
  EXPECT_EQ(summary.calls(CallKind::kLocal), 3u);
  EXPECT_EQ(summary.Text("request 7"),
            "torpor: trace: request 7: 1 synchronous call, 2 asynchronous, 3 local; 480 bytes up, "
            "5000 down, 1 batch; waited 1.500 ms\n"
            "torpor: trace:   synchronous: 1 x cudaMemcpy by fetch in libmodel.so: 2 answers, "
            "1.500 ms\n"
            "torpor: trace:   asynchronous: 2 x cudaLaunchKernel\n"
            "torpor: trace:   local: 2 x cudaGetLastError, 1 x cudaGetDevice\n"
            "torpor: trace:   held up: 1 x for a lease: 0.250 ms\n");
}

TEST(TraceSummary, SynchronousCallsAreToldApartByTheirCallers) {
  TraceSummary summary;
  summary.Add(Download("rare in a.out"));
  summary.Add(Download("usual in a.out"));
  summary.Add(Download("usual in a.out"));
  const std::string text = summary.Text("in all");
  const std::size_t usual = text.find("2 x cudaMemcpy by usual in a.out: 4 answers, 3.000 ms");
  const std::size_t rare = text.find("1 x cudaMemcpy by rare in a.out");
  ASSERT_NE(usual, std::string::npos) << text;
  ASSERT_NE(rare, std::string::npos) << text;
  EXPECT_LT(usual, rare);
}

TEST(TraceSummary, OfManyNamesTheMostFrequentAreShown) {
  TraceSummary summary;
  for (int i = 0; i < 10; ++i) summary.Add(Local("call" + std::to_string(i)));
  summary.Add(Local("call9"));
  const std::string text = summary.Text("in all");
  EXPECT_NE(text.find("local: 2 x call9, 1 x call0, "), std::string::npos) << text;
  EXPECT_NE(text.find("1 x call6 and 2 names more\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace torpor::shim
