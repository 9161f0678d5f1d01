#include "client_shim/core/transport/unix_socket.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

TEST(SocketBeside, IsInTheFolderOfTheDaemonsSocketAsThisProcessSeesIt) {
  EXPECT_EQ(SocketBeside("/mnt/torpor/torpor.sock", "/run/torpor/functions/executor-0.sock"),
            "/mnt/torpor/executor-0.sock");
  EXPECT_EQ(SocketBeside("torpor.sock", "/run/torpor/functions/executor-0.sock"),
            "executor-0.sock");
  EXPECT_EQ(SocketBeside("/torpor.sock", "descriptors.sock"), "/descriptors.sock");
}

TEST(SocketBeside, IsWhereTorpordSaysWithoutOne) {
  EXPECT_EQ(SocketBeside("", "/run/torpor/executor-0.sock"), "/run/torpor/executor-0.sock");
}

}  // namespace
}  // namespace torpor::shim
