#include "emulator/exec/codegen/builder/lane_builder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/emulator/exec/codegen/builder/generated_function.h"

namespace torpor::emulator {
namespace {

using llvm::Value;

// The function's argument is `memory_`.
class LaneBuilderTest : public ::testing::Test {
 protected:
  Value* memory() { return generated_.function().getArg(0); }
  void Store(LaneBuilder& code, Value* value, unsigned first = 0) {
    code->CreateAlignedStore(value,
                             code->CreateConstInBoundsGEP1_64(code->getInt32Ty(), memory(), first),
                             llvm::Align(4));
  }
  void Run(LaneBuilder& code) {
    code->CreateRet(code->getInt32(7));
    EXPECT_EQ(generated_.Run(memory_.data()), 7U);
  }

  GeneratedFunction generated_;
  std::array<std::uint32_t, 128> memory_ = {};
};

TEST_F(LaneBuilderTest, SpreadStepsAlongRowsAndColumns) {
  LaneBuilder code(generated_.function(), 8);
  Store(code, code.Spread(code->getInt32(100), 3, 1000));
  Run(code);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    EXPECT_EQ(memory_[lane], 100 + lane % 8 * 3 + lane / 8 * 1000) << lane;
  }
}

TEST_F(LaneBuilderTest, ResizesBySign) {
  LaneBuilder code(generated_.function(), 32);
  Value* byte = code.Resize(code.Spread(code->getInt32(0x1ff)), 8, false);
  Store(code, code.Resize(byte, 32, true));
  Store(code, code.Resize(byte, 32, false), 32);
  Run(code);
  EXPECT_EQ(memory_[5], 0xffffffffU);
  EXPECT_EQ(memory_[37], 0xffU);
}

TEST_F(LaneBuilderTest, CastsBetweenBitsAndNumbers) {
  LaneBuilder code(generated_.function(), 32);
  Value* number = code.ToFloat(code->getInt32(0x40400000));  // 3.0
  Store(code, code.Spread(code.ToInt(code->CreateFAdd(number, number))));
  Run(code);
  EXPECT_EQ(memory_[0], 0x40c00000U);
}

TEST_F(LaneBuilderTest, VisitsTheActiveLanesInOrder) {
  LaneBuilder code(generated_.function(), 32);
  llvm::AllocaInst* count = code.AllocateCounter();
  code.ForEachLane(code.BitsToMask(code->getInt32(0x80000401)), [&](Value* lane) {
    Value* old = code->CreateLoad(code->getInt32Ty(), count);
    code->CreateStore(lane, code.LaneSlot(memory(), code->getInt32Ty(), old));
    code->CreateStore(code->CreateAdd(old, code->getInt32(1)), count);
  });
  Store(code, code->CreateLoad(code->getInt32Ty(), count), 64);
  Run(code);
  EXPECT_EQ(memory_[0], 0U);
  EXPECT_EQ(memory_[1], 10U);
  EXPECT_EQ(memory_[2], 31U);
  EXPECT_EQ(memory_[64], 3U);
}

TEST_F(LaneBuilderTest, VisitsNoLaneOfAnEmptyMask) {
  LaneBuilder code(generated_.function(), 32);
  code.ForEachLane(code.BitsToMask(code->CreateLoad(code->getInt32Ty(), memory())),
                   [&](Value* lane) { Store(code, code->CreateAdd(lane, code->getInt32(1)), 1); });
  Run(code);
  EXPECT_EQ(memory_[1], 0U);
}

TEST_F(LaneBuilderTest, SpillsAndReadsBackSingleLanes) {
  LaneBuilder code(generated_.function(), 32);
  Value* spilled = code.Spill(code.Spread(code->getInt32(10), 1));
  Value* slot = code.LaneSlot(spilled, code->getInt32Ty(), code->getInt32(4));
  code->CreateStore(code->getInt32(99), slot);
  Store(code, code.Unspill(spilled, code->getInt32Ty()));
  Run(code);
  EXPECT_EQ(memory_[3], 13U);
  EXPECT_EQ(memory_[4], 99U);
}

TEST_F(LaneBuilderTest, RepeatsConcatenatesAndPartsVectors) {
  LaneBuilder code(generated_.function(), 16);
  Value* lanes = code.Spread(code->getInt32(0), 1, 16);
  std::vector<Value*> rows = {code.RowPart(lanes, 1), code.RowPart(lanes, 0)};
  Store(code, code.Concatenate(rows));
  Store(code, code.Repeat(lanes, 2), 32);
  Run(code);
  EXPECT_EQ(memory_[0], 16U);
  EXPECT_EQ(memory_[31], 15U);
  EXPECT_EQ(memory_[32 + 9], 4U);
}

TEST_F(LaneBuilderTest, KnowsMasks) {
  LaneBuilder code(generated_.function(), 32);
  EXPECT_TRUE(LaneBuilder::IsAllOnes(code.AllLanes()));
  Value* mask = code.BitsToMask(code->CreateLoad(code->getInt32Ty(), memory()));
  EXPECT_FALSE(LaneBuilder::IsAllOnes(mask));
  Store(code, code->CreateZExt(code.AnyLane(mask), code->getInt32Ty()), 1);
  Store(code, code.MaskBits(code->CreateNot(mask)), 2);
  memory_[0] = 0x10;
  Run(code);
  EXPECT_EQ(memory_[1], 1U);
  EXPECT_EQ(memory_[2], ~0x10U);
}

TEST_F(LaneBuilderTest, KeepsVectorsSideBySide) {
  LaneBuilder code(generated_.function(), 32);
  Value* array = code.VectorArray(32, 2);
  code->CreateStore(code.Spread(code->getInt32(1)), code.VectorAt(array, 32, 0));
  code->CreateStore(code.Spread(code->getInt32(2)), code.VectorAt(array, 32, 1));
  Store(code, code->CreateLoad(Lanes(code->getInt32Ty()), code.VectorAt(array, 32, 1)));
  Run(code);
  EXPECT_EQ(memory_[31], 2U);
}

}  // namespace
}  // namespace torpor::emulator
