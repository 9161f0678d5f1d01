#include "client_shim/core/session/thread_streams.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/client_shim/surface/fake_client_core.h"

namespace torpor::shim {
namespace {

TEST(ThreadStreamsTest, EachThreadHasItsOwnAndDestroysIt) {
  FakeClientCore core;
  std::uint64_t mine = 0;
  std::thread([&] {
    mine = ThreadStreamOf(core);
    EXPECT_EQ(ThreadStreamOf(core), mine);
    EXPECT_TRUE(core.live.contains(mine));
  }).join();
  EXPECT_EQ(KindOf(mine), HandleKind::kStream);
  EXPECT_TRUE(core.live.empty());
  std::uint64_t other = 0;
  std::thread([&] { other = ThreadStreamOf(core); }).join();
  EXPECT_NE(other, mine);
}

TEST(ThreadStreamsTest, AnotherCoreGetsAnotherStream) {
  FakeClientCore one;
  FakeClientCore another;
  std::thread([&] {
    const std::uint64_t first = ThreadStreamOf(one);
    EXPECT_NE(ThreadStreamOf(another), first);
  }).join();
  EXPECT_TRUE(another.live.empty());
}

}  // namespace
}  // namespace torpor::shim
