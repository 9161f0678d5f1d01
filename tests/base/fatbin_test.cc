#include "base/fatbin.h"

#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <string>
#include <vector>

namespace torpor {
namespace {

struct TestEntry {
  std::uint16_t kind = 1;
  std::uint32_t architecture = 75;
  std::uint64_t flags = 0x11;
  std::string payload;
  std::uint64_t uncompressed_size = 0;
};

template <typename T>
void Patch(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

std::string MakeEntry(const TestEntry& entry) {
  std::string header(64, '\0');
  const std::size_t padded = (entry.payload.size() + 7) / 8 * 8;
  Patch(header, 0, entry.kind);
  Patch(header, 4, std::uint32_t{64});
  Patch(header, 8, std::uint64_t{padded});
  Patch(header, 16,
        static_cast<std::uint32_t>(entry.uncompressed_size != 0 ? entry.payload.size() : 0));
  Patch(header, 28, entry.architecture);
  Patch(header, 40, entry.flags);
  Patch(header, 56, entry.uncompressed_size);
  return header + entry.payload + std::string(padded - entry.payload.size(), '\0');
}

std::string MakeContainer(const std::vector<TestEntry>& entries) {
  std::string payload;
  for (const TestEntry& entry : entries) payload += MakeEntry(entry);
  std::string header(16, '\0');
  Patch(header, 0, kFatbinMagic);
  Patch(header, 4, std::uint16_t{1});
  Patch(header, 6, std::uint16_t{16});
  Patch(header, 8, std::uint64_t{payload.size()});
  return header + payload;
}

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TestEntry ZstdEntry(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return {.flags = 0x8011, .payload = packed, .uncompressed_size = text.size()};
}

TestEntry Lz4Entry(const std::string& text) {
  const int size = static_cast<int>(text.size());
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(size)), '\0');
  packed.resize(static_cast<std::size_t>(
      LZ4_compress_default(text.data(), packed.data(), size, static_cast<int>(packed.size()))));
  return {.flags = 0x2011, .payload = packed, .uncompressed_size = text.size()};
}

const std::string kText = std::string(".version 9.0\n") + std::string(500, ' ') + ".target sm_75";

TEST(FatbinTest, PicksTheNewestPtxTheDeviceRuns) {
  const std::string image = MakeContainer({{.architecture = 75, .payload = "old"},
                                           {.architecture = 120, .payload = "new"},
                                           {.architecture = 130, .payload = "too new"},
                                           {.kind = 2, .architecture = 120, .payload = "elf"}});
  EXPECT_EQ(*SelectPtx(Bytes(image), 120), "new");
  EXPECT_EQ(*SelectPtx(Bytes(image), 90), "old");
}

TEST(FatbinTest, SkipsCodeForOneArchitectureOnly) {
  const std::string image =
      MakeContainer({{.architecture = 75, .payload = "plain"},
                     {.architecture = 90, .flags = 0x100011, .payload = "90a"},
                     {.architecture = 100, .flags = 0x200011, .payload = "100f"}});
  EXPECT_EQ(*SelectPtx(Bytes(image), 120), "plain");
  EXPECT_EQ(*SelectPtx(Bytes(image), 90), "90a");
  EXPECT_EQ(*SelectPtx(Bytes(image), 103), "100f");
}

TEST(FatbinTest, Decompresses) {
  EXPECT_EQ(*SelectPtx(Bytes(MakeContainer({ZstdEntry(kText)})), 120), kText);
  EXPECT_EQ(*SelectPtx(Bytes(MakeContainer({Lz4Entry(kText)})), 120), kText);
}

TEST(FatbinTest, KnowsTheDeviceRuntime) {
  const std::string names =
      "x.entry __nv_static_f4510a67_22_cuda_device_runtime_cu_3ecce0c0_f() {}";
  EXPECT_TRUE(IsDeviceRuntime(Bytes(
      MakeContainer({{.kind = 2, .payload = "elf"}, {.architecture = 121, .payload = names}}))));
  EXPECT_FALSE(IsDeviceRuntime(Bytes(MakeContainer({{.payload = kText}}))));
  EXPECT_FALSE(IsDeviceRuntime(Bytes(names)));
}

TEST(FatbinTest, DropsTheTrailingNul) {
  const std::string image = MakeContainer({{.payload = std::string("ptx\0", 4)}});
  EXPECT_EQ(*SelectPtx(Bytes(image), 120), "ptx");
}

TEST(FatbinTest, ReadsContainersOneAfterAnother) {
  const std::string image = MakeContainer({{.kind = 2, .payload = "elf"}}) +
                            MakeContainer({{.payload = "first"}, {.payload = "second"}});
  EXPECT_EQ(ReadFatbin(Bytes(image))->size(), 3U);
}

TEST(FatbinTest, TellsThatThereIsOnlyMachineCode) {
  const auto ptx = SelectPtx(Bytes(MakeContainer({{.kind = 2, .payload = "elf"}})), 120);
  ASSERT_FALSE(ptx.ok());
  EXPECT_EQ(ptx.failure().code, FatbinError::kNoPtx);
}

TEST(FatbinTest, RefusesWhatIsCutShort) {
  const std::string whole = MakeContainer({ZstdEntry(kText), {.payload = "plain text"}});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto entries = ReadFatbin(Bytes(whole.substr(0, size)));
    EXPECT_FALSE(entries.ok()) << size;
  }
}

TEST(FatbinTest, RefusesLyingHeaders) {
  std::string image = MakeContainer({{.payload = "plain text"}});
  Patch(image, 16 + 8, std::uint64_t{0xffff'ffff'ffff'fff0});  // stored size
  EXPECT_FALSE(ReadFatbin(Bytes(image)).ok());

  image = MakeContainer({{.payload = "plain text"}});
  Patch(image, 16 + 4, std::uint32_t{8});  // header size
  EXPECT_FALSE(ReadFatbin(Bytes(image)).ok());

  image = MakeContainer({ZstdEntry(kText)});
  Patch(image, 16 + 56, std::uint64_t{1} << 60);  // uncompressed size
  EXPECT_FALSE(SelectPtx(Bytes(image), 120).ok());

  image = MakeContainer({Lz4Entry(kText)});
  Patch(image, 16 + 16, std::uint32_t{0x7fff'ffff});  // compressed size
  EXPECT_FALSE(SelectPtx(Bytes(image), 120).ok());
}

TEST(FatbinTest, SizeComesFromTheHeader) {
  const std::string image = MakeContainer({{.payload = "plain text"}});
  EXPECT_EQ(FatbinSize(image.data()), image.size());
  const std::string other(16, 'x');
  EXPECT_EQ(FatbinSize(other.data()), 0U);
}

}  // namespace
}  // namespace torpor
