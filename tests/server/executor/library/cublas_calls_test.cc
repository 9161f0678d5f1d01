#include "server/executor/library/cublas_calls.h"

#include <gtest/gtest.h>

#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kHandle = 7;
constexpr Bytes kBlock = FakeCuda::kChunk;  // the session has two

// The workspace that the library uses; null: its own.
void* workspace = nullptr;

cuda_api::CublasFunctions FakeLibrary() {
  cuda_api::CublasFunctions functions{};
  functions.cublasCreate_v2 = [](cublasHandle_t* handle) {
    return *handle = reinterpret_cast<cublasHandle_t>(&workspace), CUBLAS_STATUS_SUCCESS;
  };
  functions.cublasDestroy_v2 = [](cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; };
  functions.cublasSetStream_v2 = [](cublasHandle_t, cudaStream_t) {
    return workspace = nullptr, CUBLAS_STATUS_SUCCESS;
  };
  functions.cublasSetWorkspace_v2 = [](cublasHandle_t, void* address, std::size_t) {
    return workspace = address, CUBLAS_STATUS_SUCCESS;
  };
  functions.cublasSetPointerMode_v2 = [](cublasHandle_t, cublasPointerMode_t) {
    return CUBLAS_STATUS_SUCCESS;
  };
  return functions;
}

class CublasCallsTest : public testing::Test {
 protected:
  explicit CublasCallsTest(AddressMode mode = AddressMode::kMap) : s_({}, mode) {}

  void SetUp() override { ASSERT_TRUE(calls_.CublasCreate({.handle = kHandle}).ok()); }

  bool SetWorkspace(std::uint64_t address) {
    return calls_.CublasSetWorkspace({.handle = kHandle, .address = address, .bytes = kBlock}).ok();
  }
  bool Call() { return calls_.BeginCall(kHandle, CUBLAS_POINTER_MODE_HOST) != nullptr; }
  void FreeSecondBlock() {
    memory::ExtentSet live;
    live.Add({0, kBlock});
    ASSERT_TRUE(s_.memory->image().Shrink({kBlock, 2 * kBlock}, live).ok());
  }

  FakeSession s_;
  CublasPool pool_{FakeLibrary()};
  StreamSet streams_{*s_.device};
  CublasCalls calls_{pool_, streams_, *s_.memory};
  const std::uint64_t second_block_ = s_.identity.device_base + kBlock;
};

TEST_F(CublasCallsTest, AWorkspaceThatIsFreedGivesWayToTheLibrarysOwn) {
  ASSERT_TRUE(SetWorkspace(second_block_));
  ASSERT_TRUE(Call());
  EXPECT_EQ(workspace, reinterpret_cast<void*>(second_block_));
  FreeSecondBlock();
  EXPECT_TRUE(Call());
  EXPECT_EQ(workspace, nullptr);
}

TEST_F(CublasCallsTest, ASettingMayOutliveItsWorkspace) {
  FreeSecondBlock();
  EXPECT_TRUE(SetWorkspace(second_block_)) << "the journal says so on another GPU";
  EXPECT_TRUE(Call());
  EXPECT_EQ(workspace, nullptr);
  EXPECT_TRUE(SetWorkspace(~std::uint64_t{0}));
  EXPECT_TRUE(Call());
  EXPECT_EQ(workspace, nullptr);
}

class TranslatedCublasCallsTest : public CublasCallsTest {
 protected:
  TranslatedCublasCallsTest() : CublasCallsTest(AddressMode::kTranslate) {}
};

TEST_F(TranslatedCublasCallsTest, AWorkspaceIsWhereTheGpuKnowsIt) {
  ASSERT_TRUE(SetWorkspace(second_block_));
  ASSERT_TRUE(Call());
  EXPECT_EQ(workspace, reinterpret_cast<void*>(s_.memory->Resolve(second_block_, 1)));
  EXPECT_NE(workspace, reinterpret_cast<void*>(second_block_));
}

TEST_F(TranslatedCublasCallsTest, ArraysOfAddressesAreRefused) {
  wire::CublasSgemmBatched command;
  command.handle = kHandle;
  command.m = command.n = command.k = command.lda = command.ldb = command.ldc = 1;
  command.Aarray = command.Barray = command.Carray = second_block_;
  command.batchCount = 1;
  cuda_api::CallOutcome outcome;
  ASSERT_TRUE(cuda_api::DispatchCublas(calls_, wire::CublasSgemmBatched::kCallId,
                                       wire::Encoded(command), outcome)
                  .ok());
  EXPECT_EQ(outcome.status.code, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_NE(outcome.status.message.find("address_mode: map"), std::string::npos);
}

}  // namespace
}  // namespace torpor::executor
