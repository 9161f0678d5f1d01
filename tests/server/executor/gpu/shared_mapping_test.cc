#include "server/executor/gpu/shared_mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace torpor::executor {
namespace {

constexpr Bytes kSize = 64 * kGiB;  // of files and window: nothing is mapped whole
constexpr Bytes kUnit = 64 * kMiB;

UniqueFd NewFile(Bytes bytes) {
  UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  return file;
}

// Whether the kernel would let anybody write there: into a pipe reads from there.
bool IsReadable(const void* address) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const bool is_readable = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return is_readable;
}

class MappedInParts : public testing::Test {
 protected:
  const std::unique_ptr<AddressWindow> window_ = *AddressWindow::Reserve(kSize);
};

TEST_F(MappedInParts, HasWholeUnitsAsTheyAreNeeded) {
  const UniqueFd file = NewFile(kSize);
  const SharedMapping mapping =
      *SharedMapping::InParts(UniqueFd(dup(file.get())), *window_, {0, kSize}, kUnit);
  const Bytes at = 40 * kGiB + 5;
  EXPECT_FALSE(mapping.Holds(at, 1));
  EXPECT_FALSE(IsReadable(mapping.data() + at));
  ASSERT_TRUE(mapping.Ensure({at, at + kUnit}).ok());
  EXPECT_TRUE(mapping.Holds(40 * kGiB, 2 * kUnit));
  EXPECT_FALSE(mapping.Holds(40 * kGiB, 2 * kUnit + 1));
  EXPECT_FALSE(mapping.Holds(at, ~std::uint64_t{0}));
  std::memcpy(mapping.data() + at, "here", 4);
  char found[4];
  ASSERT_EQ(pread(file.get(), found, 4, static_cast<off_t>(at)), 4);
  EXPECT_EQ(std::memcmp(found, "here", 4), 0);
  EXPECT_FALSE(mapping.Ensure({kSize - 1, kSize + 1}).ok());
}

TEST_F(MappedInParts, LeavesTheWindowToOthersAtTheEnd) {
  auto mapping = std::make_unique<SharedMapping>(
      *SharedMapping::InParts(NewFile(kSize), *window_, {0, kSize}, kUnit));
  ASSERT_TRUE(mapping->Ensure({0, 1}).ok());
  window_->data()[0] = 1;
  mapping.reset();
  EXPECT_FALSE(IsReadable(window_->data()));
  const SharedMapping next = *SharedMapping::InParts(NewFile(kSize), *window_, {0, kSize}, kUnit);
  ASSERT_TRUE(next.Ensure({0, 1}).ok());
  EXPECT_EQ(window_->data()[0], 0) << "another file's";
}

TEST_F(MappedInParts, AFileLiesAtItsPlace) {
  const UniqueFd file = NewFile(kGiB);
  const SharedMapping mapping =
      *SharedMapping::InParts(UniqueFd(dup(file.get())), *window_, {8 * kGiB, 9 * kGiB}, kUnit);
  EXPECT_EQ(mapping.data(), window_->data() + 8 * kGiB);
  ASSERT_TRUE(mapping.Ensure({kUnit, kUnit + 1}).ok());
  mapping.data()[kUnit] = 7;
  char found = 0;
  ASSERT_EQ(pread(file.get(), &found, 1, static_cast<off_t>(kUnit)), 1);
  EXPECT_EQ(found, 7);
  EXPECT_FALSE(SharedMapping::InParts(NewFile(kGiB), *window_, {0, 2 * kGiB}, kUnit).ok())
      << "the file is too short";
}

TEST_F(MappedInParts, KnowsTheFilesPages) {
  const UniqueFd file = NewFile(kSize);
  const SharedMapping mapping =
      *SharedMapping::InParts(UniqueFd(dup(file.get())), *window_, {0, kSize}, kUnit);
  EXPECT_TRUE(mapping.WithPages().empty());
  EXPECT_EQ(mapping.PageBytes(), Bytes{0});
  // Whoever writes, and whether mapped here or not.
  constexpr Bytes kPage = 4096;
  for (const Bytes at : {Bytes{0}, 30 * kGiB + 5, kSize - 1}) {
    ASSERT_EQ(pwrite(file.get(), "x", 1, static_cast<off_t>(at)), 1);
  }
  EXPECT_EQ(mapping.WithPages(),
            (std::vector<memory::Extent>{
                {0, kPage}, {30 * kGiB, 30 * kGiB + kPage}, {kSize - kPage, kSize}}));
  EXPECT_EQ(mapping.PageBytes(), 3 * kPage);
  EXPECT_FALSE(mapping.Holds(0, 1));
}

TEST(AddressWindow, ForHugePagesBeginsAtOne) {
  const auto window = *AddressWindow::ReserveForHugePages(kSize);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(window->data()) % (2 * kMiB), 0u);
  const SharedMapping mapping = *SharedMapping::InParts(NewFile(kSize), *window, {0, kSize}, kUnit);
  ASSERT_TRUE(mapping.Ensure({kSize - 1, kSize}).ok());
  mapping.data()[kSize - 1] = 1;
}

TEST(AddressWindow, TakesNobodysAddresses) {
  const auto window = *AddressWindow::Reserve(kGiB);
  const auto address = reinterpret_cast<std::uint64_t>(window->data());
  EXPECT_TRUE(absl::IsAlreadyExists(AddressWindow::Reserve(kGiB, address).status()));
}

}  // namespace
}  // namespace torpor::executor
