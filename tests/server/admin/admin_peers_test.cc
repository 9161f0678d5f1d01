#include "server/admin/admin_peers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

constexpr uid_t kStranger = 54'321;

class AdminPeersTest : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  AdminPeers peers_{folder_.Write("admin.sock", "")};
};

TEST_F(AdminPeersTest, RootAndTheServersOwnUserAreAdministrators) {
  EXPECT_TRUE(peers_.Admit({.process = 7, .user = 0}));
  EXPECT_TRUE(peers_.Admit({.process = 7, .user = geteuid()}));
}

TEST_F(AdminPeersTest, OthersMustBelongToTheSocketsGroup) {
  EXPECT_FALSE(peers_.Admit({.process = 7, .user = kStranger}));
  EXPECT_FALSE(peers_.Admit({.process = 7, .user = kStranger, .groups = {kStranger}}));
  EXPECT_TRUE(peers_.Admit({.process = 7, .user = kStranger, .groups = {kStranger, getegid()}}));
}

}  // namespace
}  // namespace torpor::server
