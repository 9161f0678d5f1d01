#include "server/executor/session_memory/memory_directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "server/executor/session_memory/session_memory.h"
#include "tests/server/executor/session_memory/peer_fixture.h"

namespace torpor::executor {
namespace {

class MemoryDirectoryTest : public PeerFixture {
 protected:
  MemoryDirectoryTest() : PeerFixture(1, NewImageFiles(kRange)) { MakePeer(NewImageFiles(kRange)); }

  bool IsThere() {
    return directory_.UseSibling("one", identity_.id, [](SessionMemory&) { return true; });
  }
};

// A peer's question may wait for copies, and calls of all sessions look for siblings meanwhile.
TEST_F(MemoryDirectoryTest, APeerThatWaitsHoldsUpNobody) {
  std::promise<void> held;
  std::promise<void> go_on;
  std::thread peer([&] {
    directory_.UseAsPeer(identity_.id, identity_.peer_key, [&](SessionMemory&) {
      held.set_value();
      go_on.get_future().wait();
      return true;
    });
  });
  held.get_future().wait();
  EXPECT_TRUE(IsThere());
  SessionIdentity other = identity_;
  other.id = other.first = {8};
  other.device_base = 0x5540'0000'0000;
  Open(other, NewImageFiles(kRange)).reset();
  std::promise<void> removed;
  std::thread remover([&] {
    owner_.reset();
    removed.set_value();
  });
  go_on.set_value();
  peer.join();
  removed.get_future().wait();
  remover.join();
  EXPECT_FALSE(IsThere());
}

TEST_F(MemoryDirectoryTest, AMemoryStaysWhileAPeerUsesIt) {
  std::promise<void> held;
  std::atomic<bool> is_used = true;
  std::thread peer([&] {
    directory_.UseAsPeer(identity_.id, identity_.peer_key, [&](SessionMemory& memory) {
      held.set_value();
      for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(memory.image().base(), kOwnerBase);
        std::this_thread::yield();
      }
      is_used = false;
      return true;
    });
  });
  held.get_future().wait();
  owner_.reset();
  EXPECT_FALSE(is_used);
  peer.join();
}

TEST_F(MemoryDirectoryTest, APeerNeedsTheKey) {
  const auto use = [](SessionMemory&) { return true; };
  EXPECT_TRUE(directory_.UseAsPeer(identity_.id, identity_.peer_key, use));
  EXPECT_FALSE(directory_.UseAsPeer(identity_.id, {}, use));
  EXPECT_FALSE(directory_.UseAsPeer({99}, identity_.peer_key, use));
}

}  // namespace
}  // namespace torpor::executor
