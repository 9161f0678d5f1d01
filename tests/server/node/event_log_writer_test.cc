#include "server/node/event_log_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "scheduler/replay.h"
#include "server/controller/scheduler_setup.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

class EventLogWriterTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<EventLogWriter>> Create(Bytes max_bytes) {
    return EventLogWriter::Create(path_, max_bytes, EventLogHeaderOf(Config()));
  }

  // So many GPUs come up, one after the other.
  void RecordEvents(EventLogWriter& writer, int count) {
    scheduler::Setup setup = SetupOf(Config());
    scheduler::Scheduler scheduler(std::move(setup.policies), setup.options);
    for (int i = 0; i < count; ++i) {
      const scheduler::Event event = scheduler::ExecutorUp{GpuIndex{i}, 64};
      const TimePoint when{Duration(i)};
      writer.Record(when, event, scheduler.OnEvent(event, when));
    }
  }

  std::string Text() { return TextOf(path_); }
  static std::string TextOf(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("events");
};

TEST_F(EventLogWriterTest, WhatIsRecordedCanBeReplayed) {
  std::ofstream(path_) << "of an earlier daemon";
  {
    auto writer = Create(kMiB);
    ASSERT_TRUE(writer.ok()) << writer.status();
    RecordEvents(**writer, 1000);
  }
  std::istringstream log(Text());
  const scheduler::ReplayOutcome outcome = scheduler::Replay(log);
  EXPECT_TRUE(outcome.is_same()) << outcome.error;
  EXPECT_EQ(outcome.events, 1000u);
  EXPECT_EQ(TextOf(path_ + ".1"), "of an earlier daemon");
}

TEST_F(EventLogWriterTest, WhatIsNoFileStaysWhereItIs) {
  std::filesystem::create_directory(path_);
  const auto writer = Create(kMiB);
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(writer.status().message()), testing::HasSubstr("no file stands there"));
  EXPECT_TRUE(std::filesystem::is_directory(path_));
}

TEST_F(EventLogWriterTest, AtItsSizeItEndsWithAWholeEvent) {
  {
    auto writer = Create(kKiB);
    ASSERT_TRUE(writer.ok()) << writer.status();
    RecordEvents(**writer, 1000);
  }
  EXPECT_LE(Text().size(), kKiB);
  std::istringstream log(Text());
  const scheduler::ReplayOutcome outcome = scheduler::Replay(log);
  EXPECT_TRUE(outcome.is_same()) << outcome.error;
  EXPECT_GT(outcome.events, 5u);
  EXPECT_LT(outcome.events, 1000u);
}

TEST_F(EventLogWriterTest, WhatCannotBeWrittenIsNamed) {
  const auto writer = EventLogWriter::Create("/nowhere/events", kMiB, {});
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(writer.status().message()), testing::HasSubstr("/nowhere/events"));
}

}  // namespace
}  // namespace torpor::server
