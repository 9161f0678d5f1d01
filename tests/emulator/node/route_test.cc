#include "emulator/node/route.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/emulator/node/four_gpus.h"

namespace torpor::emulator {
namespace {

using std::chrono::microseconds;

constexpr TimePoint kStart = TimePoint(std::chrono::hours(1));
constexpr std::nullopt_t kHost = std::nullopt;

// Rates are in bytes a nanosecond: 12'000 bytes take 1 us over a link of 12 GB/s.
class RouteTest : public testing::Test {
 protected:
  // How long `size` bytes take that are there at the start, behind what was reserved before.
  Duration Reserve(std::optional<unsigned> from, std::optional<unsigned> to, Bytes size) {
    return RouteBetween(topology_, node_.state(), from, to).Reserve(kStart, size) - kStart;
  }

  Topology topology_ = FourGpus();
  PrivateNode node_;
};

TEST_F(RouteTest, AloneAGpuHasItsOwnRate) {
  EXPECT_EQ(Reserve(kHost, 0, 12'000'000), microseconds(1000));
  EXPECT_EQ(Reserve(3, kHost, 12'000'000), microseconds(1000));
}

TEST_F(RouteTest, GpusBehindASwitchShareItsRate) {
  EXPECT_EQ(Reserve(kHost, 0, 13'000'000), Duration(1'083'333));  // at 12 GB/s
  EXPECT_EQ(Reserve(kHost, 1, 13'000'000), microseconds(2000));   // at 13 GB/s, behind the other
  EXPECT_EQ(Reserve(kHost, 2, 12'000'000), microseconds(1000));   // another switch
}

TEST_F(RouteTest, DirectionsAreIndependent) {
  EXPECT_EQ(Reserve(kHost, 0, 12'000'000), microseconds(1000));
  EXPECT_EQ(Reserve(0, kHost, 12'000'000), microseconds(1000));
  EXPECT_EQ(Reserve(0, 3, 50'000'000), microseconds(1000));
  EXPECT_EQ(Reserve(3, 0, 50'000'000), microseconds(1000));
}

TEST_F(RouteTest, NvlinksAreTakenWhereThereAreSome) {
  EXPECT_EQ(Reserve(0, 1, 25'000'000), microseconds(1000));
  EXPECT_EQ(Reserve(1, 2, 50'000'000), microseconds(1000));
  EXPECT_EQ(Reserve(kHost, 1, 12'000'000), microseconds(1000));  // PCIe has seen nothing of it
}

TEST_F(RouteTest, WithoutNvlinksCopiesCrossBothGpusLinks) {
  topology_.nvlinks = {};
  EXPECT_EQ(Reserve(0, 2, 12'000'000), microseconds(1000));
  EXPECT_EQ(Reserve(0, kHost, 12'000'000), microseconds(2000));
  EXPECT_EQ(Reserve(kHost, 2, 12'000'000), microseconds(2000));
  EXPECT_EQ(Reserve(1, kHost, 1'000'000), Duration(1'923'077));  // its switch carried the others
}

TEST_F(RouteTest, BehindOneSwitchCopiesDoNotUseItsLinkToTheHost) {
  topology_.nvlinks = {};
  EXPECT_EQ(Reserve(0, 1, 12'000'000), microseconds(1000));
  topology_.gpus[0].pcie_gbps = topology_.gpus[1].pcie_gbps = 0;
  EXPECT_EQ(Reserve(kHost, 1, 13'000'000), microseconds(1000));
  EXPECT_FALSE(RouteBetween(topology_, node_.state(), 0, 1).paced());
}

TEST_F(RouteTest, TimeScaleStretches) {
  topology_.time_scale = 10;
  EXPECT_EQ(Reserve(kHost, 0, 12'000'000), microseconds(10'000));
  EXPECT_EQ(Reserve(1, 2, 50'000'000), microseconds(10'000));
}

TEST_F(RouteTest, PageableMemoryHasARateOfItsOwn) {
  topology_.gpus[0].pageable_gbps = 6;
  SharedNodeState& node = node_.state();
  EXPECT_EQ(
      RouteBetween(topology_, node, kHost, 0, HostMemory::kPageable).Reserve(kStart, 12'000'000) -
          kStart,
      microseconds(2000));
  EXPECT_EQ(
      RouteBetween(topology_, node, 0, kHost, HostMemory::kPageable).Reserve(kStart, 12'000'000) -
          kStart,
      microseconds(2000));
  // The link itself was taken for its own time only.
  EXPECT_EQ(Reserve(kHost, 0, 12'000'000), microseconds(2000));
  EXPECT_EQ(Reserve(0, 1, 25'000'000), microseconds(1000));
}

TEST_F(RouteTest, ACopyIsDelayedByTheSlowerOfItsGpus) {
  topology_.time_scale = 10;
  topology_.gpus[0].copy_us = 8;
  SharedNodeState& node = node_.state();
  EXPECT_EQ(RouteBetween(topology_, node, kHost, 0).delay(), microseconds(80));
  EXPECT_EQ(RouteBetween(topology_, node, 1, 0).delay(), microseconds(80));
  EXPECT_EQ(RouteBetween(topology_, node, kHost, 1).delay(), microseconds(0));
}

TEST_F(RouteTest, WithinAGpuNothingIsPaced) {
  EXPECT_FALSE(RouteBetween(topology_, node_.state(), 1, 1).paced());
  EXPECT_FALSE(RouteBetween(topology_, node_.state(), kHost, kHost).paced());
}

TEST_F(RouteTest, AnIdleLinkStartsWhenTheBytesAreThere) {
  const Route route = RouteBetween(topology_, node_.state(), kHost, 0);
  route.Reserve(kStart, 12'000'000);
  const TimePoint later = kStart + microseconds(5000);
  EXPECT_EQ(route.Reserve(later, 12'000), later + microseconds(1));
}

}  // namespace
}  // namespace torpor::emulator
