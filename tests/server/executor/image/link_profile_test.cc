#include "server/executor/image/link_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/base/disk_faults.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const LinkIdentity kLink = {"GPU-1", "0000:10:00.0", 13000};
const BandwidthCurve kCurve = {{64 * kKiB, 4e9}, {2 * kMiB, 11.5e9}, {64 * kMiB, 12.25e9}};

TEST(LinkProfileTest, IsReadAsWritten) {
  const auto decoded = DecodeLinkProfile(EncodeLinkProfile(kLink, kCurve), kLink);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, kCurve);
}

TEST(LinkProfileTest, IsOfOneLink) {
  const std::string text = EncodeLinkProfile(kLink, kCurve);
  for (const LinkIdentity& other :
       {LinkIdentity{"GPU-2", "0000:10:00.0", 13000}, LinkIdentity{"GPU-1", "0000:11:00.0", 13000},
        LinkIdentity{"GPU-1", "0000:10:00.0", 13010},
        LinkIdentity{"GPU-1", "0000:10:00.0", 13000, "GPU-2", "0000:11:00.0"}}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(DecodeLinkProfile(text, other).status()));
  }
}

TEST(LinkProfileTest, OtherBytesAreNoProfile) {
  const auto with_curve = [](const std::string& curve) {
    return R"({"version":1,"uuid":"GPU-1","pci_bus_id":"0000:10:00.0","driver_version":13000,)"
           R"("curve":)" +
           curve + "}";
  };
  ASSERT_TRUE(DecodeLinkProfile(with_curve("[[65536,1e9]]"), kLink).ok());
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"),
        std::string(R"({"version":2})"), std::string(100'000, ' '), with_curve("{}"),
        with_curve("[]"), with_curve("[1]"), with_curve("[[65536]]"), with_curve("[[-65536,1e9]]"),
        with_curve("[[65536,\"1e9\"]]"), with_curve("[[65536,0]]"), with_curve("[[65536,-1]]"),
        with_curve("[[65536,1e300]]"), with_curve("[[512,1e9]]"), with_curve("[[1e30,1e9]]"),
        with_curve("[[131072,1e9],[65536,1e9]]")}) {
    const auto decoded = DecodeLinkProfile(text, kLink);
    EXPECT_TRUE(absl::IsInvalidArgument(decoded.status())) << text.substr(0, 200);
  }
}

TEST(LinkProfileTest, IsOfOneSource) {
  const LinkIdentity link = {"GPU-1", "0000:10:00.0", 13000, "GPU-2", "0000:11:00.0"};
  const std::string text = EncodeLinkProfile(link, kCurve);
  EXPECT_TRUE(DecodeLinkProfile(text, link).ok());
  LinkIdentity other = link;
  other.source_uuid = "GPU-3";
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeLinkProfile(text, other).status()));
  other = link;
  other.source_pci_bus_id = "0000:12:00.0";
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeLinkProfile(text, other).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeLinkProfile(text, kLink).status()));
}

TEST(LinkProfileTest, TheFastestPeersComeFirstAndEqualOnesInTheirOrder) {
  EXPECT_THAT(RankByRate({}), IsEmpty());
  EXPECT_THAT(RankByRate({{3, 25e9}, {1, 50e9}, {2, 100e9}}), ElementsAre(2, 1, 3));
  EXPECT_THAT(RankByRate({{3, 24e9}, {1, 49e9}, {2, 51e9}, {0, 25e9}}), ElementsAre(1, 2, 3, 0));
}

TEST(LinkProfileTest, IsOldOrNewWhateverTheDiskDoes) {
  const std::string path = "/links/GPU-1.json";
  const BandwidthCurve before = {{64 * kKiB, 3e9}};
  const int operations = TryAllFaults(
      {.prepare =
           [&](SimulatedDisk& disk) {
             ASSERT_TRUE(WriteLinkProfile(disk, path, kLink, before).ok());
           },
       .write = [&](SimulatedDisk& disk) { return WriteLinkProfile(disk, path, kLink, kCurve); },
       .check =
           [&](SimulatedDisk& disk, bool is_new) {
             const auto read = ReadLinkProfile(disk, path, kLink);
             ASSERT_TRUE(read.ok()) << read.status();
             EXPECT_TRUE(*read == kCurve || (!is_new && *read == before));
           }});
  EXPECT_EQ(operations, 5);
}

