#include "client_shim/core/trace/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "nlohmann/json.hpp"

namespace torpor::shim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TracerTest : public ::testing::Test {
 protected:
  void Launch() {
    tracer_.BeginCall("cudaLaunchKernel");
    tracer_.NoteCommand(100);
    tracer_.EndCall();
  }
  void Download() {
    tracer_.BeginCall("cudaMemcpy");
    tracer_.BeginWait(TracedWaitFor::kExecutor);
    tracer_.NoteCommand(80);
    tracer_.NoteBytes(0, 4096);
    tracer_.EndWait();
    tracer_.EndCall();
  }
  std::string SaidAtTheEnd() {
    said_.clear();
    tracer_.Finish();
    return said_;
  }

  std::string said_;
  std::string written_;
  Tracer tracer_{[this](const std::string& text) { said_ += text; }, ChromeTrace(1, "program"),
                 [this](const std::string& text) { written_ += text; }};
};

TEST_F(TracerTest, CallsInsideOfACallArePartOfIt) {
  tracer_.BeginCall("cuLaunchKernel");
  Launch();
  tracer_.EndCall();
  const std::string said = SaidAtTheEnd();
  EXPECT_THAT(said, HasSubstr("0 synchronous calls, 1 asynchronous, 0 local; 100 bytes up"));
  EXPECT_THAT(said, HasSubstr("1 x cuLaunchKernel\n"));
}

TEST_F(TracerTest, ACallThatWaitsForAnAnswerIsSynchronous) {
  Download();
  const std::string said = SaidAtTheEnd();
  EXPECT_THAT(said, HasSubstr("1 synchronous call, 0 asynchronous, 0 local; 80 bytes up, 4096"));
  EXPECT_THAT(said, HasSubstr("1 x cudaMemcpy by "));
}

TEST_F(TracerTest, AWaitForALeaseMakesNoCallSynchronous) {
  tracer_.BeginCall("cudaLaunchKernel");
  tracer_.BeginWait(TracedWaitFor::kLease);
  tracer_.EndWait();
  tracer_.NoteCommand(100);
  tracer_.EndCall();
  const std::string said = SaidAtTheEnd();
  EXPECT_THAT(said, HasSubstr("0 synchronous calls, 1 asynchronous"));
  EXPECT_THAT(said, HasSubstr("held up: 1 x for a lease"));
}

TEST_F(TracerTest, AWaitInsideOfAWaitIsToldOfToo) {
  tracer_.BeginCall("cudaMemcpy");
  tracer_.BeginWait(TracedWaitFor::kExecutor);
  tracer_.BeginWait(TracedWaitFor::kLease);
  tracer_.EndWait();
  tracer_.EndWait();
  tracer_.EndCall();
  const std::string said = SaidAtTheEnd();
  EXPECT_THAT(said, HasSubstr("1 synchronous call"));
  EXPECT_THAT(said, HasSubstr(": 1 answer, "));
  EXPECT_THAT(said, HasSubstr("held up: 1 x for a lease"));
}

TEST_F(TracerTest, WhatNoCallIsTheReasonOfIsTheShims) {
  tracer_.NoteCommand(10);
  tracer_.BeginWait(TracedWaitFor::kExecutor);
  tracer_.EndWait();
  const std::string said = SaidAtTheEnd();
  EXPECT_THAT(said, HasSubstr("1 synchronous call, 1 asynchronous, 0 local; 10 bytes up"));
  EXPECT_THAT(said, HasSubstr("1 x (the shim's own work)\n"));
}

TEST_F(TracerTest, ASectionIsToldOfWhenTheNextBegins) {
  Launch();
  tracer_.BeginSection("first");
  Download();
  tracer_.NoteBatch();
  EXPECT_EQ(said_, "");
  tracer_.BeginSection("second");
  EXPECT_THAT(said_, HasSubstr("trace: first: 1 synchronous call, 0 asynchronous"));
  EXPECT_THAT(said_, HasSubstr("1 batch;"));
  said_.clear();
  Launch();
  tracer_.BeginSection(nullptr);
  EXPECT_THAT(said_, HasSubstr("trace: second: 0 synchronous calls, 1 asynchronous"));
  Launch();
  const std::string said = SaidAtTheEnd();
  EXPECT_THAT(said, HasSubstr("trace: in all: 1 synchronous call, 3 asynchronous"));
  EXPECT_THAT(said, Not(HasSubstr("second")));
}

TEST_F(TracerTest, TheLastSectionIsToldOfAtTheEnd) {
  tracer_.BeginSection("last");
  Launch();
  EXPECT_THAT(SaidAtTheEnd(), HasSubstr("trace: last: "));
}

TEST_F(TracerTest, NothingIsToldOfAfterTheEnd) {
  tracer_.Finish();
  said_.clear();
  written_.clear();
  Launch();
  tracer_.BeginSection("late");
  tracer_.Finish();
  EXPECT_EQ(said_, "");
  EXPECT_EQ(written_, "");
}

TEST_F(TracerTest, TheTraceHasAnEventForEachCallThatIsSent) {
  tracer_.BeginSection("only");
  tracer_.BeginCall("cudaGetDevice");
  tracer_.EndCall();
  Launch();
  std::thread([this] { Download(); }).join();
  tracer_.Finish();
  std::map<std::string, nlohmann::json> events;
  for (const nlohmann::json& event : nlohmann::json::parse(written_))
    if (event.at("ph") == "X") events.emplace(event.at("name"), event);
  ASSERT_EQ(events.size(), 4u) << written_;
  EXPECT_EQ(events.at("cudaLaunchKernel").at("args").at("kind"), "asynchronous");
  const nlohmann::json& download = events.at("cudaMemcpy");
  const nlohmann::json& wait = events.at("wait for the executor");
  EXPECT_NE(download.at("tid"), events.at("cudaLaunchKernel").at("tid"));
  EXPECT_EQ(download.at("tid"), wait.at("tid"));
  EXPECT_LE(download.at("ts"), wait.at("ts"));
  EXPECT_GE(download.at("dur"), wait.at("dur"));
  EXPECT_EQ(events.at("only").at("cat"), "section");
}

}  // namespace
}  // namespace torpor::shim
