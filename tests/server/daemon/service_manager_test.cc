#include "server/daemon/service_manager.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/server/daemon/fake_service_manager.h"

namespace torpor::server {
namespace {

class ServiceManagerTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
};

TEST_F(ServiceManagerTest, StatesReachThePathAndTheAbstractName) {
  const std::string path = ::testing::TempDir() + "notify-" + std::to_string(getpid());
  {
    const FakeServiceManager by_path(path);
    NotifyServiceManager("READY=1");
    EXPECT_EQ(by_path.Receive().text, "READY=1");
  }
  unlink(path.c_str());
  const FakeServiceManager abstract("@torpor-notify-" + std::to_string(getpid()));
  NotifyServiceManager("STOPPING=1");
  EXPECT_EQ(abstract.Receive().text, "STOPPING=1");
}

TEST_F(ServiceManagerTest, NobodyToTellIsNoError) {
  NotifyServiceManager("READY=1");
  setenv("NOTIFY_SOCKET", "/nowhere/socket", 1);
  NotifyServiceManager("READY=1");
  setenv("NOTIFY_SOCKET", std::string(300, 'x').c_str(), 1);
  NotifyServiceManager("READY=1");
}

TEST_F(ServiceManagerTest, TheWatchdogIsFedTwiceAsOftenAsItAsks) {
  EXPECT_EQ(WatchdogInterval(), std::nullopt);
  setenv("WATCHDOG_USEC", "2000000", 1);
  EXPECT_EQ(WatchdogInterval(), std::chrono::seconds(1));
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(WatchdogInterval(), std::nullopt);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(WatchdogInterval(), std::chrono::seconds(1));
  setenv("WATCHDOG_USEC", "often", 1);
  EXPECT_EQ(WatchdogInterval(), std::nullopt);
}

}  // namespace
}  // namespace torpor::server
