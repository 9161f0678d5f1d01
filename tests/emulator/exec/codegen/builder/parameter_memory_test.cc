#include "emulator/exec/codegen/builder/parameter_memory.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

class ParameterMemoryTest : public BuilderTest {
 protected:
  void Start() {
    Open("{\n.param .b64 p;\nst.param.b64 [p], %rd1;\n}\nret;");
    parameters_ = std::make_unique<ParameterMemory>(code(), *source_);
    place_ = parameters_->Of(instruction(0).operands[0].symbol);
  }

  std::unique_ptr<ParameterMemory> parameters_;
  llvm::Value* place_ = nullptr;
};

TEST_F(ParameterMemoryTest, ReturnsWhatWasStored) {
  Start();
  llvm::Value* value = code().Spread(code()->getInt64(0x1122334455667788), 1);
  parameters_->Store(place_, 0, value, code().AllLanes());
  StoreResult(0, parameters_->Load(place_, 0, 4));
  StoreResult(1, parameters_->Load(place_, 4, 4));
  StoreResult(2, parameters_->Load(place_, 6, 1));
  StoreResult(3, code()->CreateLShr(parameters_->Load(place_, 0, 8), 32));
  Close();
  Run();
  EXPECT_EQ(results_[0][2], 0x5566778aU);
  EXPECT_EQ(results_[1][2], 0x11223344U);
  EXPECT_EQ(results_[2][2], 0x22U);
  EXPECT_EQ(results_[3][2], 0x11223344U);
}

TEST_F(ParameterMemoryTest, OtherLanesKeepTheirs) {
  Start();
  parameters_->Store(place_, 0, code().Spread(code()->getInt32(1)), code().AllLanes());
  parameters_->Store(place_, 2, code().Spread(code()->getInt16(7)), Mask(0x4));
  StoreResult(0, parameters_->Load(place_, 0, 4));
  Close();
  Run();
  EXPECT_EQ(results_[0][1], 1U);
  EXPECT_EQ(results_[0][2], 0x70001U);
}

TEST_F(ParameterMemoryTest, AVariableHasOnePlace) {
  Start();
  EXPECT_EQ(parameters_->Of(instruction(0).operands[0].symbol), place_);
}

}  // namespace
}  // namespace torpor::emulator
