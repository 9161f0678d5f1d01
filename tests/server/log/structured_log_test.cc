#include "server/log/structured_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

namespace torpor::server {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

std::string Logged(LogFormat format, const std::function<void()>& write) {
  ::testing::internal::CaptureStderr();
  SetUpLog(LogLevel::kInfo, format);
  write();
  spdlog::default_logger()->flush();
  return ::testing::internal::GetCapturedStderr();
}

constexpr const char* kTime =
    "20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z";

TEST(StructuredLogTest, TextIsOneLineWithFields) {
  const std::string line = Logged(LogFormat::kText, [] {
    LogEvent(spdlog::level::info, "request",
             {{"function", "digits"}, {"status", 200}, {"ms", 1.5}, {"path", "a b=\"\n"}});
  });
  EXPECT_THAT(
      line, MatchesRegex(std::string(kTime) + " info  request function=digits status=200 ms=1.500 "
                                              "path=\"a b=\\\\\"\\\\n\"\n"));
}

TEST(StructuredLogTest, JsonParsesWhateverTheValues) {
  const std::string line = Logged(LogFormat::kJson, [] {
    LogEvent(spdlog::level::warn, "odd \"message\"",
             {{"text", "quote\" back\\slash \x1f\x01 newline\n"}, {"count", -3}});
  });
  const auto event = nlohmann::json::parse(line);
  EXPECT_THAT(event["time"].get<std::string>(), MatchesRegex(kTime));
  EXPECT_EQ(event["level"], "warning");
  EXPECT_EQ(event["message"], "odd \"message\"");
  EXPECT_EQ(event["text"], "quote\" back\\slash  \x01 newline\n");
  EXPECT_EQ(event["count"], -3);
}

TEST(StructuredLogTest, PlainSpdlogMessagesAreEventsToo) {
  const std::string line = Logged(LogFormat::kJson, [] { spdlog::error("disk is {}", "full"); });
  EXPECT_EQ(nlohmann::json::parse(line)["message"], "disk is full");
}

TEST(StructuredLogTest, AClientsTextForgesNoFields) {
  const std::string program =
      "a\x1fnstatus\x1f"
      "200,\n\x1f\x1f";
  const std::string json =
      Logged(LogFormat::kJson, [&] { spdlog::info("session of {} opened", program); });
  const auto event = nlohmann::json::parse(json);
  EXPECT_EQ(event["message"], "session of " + program + " opened");
  EXPECT_EQ(event.size(), 3u);
  const std::string text =
      Logged(LogFormat::kText, [&] { spdlog::info("session of {} opened", program); });
  EXPECT_THAT(text, EndsWith("session of a\\u001fnstatus\\u001f200,\\n\\u001f\\u001f opened\n"));
}

TEST(StructuredLogTest, EventsBelowTheLevelAreDropped) {
  EXPECT_EQ(Logged(LogFormat::kText, [] { LogEvent(spdlog::level::debug, "quiet", {}); }), "");
}

}  // namespace
}  // namespace torpor::server
