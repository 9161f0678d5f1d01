#include "emulator/exec/codegen/builder/memory_access.h"

#include <numeric>

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

class MemoryAccessTest : public BuilderTest {
 protected:
  MemoryAccessTest() {
    std::iota(memory_.begin(), memory_.end(), 1000U);
    // Everything may be accessed.
    context_.window_bytes = ~std::uint64_t{0};
  }

  void Start(const ptx::BlockShape& shape = kWholeWarps) {
    Open("ret;", "", shape);
    check_ = std::make_unique<AccessCheck>(code(), parts_->context, parts_->addresses);
    access_ = std::make_unique<MemoryAccess>(code(), parts_->addresses, *check_, traits_);
  }
  LaneAddress At(const ptx::LaneShape& shape, std::size_t first = 0) {
    LaneAddress address;
    address.space = ptx::Space::kGlobal;
    address.shape = shape;
    address.value = code()->getInt64(reinterpret_cast<std::uint64_t>(&memory_[first]));
    return address;
  }
  // Lane l accesses memory_[3 * l].
  LaneAddress Scattered() {
    LaneAddress address = At(ptx::LaneShape::Varying());
    address.value = code().Spread(address.value, 12);
    return address;
  }
  Access Words(unsigned count = 1) { return {code()->getInt32Ty(), 4, count}; }
  void Finish() {
    Close();
    Run();
  }

  alignas(64) std::array<std::uint32_t, 256> memory_ = {};
  CodeTraits traits_;
  std::unique_ptr<AccessCheck> check_;
  std::unique_ptr<MemoryAccess> access_;
};

TEST_F(MemoryAccessTest, LoadsOneValueForAllLanes) {
  Start();
  const auto values = access_->Load(At(ptx::LaneShape::Uniform(), 9), Words(), code().AllLanes());
  EXPECT_FALSE(IsVector(values[0]));
  StoreResult(0, values[0]);
  Finish();
  EXPECT_EQ(results_[0][0], 1009U);
}

TEST_F(MemoryAccessTest, LoadsContiguousElements) {
  Start();
  const LaneAddress address = At(ptx::LaneShape::Linear(8, 0, 0));
  EXPECT_TRUE(access_->IsContiguous(address, Words(2)));
  const auto values = access_->Load(address, Words(2), code().AllLanes());
  StoreResult(0, values[0]);
  StoreResult(1, values[1]);
  Finish();
  EXPECT_EQ(results_[0][10], 1020U);
  EXPECT_EQ(results_[1][10], 1021U);
}

TEST_F(MemoryAccessTest, GathersOtherPatterns) {
  Start();
  StoreResult(0, access_->Load(Scattered(), Words(), code().AllLanes())[0]);
  Finish();
  EXPECT_EQ(results_[0][7], 1021U);
  EXPECT_EQ(traits_.scatters, 0U);
}

TEST_F(MemoryAccessTest, GathersBytesOutOfTheirWords) {
  Start();
  LaneAddress address = Scattered();
  address.value = code()->CreateAdd(address.value, Like(address.value, 1));
  StoreResult(0, access_->Load(address, {code()->getInt8Ty(), 1, 1}, code().AllLanes())[0]);
  memory_[3] = 0xaabbccdd;
  Finish();
  EXPECT_EQ(results_[0][1], 0xccU);
}

TEST_F(MemoryAccessTest, StoresOnlyActiveLanes) {
  Start();
  access_->Store(At(ptx::LaneShape::Linear(4, 0, 0)), Words(),
                 {code().Spread(code()->getInt32(0), 1)}, Mask(0x6));
  Finish();
  EXPECT_EQ(memory_[0], 1000U);
  EXPECT_EQ(memory_[1], 1U);
  EXPECT_EQ(memory_[2], 2U);
  EXPECT_EQ(memory_[3], 1003U);
}

TEST_F(MemoryAccessTest, ScattersAndSaysSo) {
  Start();
  access_->Store(Scattered(), Words(), {code().Spread(code()->getInt32(0), 1)}, code().AllLanes());
  Finish();
  EXPECT_EQ(memory_[std::size_t{3} * 31], 31U);
  EXPECT_EQ(memory_[1], 1001U);
  EXPECT_NE(traits_.scatters, 0U);
}

TEST_F(MemoryAccessTest, TheLastActiveLaneWinsOnePlace) {
  Start();
  access_->Store(At(ptx::LaneShape::Uniform()), Words(), {code().Spread(code()->getInt32(0), 1)},
                 Mask(0x0000ff00));
  Finish();
  EXPECT_EQ(memory_[0], 15U);
}

TEST_F(MemoryAccessTest, LoadsAndStoresRows) {
  Start({8, false, true});
  const ptx::LaneShape rows = ptx::LaneShape::Linear(4, 64, 0);  // 8 of every 16 words
  const auto values = access_->Load(At(rows), Words(), code().AllLanes());
  StoreResult(0, values[0]);
  access_->Store(At(rows, 128), Words(), {values[0]}, code().AllLanes());
  Finish();
  EXPECT_EQ(results_[0][9], 1017U);
  EXPECT_EQ(memory_[128 + 17], 1017U);
  EXPECT_EQ(memory_[128 + 8], 1136U);
}

TEST_F(MemoryAccessTest, WholeAccessesMoveAllElementsOfALane) {
  Start();
  const LaneAddress from = At(ptx::LaneShape::Linear(16, 0, 0));
  const auto values = access_->LoadWhole(from, Words(4), Mask(0x3));
  access_->StoreWhole(At(ptx::LaneShape::Linear(16, 0, 0), 128), Words(4), values, Mask(0x2));
  Finish();
  EXPECT_EQ(memory_[128], 1128U);
  EXPECT_EQ(memory_[128 + 4], 1004U);
  EXPECT_EQ(memory_[128 + 7], 1007U);
}

}  // namespace
}  // namespace torpor::emulator
