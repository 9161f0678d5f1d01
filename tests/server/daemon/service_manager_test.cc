#include "server/daemon/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "base/unique_fd.h"

namespace torpor::server {
namespace {

class ServiceManagerTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }

  // Binds the name, writing @ for an abstract one, and points NOTIFY_SOCKET at it.
  static UniqueFd Manager(const std::string& name) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    return socket;
  }

  static std::string Receive(const UniqueFd& socket) {
    char text[64];
    const ssize_t bytes = recv(socket.get(), text, sizeof text, MSG_DONTWAIT);
    return bytes < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(bytes));
  }
};

TEST_F(ServiceManagerTest, StatesReachThePathAndTheAbstractName) {
  const std::string path = ::testing::TempDir() + "notify-" + std::to_string(getpid());
  const UniqueFd by_path = Manager(path);
  NotifyServiceManager("READY=1");
  EXPECT_EQ(Receive(by_path), "READY=1");
  unlink(path.c_str());
  const UniqueFd abstract = Manager("@torpor-notify-" + std::to_string(getpid()));
  NotifyServiceManager("STOPPING=1");
  EXPECT_EQ(Receive(abstract), "STOPPING=1");
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
