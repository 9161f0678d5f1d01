#include "server/repository/session_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <string>
#include <utility>

#include "memory/block_states.h"

namespace torpor::server {
namespace {

constexpr SessionFiles::Sizes kSizes = {.image = kGiB, .host_arena = 64 * kGiB, .window = kMiB};

TEST(SessionFiles, FilesAreSparseAndSealed) {
  const auto memory = SessionFiles::Create(kSizes);
  ASSERT_TRUE(memory.ok());
  const int fd = (*memory)->descriptor(wire::SharedMemory::kHostArena);
  EXPECT_EQ((*memory)->size(wire::SharedMemory::kHostArena), 64 * kGiB);
  EXPECT_EQ((*memory)->resident_bytes(wire::SharedMemory::kHostArena), 0u);
  EXPECT_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_EQ(errno, EPERM);
}

TEST(SessionFiles, DiscardedBytesReadAsZero) {
  const auto memory = SessionFiles::Create(kSizes);
  ASSERT_TRUE(memory.ok());
  const int fd = (*memory)->descriptor(wire::SharedMemory::kImage);
  const std::string text(8192, 'x');
  ASSERT_EQ(pwrite(fd, text.data(), text.size(), 0), 8192);
  EXPECT_EQ((*memory)->resident_bytes(wire::SharedMemory::kImage), 8192u);
  ASSERT_TRUE((*memory)->Discard(wire::SharedMemory::kImage, 1000, 7192).ok());
  std::string read(8192, '?');
  ASSERT_EQ(pread(fd, read.data(), read.size(), 0), 8192);
  EXPECT_EQ(read, std::string(1000, 'x') + std::string(7192, '\0'));
  EXPECT_EQ((*memory)->resident_bytes(wire::SharedMemory::kImage), 4096u);
}

TEST(SessionFiles, ClearedBytesKeepTheirPages) {
  const auto memory = SessionFiles::Create(kSizes);
  ASSERT_TRUE(memory.ok());
  const int fd = (*memory)->descriptor(wire::SharedMemory::kImage);
  const std::string text(200 * kKiB, 'x');
  ASSERT_EQ(pwrite(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  ASSERT_TRUE((*memory)->Clear(wire::SharedMemory::kImage, 1000, text.size() - 1000).ok());
  std::string read(text.size(), '?');
  ASSERT_EQ(pread(fd, read.data(), read.size(), 0), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, std::string(1000, 'x') + std::string(text.size() - 1000, '\0'));
  EXPECT_EQ((*memory)->resident_bytes(wire::SharedMemory::kImage), text.size());
}

TEST(SessionFiles, BlocksThatAreFreedAreUntouchedAgain) {
  const auto memory = SessionFiles::Create(kSizes);
  ASSERT_TRUE(memory.ok());
  const int fd = (*memory)->descriptor(wire::SharedMemory::kBlockStates);
  EXPECT_EQ((*memory)->size(wire::SharedMemory::kBlockStates),
            memory::LayoutOfBlockStates(kGiB, 64 * kKiB).total);
  memory::BlockRecord full;
  for (memory::BlockRecord::Version& version : full.versions) version = {~std::uint64_t{0}, 7, 9};
  const std::array<memory::BlockRecord, 3> records = {full, full, full};
  ASSERT_EQ(pwrite(fd, records.data(), sizeof records, 0), static_cast<ssize_t>(sizeof records));
  ASSERT_TRUE((*memory)->Discard(wire::SharedMemory::kImage, 64 * kKiB, 64 * kKiB).ok());
  ASSERT_TRUE((*memory)->Clear(wire::SharedMemory::kImage, 128 * kKiB, 64 * kKiB).ok());
  std::array<memory::BlockRecord, 3> read{};
  ASSERT_EQ(pread(fd, read.data(), sizeof read, 0), static_cast<ssize_t>(sizeof read));
  EXPECT_EQ(read[0].versions[1].home, 7u);
  for (const memory::BlockRecord& freed : {read[1], read[2]}) {
    for (const memory::BlockRecord::Version& version : freed.versions) {
      EXPECT_EQ(version.word, 0u);
      EXPECT_EQ(version.home, memory::kOwnPlace);
      EXPECT_EQ(version.epoch, 0u);
    }
  }
}

TEST(SessionFiles, BytesThatAreFreedAreZerosInTheAnnexToo) {
  const auto memory = SessionFiles::Create(kSizes);
  ASSERT_TRUE(memory.ok());
  const int states = (*memory)->descriptor(wire::SharedMemory::kBlockStates);
  const int image = (*memory)->descriptor(wire::SharedMemory::kImage);
  memory::BlockRecord moved;
  moved.versions[1] = {2, memory::AnnexHome(5), 1};
  constexpr off_t kBlock = 64 * kKiB;
  ASSERT_EQ(pwrite(states, &moved, sizeof moved, sizeof moved * 3), ssize_t{sizeof moved});
  const off_t home = static_cast<off_t>(kSizes.image) + 5 * kBlock;
  const std::string text(static_cast<std::size_t>(kBlock), 'x');
  ASSERT_EQ(pwrite(image, text.data(), text.size(), home), kBlock);
  ASSERT_TRUE((*memory)->Clear(wire::SharedMemory::kImage, 3 * kBlock + 1000, 2 * kBlock).ok());
  std::string read(text.size(), '?');
  ASSERT_EQ(pread(image, read.data(), read.size(), home), kBlock);
  EXPECT_EQ(read, std::string(1000, 'x') + std::string(text.size() - 1000, '\0'));
}

TEST(SessionFiles, ABlockThatIsFreedInPartLeavesTheTenantsFile) {
  const auto memory = SessionFiles::Create(kSizes).value();
  const auto tenant = SessionFiles::CreateTenantFile(kSizes.image).value();
  memory->SetTenantFile(tenant);
  constexpr Bytes kBlock = 64 * kKiB;
  const std::vector<std::uint8_t> text(kBlock, 'x');
  ASSERT_TRUE(tenant->Write(9 * kBlock, text).ok());
  for (const std::size_t block : {2, 3}) {
    memory->MapStates({0, 4 * kBlock})->states().Move(block, memory::TenantHome(9));
  }
  ASSERT_TRUE(memory->Clear(wire::SharedMemory::kImage, 2 * kBlock, kBlock + 1000).ok());
  auto states = memory->MapStates({0, 4 * kBlock}).value();
  EXPECT_EQ(states.states().home(2), memory::kOwnPlace) << "freed whole";
  EXPECT_EQ(states.states().home(3), memory::kOwnPlace);
  std::vector<std::uint8_t> read(kBlock);
  ASSERT_TRUE(memory->file(wire::SharedMemory::kImage).Read(3 * kBlock, read).ok());
  EXPECT_EQ(std::string(read.begin(), read.end()),
            std::string(1000, '\0') + std::string(kBlock - 1000, 'x'));
  ASSERT_TRUE(tenant->Read(9 * kBlock, read).ok());
  EXPECT_EQ(read, text) << "others' block, too";
}

std::map<wire::SharedMemory, UniqueFd> CopiesOf(const SessionFiles& files) {
  std::map<wire::SharedMemory, UniqueFd> copies;
  for (const wire::SharedMemory what : SessionFiles::kKinds) {
    copies[what] = UniqueFd(dup(files.descriptor(what)));
  }
  return copies;
}

TEST(SessionFiles, AnotherProcessGoesOnWithThem) {
  auto memory = SessionFiles::Create(kSizes).value();
  ASSERT_EQ(pwrite(memory->descriptor(wire::SharedMemory::kImage), "x", 1, 5), 1);
  memory->checkpoint().Commit(42);
  auto copies = CopiesOf(*memory);
  memory.reset();
  const auto adopted = SessionFiles::Adopt(kSizes, std::move(copies));
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ((*adopted)->checkpoint().saved_command(), 42u);
  EXPECT_EQ((*adopted)->size(wire::SharedMemory::kHostArena), kSizes.host_arena);
  char read = 0;
  EXPECT_EQ(pread((*adopted)->descriptor(wire::SharedMemory::kImage), &read, 1, 5), 1);
  EXPECT_EQ(read, 'x');
}

TEST(SessionFiles, OtherFilesAreNotAdopted) {
  const auto memory = SessionFiles::Create(kSizes).value();
  SessionFiles::Sizes larger = kSizes;
  larger.window *= 2;
  EXPECT_TRUE(absl::IsInvalidArgument(SessionFiles::Adopt(larger, CopiesOf(*memory)).status()));
  auto incomplete = CopiesOf(*memory);
  incomplete.erase(wire::SharedMemory::kBlockStates);
  EXPECT_TRUE(absl::IsInvalidArgument(SessionFiles::Adopt(kSizes, std::move(incomplete)).status()));
  auto unsealed = CopiesOf(*memory);
  unsealed[wire::SharedMemory::kWindow] = UniqueFd(memfd_create("x", MFD_ALLOW_SEALING));
  ASSERT_EQ(
      ftruncate(unsealed[wire::SharedMemory::kWindow].get(), static_cast<off_t>(kSizes.window)), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(SessionFiles::Adopt(kSizes, std::move(unsealed)).status()));
}

}  // namespace
}  // namespace torpor::server
