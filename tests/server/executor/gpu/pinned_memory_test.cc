#include "server/executor/gpu/pinned_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "server/executor/gpu/shared_mapping.h"
#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

// Registering does this first: the driver's functions are plain C.
std::function<void()>* before_registering = nullptr;
decltype(&::cuMemHostRegister) really_register = nullptr;

CUresult CUDAAPI RegisterLate(void* begin, std::size_t bytes, unsigned flags) {
  (*before_registering)();
  return really_register(begin, bytes, flags);
}

class PinnedMemoryTest : public testing::Test {
 protected:
  static constexpr Bytes kPage = 4 * kKiB;

  PinnedMemoryTest() : memory_(16 * kPage) {
    before_registering = &before_;
    CudaDriver driver = cuda_.driver();
    really_register = driver.MemHostRegister;
    driver.MemHostRegister = RegisterLate;
    device_ = *Device::Open(driver, 0);
    pinned_ = std::make_unique<PinnedMemory>(*device_, memory_.data(), memory_.size(), 4 * kPage);
  }
  ~PinnedMemoryTest() override { pinned_.reset(); }

  std::function<void()> before_ = [] {};
  FakeCuda cuda_;
  std::vector<std::uint8_t> memory_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PinnedMemory> pinned_;
};

TEST_F(PinnedMemoryTest, PiecesAreWholeUnits) {
  ASSERT_TRUE(pinned_->Ensure({kPage, 5 * kPage}).ok());
  EXPECT_TRUE(pinned_->Contains({0, 8 * kPage}));
  EXPECT_FALSE(pinned_->Contains({0, 9 * kPage}));
  ASSERT_TRUE(pinned_->Ensure({7 * kPage, 9 * kPage}).ok());
  EXPECT_EQ(cuda_.registered_pieces(), 2u);
  EXPECT_EQ(pinned_->Split({0, 12 * kPage}).size(), 2u);
  ASSERT_TRUE(pinned_->UnregisterOverlapping({9 * kPage, 10 * kPage}).ok());
  EXPECT_EQ(cuda_.registered_pieces(), 1u);
}

TEST_F(PinnedMemoryTest, OnePieceIsRegisteredAtATime) {
  ASSERT_TRUE(pinned_->Ensure({4 * kPage, 5 * kPage}).ok());
  EXPECT_TRUE(*pinned_->RegisterNext({0, 16 * kPage}));
  EXPECT_TRUE(pinned_->Contains({0, 4 * kPage}));
  EXPECT_FALSE(pinned_->Contains({8 * kPage, 9 * kPage}));
  EXPECT_TRUE(*pinned_->RegisterNext({0, 16 * kPage}));
  EXPECT_FALSE(*pinned_->RegisterNext({0, 16 * kPage})) << "nothing is left";
  EXPECT_EQ(cuda_.registered_pieces(), 3u);
}

TEST_F(PinnedMemoryTest, NothingIsRegisteredTwice) {
  ASSERT_TRUE(pinned_->Register({0, kPage}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(pinned_->Register({0, 2 * kPage})));
  EXPECT_TRUE(absl::IsNotFound(pinned_->Unregister({0, 2 * kPage})));
  EXPECT_TRUE(absl::IsInvalidArgument(pinned_->Register({16 * kPage, 17 * kPage})));
  EXPECT_TRUE(pinned_->Unregister({0, kPage}).ok());
  EXPECT_TRUE(pinned_->Register({0, 2 * kPage}).ok());
}

// Else each command that names host memory would wait while another thread registers a gigabyte.
TEST_F(PinnedMemoryTest, QuestionsDoNotWaitForTheDriver) {
  ASSERT_TRUE(pinned_->Register({0, kPage}).ok());
  int asked = 0;
  before_ = [&] {
    EXPECT_TRUE(pinned_->Contains({0, kPage}));
    EXPECT_FALSE(pinned_->Contains({4 * kPage, 5 * kPage})) << "not before it is registered";
    EXPECT_EQ(pinned_->Split({0, 2 * kPage}).size(), 2u);
    ++asked;
  };
  ASSERT_TRUE(pinned_->Register({4 * kPage, 8 * kPage}).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(pinned_->Contains({4 * kPage, 5 * kPage}));
}

TEST_F(PinnedMemoryTest, WhoNeedsWhatIsBeingRegisteredWaits) {
  std::promise<void> registering;
  std::promise<void> go_on;
  before_ = [&] {
    registering.set_value();
    go_on.get_future().wait();
  };
  std::thread first([&] { EXPECT_TRUE(pinned_->Ensure({0, kPage}).ok()); });
  registering.get_future().wait();
  EXPECT_TRUE(absl::IsAlreadyExists(pinned_->Register({0, kPage})));
  std::thread second([&] {
    EXPECT_TRUE(pinned_->Ensure({kPage, 2 * kPage}).ok());
    EXPECT_TRUE(pinned_->Contains({0, 4 * kPage}));
  });
  go_on.set_value();
  first.join();
  second.join();
  EXPECT_EQ(cuda_.registered_pieces(), 1u);
}

// A memory file, mapped.
class PinnedFile : public testing::Test {
 protected:
  static constexpr Bytes kUnit = 2 * kMiB;
  static constexpr Bytes kSlot = PinnedMemory::kSlotBytes;

  PinnedFile() : file_(memfd_create("file", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_.get(), 4 * kSlot), 0);
    mapping_ = *SharedMapping::Map(file_, 4 * kSlot);
    pinned_ = std::make_unique<PinnedMemory>(*device_, mapping_.data(), mapping_.bytes(), kUnit);
  }
  Bytes FileBytes() const {
    struct stat status = {};
    fstat(file_.get(), &status);
    return static_cast<Bytes>(status.st_blocks) * 512;
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_ = *Device::Open(cuda_.driver(), 0);
  UniqueFd file_;
  SharedMapping mapping_;
  std::unique_ptr<PinnedMemory> pinned_;
};

TEST_F(PinnedFile, APieceLiesInOneSlot) {
  ASSERT_TRUE(pinned_->Ensure({kSlot - kUnit, kSlot + 1}).ok());
  EXPECT_EQ(cuda_.registered_pieces(), 2u);
  EXPECT_TRUE(pinned_->Contains({kSlot - kUnit, kSlot}));
  EXPECT_TRUE(pinned_->Contains({kSlot, kSlot + kUnit}));
  ASSERT_TRUE(pinned_->UnregisterOverlapping({kSlot, kSlot + 1}).ok());
  EXPECT_TRUE(pinned_->Contains({kSlot - kUnit, kSlot})) << "another slot's";
}

// A driver makes missing pages under its own locks; the fake makes no pages.
TEST_F(PinnedFile, PagesAreThereBeforeTheDriverIsAsked) {
  ASSERT_TRUE(pinned_->Ensure({0, 1}).ok());
  EXPECT_EQ(FileBytes(), kUnit);
}

TEST_F(PinnedMemoryTest, AFailureLeavesNothing) {
  before_ = [&] { cuda_.Break(CUDA_ERROR_OUT_OF_MEMORY); };
  EXPECT_FALSE(pinned_->Ensure({0, kPage}).ok());
  EXPECT_FALSE(pinned_->Contains({0, kPage}));
  before_ = [] {};
  cuda_.Break(CUDA_SUCCESS);
  EXPECT_TRUE(pinned_->Ensure({0, kPage}).ok()) << "it may be tried again";
}

}  // namespace
}  // namespace torpor::executor
