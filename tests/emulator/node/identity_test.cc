#include "emulator/node/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/emulator/node/four_gpus.h"

namespace torpor::emulator {
namespace {

using testing::ElementsAre;

std::vector<std::string> Addresses(const Topology& topology) {
  std::vector<std::string> texts;
  for (const GpuSpec& gpu : topology.gpus)
    texts.push_back(ToText(PciAddressOf(topology, gpu.place)));
  return texts;
}

TEST(IdentityTest, BusNumbersShowTheSwitches) {
  EXPECT_THAT(Addresses(FourGpus()),
              ElementsAre("0000:10:00.0", "0000:11:00.0", "0000:20:00.0", "0000:21:00.0"));
}

TEST(IdentityTest, SignaturesTellLinksApart) {
  const Topology topology = FourGpus();
  Topology other = topology;
  EXPECT_EQ(LinkSignature(topology, 0), LinkSignature(topology, 3));
  other.gpus[0].pcie_gbps = 11;
  other.gpus[1].copy_us = 8;
  other.switches[1].gbps = 14;
  std::set<std::uint32_t> signatures = {LinkSignature(topology, 0)};
  for (const unsigned place : {0, 1, 2}) signatures.insert(LinkSignature(other, place));
  other.time_scale = 10;
  for (const unsigned place : {0, 1, 2}) signatures.insert(LinkSignature(other, place));
  EXPECT_EQ(signatures.size(), 7U);
}

TEST(IdentityTest, GpusWithoutASwitchStandAlone) {
  Topology topology = FourGpus();
  topology.gpus[1].pcie_switch = std::nullopt;
  topology.gpus[3].pcie_switch = 0;
  EXPECT_THAT(Addresses(topology),
              ElementsAre("0000:10:00.0", "0000:20:00.0", "0000:30:00.0", "0000:11:00.0"));
}

TEST(IdentityTest, EveryGpuOfTheLargestNodeHasAnAddress) {
  Topology topology;
  for (unsigned place = 0; place < kMaxGpus; ++place) {
    topology.gpus.emplace_back();
    topology.gpus.back().place = place;
  }
  const auto addresses = Addresses(topology);
  EXPECT_EQ(std::set<std::string>(addresses.begin(), addresses.end()).size(), kMaxGpus);
  EXPECT_EQ(addresses[14], "0000:f0:00.0");
  EXPECT_EQ(addresses[15], "0001:10:00.0");
}

TEST(IdentityTest, RankOfPeersCountsBetterWays) {
  Topology topology = FourGpus();
  EXPECT_EQ(PeerRank(topology, 0, 3), 0U);
  EXPECT_EQ(PeerRank(topology, 3, 2), 0U);
  EXPECT_EQ(PeerRank(topology, 0, 1), 1U);
  topology.nvlinks.links[0][1] = topology.nvlinks.links[1][0] = 0;
  EXPECT_EQ(PeerRank(topology, 0, 1), 2U);
  topology.nvlinks = {};
  EXPECT_EQ(PeerRank(topology, 0, 1), 0U);
}

}  // namespace
}  // namespace torpor::emulator
