#include "server/executor/runtime/module_ownership.h"

#include <driver_types.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

class ModuleOwnershipTest : public RuntimeTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(LoadKernel({"counter"})); }
};

TEST_F(ModuleOwnershipTest, FindsAVariableInAModuleOfTheSessionsOwn) {
  const LoadedVariable* variable = nullptr;
  ASSERT_TRUE(ownership_.Variable(1, "counter", variable).ok());
  ASSERT_NE(variable, nullptr);
  EXPECT_EQ(variable->bytes, 8u);
  EXPECT_FALSE(modules_.IsShared(1));
  EXPECT_EQ(ownership_.Variable(1, "absent", variable).code, cudaErrorInvalidSymbol);
  EXPECT_EQ(ownership_.Variable(9, "counter", variable).code, cudaErrorInvalidSymbol);
}

TEST_F(ModuleOwnershipTest, BytesOfAVariableLieInside) {
  const LoadedVariable* variable = nullptr;
  ASSERT_TRUE(ownership_.Variable(1, "counter", variable).ok());
  CUdeviceptr address = 0;
  ASSERT_TRUE(ownership_.VariableBytes(1, "counter", 4, 4, address).ok());
  EXPECT_EQ(address, variable->address + 4);
  EXPECT_EQ(ownership_.VariableBytes(1, "counter", 4, 5, address).code, cudaErrorInvalidSymbol);
  EXPECT_EQ(ownership_.VariableBytes(1, "counter", 9, 0, address).code, cudaErrorInvalidSymbol);
}

TEST_F(ModuleOwnershipTest, AModuleThatIsNotSharedCostsNothing) {
  ASSERT_TRUE(ownership_.TakeOwn(1, "a test").ok());
  s_.cuda.Break(CUDA_ERROR_UNKNOWN);
  EXPECT_TRUE(ownership_.TakeOwn(1, "a test").ok());
  s_.cuda.Break(CUDA_SUCCESS);
}

}  // namespace
}  // namespace torpor::executor