// On an emulated GPU, in this process. Its link moves 1 GB/s of what the clock on the wall shows,
// and a copy's first byte comes 0.2 ms late.
class LinkMeasurementTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    const std::string topology = folder_ + "/topology.yaml";
    std::ofstream(topology) << R"(version: v1
time_scale: 4
gpus:
  - {memory: 64MiB, pcie_gbps: 4, copy_us: 50, count: 3}
nvlinks: {gbps_per_link: 1, pairs: [{gpus: [0, 1]}, {gpus: [0, 2], links: 8}]}
)";
    setenv("TORPOR_EMULATOR_TOPOLOGY", topology.c_str(), 1);
    driver_ = *LoadCudaDriver(EMULATOR_DIR);
    device_ = *Device::Open(driver_, 0);
    profile_ = folder_ + "/" + LinkOf(device_->properties()).uuid + ".json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string PathOf(const LinkIdentity& peers) const {
    return folder_ + "/" + peers.uuid + "-from-" + peers.source_uuid + ".json";
  }
  BandwidthCurve Profile() const {
    const auto curve = ProfileLink(*device_, folder_);
    EXPECT_TRUE(curve.ok()) << curve.status();
    return curve.value_or(BandwidthCurve());
  }

  const std::string folder_ = testing::TempDir() + "link-" + std::to_string(getpid());
  std::string profile_;
  CudaDriver driver_;
  std::unique_ptr<Device> device_;
};

TEST_F(LinkMeasurementTest, FindsTheLinkAsItIsOnceAndGivesTheMemoryBack) {
  const Bytes free = *device_->FreeMemory();
  const BandwidthCurve curve = Profile();
  ASSERT_GT(curve.size(), 2U);
  EXPECT_EQ(curve.front().copy_bytes, 64 * kKiB);
  EXPECT_LE(curve.back().copy_bytes, 16 * kMiB);
  const double peak = memory::PeakRate(curve);
  EXPECT_LT(curve.front().bytes_per_second, peak / 2);
  EXPECT_LT(peak, 1.1e9);
  EXPECT_GE(memory::FindElbow(curve), kMiB);  // 84% of the link's rate, and half of it 72%
  EXPECT_EQ(Profile(), curve);                // which no second measurement would give
  EXPECT_EQ(device_->FreeMemory().value_or(0), free);
  // What is damaged is measured again.
  std::ofstream(profile_) << "damaged";
  EXPECT_GT(Profile().size(), 2U);
  std::ofstream(profile_) << EncodeLinkProfile(LinkOf(device_->properties()), kCurve);
  EXPECT_EQ(Profile(), kCurve);
}

TEST_F(LinkMeasurementTest, RanksPeersByWhatTheirLinksDo) {
  const auto ranked = RankPeers(*device_, {1, 2}, folder_);
  ASSERT_TRUE(ranked.ok()) << ranked.status();
  EXPECT_THAT(*ranked, ElementsAre(2, 1));
  // What is known is not measured again.
  const LinkIdentity slow = LinkBetween(*DescribeDevice(driver_, 1), device_->properties());
  std::ofstream(PathOf(slow)) << EncodeLinkProfile(slow, {{kMiB, 900e9}});
  EXPECT_THAT(*RankPeers(*device_, {1, 2}, folder_), ElementsAre(1, 2));
  EXPECT_FALSE(std::filesystem::exists(profile_)) << "that is the host's link";
}

TEST_F(LinkMeasurementTest, APeerWithoutMemoryIsAnError) {
  CUmemGenericAllocationHandle all = 0;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 2};
  ASSERT_EQ(driver_.MemCreate(&all, 64 * kMiB, &properties, 0), CUDA_SUCCESS);
  EXPECT_FALSE(RankPeers(*device_, {1, 2}, folder_).ok());
  EXPECT_EQ(driver_.MemRelease(all), CUDA_SUCCESS);
  EXPECT_TRUE(RankPeers(*device_, {1, 2}, folder_).ok());
}

}  // namespace
}  // namespace torpor::executor
