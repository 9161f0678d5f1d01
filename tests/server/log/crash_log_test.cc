#include "server/log/crash_log.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <thread>

#include "base/thread_name.h"
#include "server/log/structured_log.h"

namespace torpor::server {
namespace {

void Crash(const std::function<void()>& work) {
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  LogUncaughtExceptions();
  std::thread([&] {
    NameThread("worker");
    work();
  }).join();
}

TEST(CrashLogDeathTest, AnUncaughtExceptionIsToldWithItsThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Crash([] { throw std::runtime_error("no more of it"); }),
               "critical uncaught exception.*no more of it.*worker");
  EXPECT_DEATH(Crash([] { throw 7; }), "another type");
  EXPECT_DEATH(Crash([] { std::terminate(); }), "without an exception");
}

}  // namespace
}  // namespace torpor::server
