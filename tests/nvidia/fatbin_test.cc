#include "nvidia/fatbin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/nvidia/fatbin_builder.h"

namespace torpor {
namespace {

const std::string kText = std::string(".version 9.0\n") + std::string(500, ' ') + ".target sm_75";

TEST(FatbinTest, PicksTheNewestPtxTheDeviceRuns) {
  const std::string image = MakeContainer({{.architecture = 75, .payload = "old"},
                                           {.architecture = 120, .payload = "new"},
                                           {.architecture = 130, .payload = "too new"},
                                           {.kind = 2, .architecture = 120, .payload = "elf"}});
  EXPECT_EQ(*SelectPtx(BytesOf(image), 120), "new");
  EXPECT_EQ(*SelectPtx(BytesOf(image), 90), "old");
}

TEST(FatbinTest, SkipsCodeForOneArchitectureOnly) {
  const std::string image =
      MakeContainer({{.architecture = 75, .payload = "plain"},
                     {.architecture = 90, .flags = 0x100011, .payload = "90a"},
                     {.architecture = 100, .flags = 0x200011, .payload = "100f"}});
  EXPECT_EQ(*SelectPtx(BytesOf(image), 120), "plain");
  EXPECT_EQ(*SelectPtx(BytesOf(image), 90), "90a");
  EXPECT_EQ(*SelectPtx(BytesOf(image), 103), "100f");
}

TEST(FatbinTest, Decompresses) {
  EXPECT_EQ(*SelectPtx(BytesOf(MakeContainer({ZstdEntry(kText)})), 120), kText);
  EXPECT_EQ(*SelectPtx(BytesOf(MakeContainer({Lz4Entry(kText)})), 120), kText);
}

TEST(FatbinTest, EntriesAreDecodedWhateverTheirCoding) {
  const std::string image =
      MakeContainer({{.kind = 2, .payload = kText}, ZstdEntry(kText, 2), Lz4Entry(kText, 2)});
  const auto entries = ReadFatbin(BytesOf(image));
  ASSERT_EQ(entries->size(), 3U);
  for (const FatbinEntry& entry : *entries) {
    std::string storage;
    const auto content = DecodeEntry(entry, storage);
    ASSERT_TRUE(content.ok());
    EXPECT_EQ(std::memcmp(content->data(), kText.data(), kText.size()), 0);
  }
}

TEST(FatbinTest, WhatCannotComeOutIsNotMadeRoomFor) {
  TestEntry lie = Lz4Entry(kText);
  lie.uncompressed_size = std::uint64_t{1} << 29;
  EXPECT_FALSE(SelectPtx(BytesOf(MakeContainer({lie})), 120).ok());
  const std::string zeroes(std::size_t{32} << 20, ' ');
  EXPECT_EQ(*SelectPtx(BytesOf(MakeContainer({ZstdEntry(zeroes)})), 120), zeroes);
  EXPECT_EQ(*SelectPtx(BytesOf(MakeContainer({Lz4Entry(zeroes)})), 120), zeroes);
}

TEST(FatbinTest, KnowsTheDeviceRuntime) {
  const std::string names =
      "x.entry __nv_static_f4510a67_22_cuda_device_runtime_cu_3ecce0c0_f() {}";
  EXPECT_TRUE(IsDeviceRuntime(BytesOf(
      MakeContainer({{.kind = 2, .payload = "elf"}, {.architecture = 121, .payload = names}}))));
  EXPECT_FALSE(IsDeviceRuntime(BytesOf(MakeContainer({{.payload = kText}}))));
  EXPECT_FALSE(IsDeviceRuntime(BytesOf(names)));
}

TEST(FatbinTest, DropsTheTrailingNul) {
  const std::string image = MakeContainer({{.payload = std::string("ptx\0", 4)}});
  EXPECT_EQ(*SelectPtx(BytesOf(image), 120), "ptx");
}

TEST(FatbinTest, ReadsContainersOneAfterAnother) {
  const std::string image = MakeContainer({{.kind = 2, .payload = "elf"}}) +
                            MakeContainer({{.payload = "first"}, {.payload = "second"}});
  EXPECT_EQ(ReadFatbin(BytesOf(image))->size(), 3U);
}

TEST(FatbinTest, TellsThatThereIsOnlyMachineCode) {
  const auto ptx = SelectPtx(BytesOf(MakeContainer({{.kind = 2, .payload = "elf"}})), 120);
  ASSERT_FALSE(ptx.ok());
  EXPECT_EQ(ptx.failure().code, FatbinError::kNoPtx);
}

TEST(FatbinTest, TellsForWhichGpusThePtxIs) {
  const auto ptx = SelectPtx(BytesOf(MakeContainer({{.architecture = 90, .payload = "ptx"}})), 75);
  ASSERT_FALSE(ptx.ok());
  EXPECT_EQ(ptx.failure().code, FatbinError::kNoPtx);
  EXPECT_THAT(ptx.failure().message, testing::HasSubstr("7.5 or lower, only for 9.0;"));
}

TEST(FatbinTest, SelectsTheNewestMachineCodeThatIsKnown) {
  constexpr std::array<unsigned, 2> kKnown = {70, 75};
  const std::string image = MakeContainer({{.kind = 2, .architecture = 70, .payload = "old"},
                                           {.architecture = 75, .payload = "ptx"},
                                           {.kind = 2, .architecture = 75, .payload = "turing"},
                                           {.kind = 2, .architecture = 80, .payload = "ampere"}});
  EXPECT_EQ(SelectCubin(BytesOf(image), 75, kKnown)->substr(0, 6), "turing");
  EXPECT_EQ(SelectCubin(BytesOf(image), 72, kKnown)->substr(0, 3), "old");
  for (const unsigned other : {61, 80, 120}) {
    EXPECT_EQ(SelectCubin(BytesOf(image), other, kKnown).failure().code, FatbinError::kNoCode);
  }
  EXPECT_THAT(CubinArchitectures(BytesOf(image)), testing::ElementsAre(70, 75, 80));
}

TEST(FatbinTest, MachineCodeIsDecompressed) {
  TestEntry packed = ZstdEntry(kText, 2);
  constexpr std::array<unsigned, 1> kKnown = {75};
  EXPECT_EQ(*SelectCubin(BytesOf(MakeContainer({packed})), 75, kKnown), kText);
  packed.payload.resize(packed.payload.size() / 2);
  EXPECT_EQ(SelectCubin(BytesOf(MakeContainer({packed})), 75, kKnown).failure().code,
            FatbinError::kMalformed);
}

TEST(FatbinTest, MachineCodeRunsOnItsGenerationOnly) {
  EXPECT_TRUE(RunsMachineCode(80, 86));
  EXPECT_FALSE(RunsMachineCode(86, 80));
  EXPECT_FALSE(RunsMachineCode(75, 80));
}

TEST(FatbinTest, RefusesWhatIsCutShort) {
  const std::string whole = MakeContainer({ZstdEntry(kText), {.payload = "plain text"}});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto entries = ReadFatbin(BytesOf(whole.substr(0, size)));
    EXPECT_FALSE(entries.ok()) << size;
  }
}

TEST(FatbinTest, RefusesLyingHeaders) {
  std::string image = MakeContainer({{.payload = "plain text"}});
  Patch(image, 16 + 8, std::uint64_t{0xffff'ffff'ffff'fff0});  // stored size
  EXPECT_FALSE(ReadFatbin(BytesOf(image)).ok());

  image = MakeContainer({{.payload = "plain text"}});
  Patch(image, 16 + 4, std::uint32_t{8});  // header size
  EXPECT_FALSE(ReadFatbin(BytesOf(image)).ok());

  image = MakeContainer({ZstdEntry(kText)});
  Patch(image, 16 + 56, std::uint64_t{1} << 60);  // uncompressed size
  EXPECT_FALSE(SelectPtx(BytesOf(image), 120).ok());

  image = MakeContainer({Lz4Entry(kText)});
  Patch(image, 16 + 16, std::uint32_t{0x7fff'ffff});  // compressed size
  EXPECT_FALSE(SelectPtx(BytesOf(image), 120).ok());
}

TEST(FatbinTest, SizeComesFromTheHeader) {
  const std::string image = MakeContainer({{.payload = "plain text"}});
  EXPECT_EQ(FatbinSize(image.data()), image.size());
  const std::string other(16, 'x');
  EXPECT_EQ(FatbinSize(other.data()), 0U);
}

}  // namespace
}  // namespace torpor
