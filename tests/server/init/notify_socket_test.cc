#include "server/init/notify_socket.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "server/daemon/service_manager.h"

namespace torpor::init {
namespace {

class NotifySocketTest : public ::testing::Test {
 protected:
  NotifySocketTest() { setenv("NOTIFY_SOCKET", socket_.name().c_str(), 1); }
  ~NotifySocketTest() override { unsetenv("NOTIFY_SOCKET"); }

  NotifySocket socket_ = NotifySocket::Open().value();
};

TEST_F(NotifySocketTest, AMessageComesWithItsSenderAndDescriptor) {
  EXPECT_FALSE(socket_.Receive());
  const UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  ASSERT_EQ(server::SendToServiceManager("FDSTORE=1", file.get()), absl::OkStatus());
  server::NotifyServiceManager("READY=1");
  const auto first = socket_.Receive();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text, "FDSTORE=1");
  EXPECT_EQ(first->sender, getpid());
  EXPECT_EQ(first->descriptors.size(), 1);
  const auto second = socket_.Receive();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->text, "READY=1");
  EXPECT_TRUE(second->descriptors.empty());
  EXPECT_FALSE(second->is_cut);
  EXPECT_FALSE(socket_.Receive());
}

TEST_F(NotifySocketTest, ALongMessageIsCut) {
  ASSERT_EQ(server::SendToServiceManager(std::string(5000, 'x')), absl::OkStatus());
  const auto message = socket_.Receive();
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->is_cut);
}

TEST_F(NotifySocketTest, EverySocketHasANameOfItsOwn) {
  EXPECT_NE(NotifySocket::Open().value().name(), socket_.name());
}

}  // namespace
}  // namespace torpor::init
