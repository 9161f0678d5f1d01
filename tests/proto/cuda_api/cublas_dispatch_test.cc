#include "proto/cuda_api/cublas_dispatch.h"

#include <gtest/gtest.h>

#include <cstring>

#include "proto/cuda_api/fake_cublas_handler.h"

namespace torpor::cuda_api {
namespace {

constexpr std::uint64_t kHandle = 77;
constexpr std::uint64_t kBase = 0x2000'0000'0000;
constexpr std::uint64_t kBytes = 4096;

// What the fake library saw last.
struct Seen {
  int calls = 0;
  cublasHandle_t handle = nullptr;
  int m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  float alpha = 0, beta = 0;
  const void* a = nullptr;
  void* c = nullptr;
};
Seen seen;

cublasStatus_t FakeSgemm(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m, int n,
                         int k, const float* alpha, const float* a, int lda, const float*, int ldb,
                         const float* beta, float* c, int ldc) {
  seen = {seen.calls + 1, handle, m, n, k, lda, ldb, ldc, *alpha, *beta, a, c};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t FakeSdot(cublasHandle_t, int, const float*, int, const float*, int, float* result) {
  *result = 2.5f;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t FakeSscal(cublasHandle_t, int, const float*, float*, int) {
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t FakeSgetrsBatched(cublasHandle_t handle, cublasOperation_t, int n, int,
                                 const float* const* a, int, const int* pivots, float* const* b,
                                 int, int* info, int) {
  seen = {seen.calls + 1, handle, n, 0, 0, 0, 0, 0, 0, 0, a, const_cast<float**>(b)};
  *info = pivots == nullptr ? 0 : 1;
  return CUBLAS_STATUS_SUCCESS;
}

// A session with a single handle and kBytes of memory at kBase; the GPU's addresses are the
// process's own.
class OneSession : public FakeCublasHandler {
 public:
  OneSession() {
    functions_.cublasSgemm_v2 = FakeSgemm;
    functions_.cublasSdot_v2 = FakeSdot;
    functions_.cublasSscal_v2 = FakeSscal;
    functions_.cublasSgetrsBatched = FakeSgetrsBatched;
    seen = {};
  }
  const CublasFunctions& functions() const override { return functions_; }
  void* Resolve(std::uint64_t address, std::uint64_t bytes, Access) override {
    if (address < kBase || bytes > kBytes || address - kBase > kBytes - bytes) return nullptr;
    return memory_ + (address - kBase);
  }
  cublasHandle_t BeginCall(std::uint64_t handle, cublasPointerMode_t mode) override {
    mode_ = mode;
    if (handle != kHandle) return nullptr;
    return reinterpret_cast<cublasHandle_t>(this);
  }

  alignas(16) std::uint8_t memory_[kBytes] = {};
  CublasFunctions functions_;
  cublasPointerMode_t mode_ = CUBLAS_POINTER_MODE_HOST;
};

wire::CublasScalar ByValue(float value) {
  wire::CublasScalar scalar;
  std::memcpy(scalar.value.data(), &value, sizeof value);
  return scalar;
}

wire::CublasSgemm Gemm() {
  return {.handle = kHandle,
          .transa = CUBLAS_OP_N,
          .transb = CUBLAS_OP_T,
          .m = 4,
          .n = 8,
          .k = 2,
          .alpha = ByValue(1.5f),
          .A = kBase,
          .lda = 4,
          .B = kBase + 256,
          .ldb = 8,
          .beta = ByValue(0.5f),
          .C = kBase + 1024,
          .ldc = 4};
}

template <typename Command>
CallOutcome Dispatch(OneSession& session, const Command& command) {
  std::vector<std::uint8_t> fields;
  wire::Writer{fields}(command);
  CallOutcome outcome;
  EXPECT_TRUE(DispatchCublas(session, Command::kCallId, fields, outcome).ok());
  return outcome;
}

TEST(CublasDispatchTest, ACallArrivesWithItsArguments) {
  OneSession session;
  const CallOutcome outcome = Dispatch(session, Gemm());
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message;
  EXPECT_FALSE(outcome.is_sync);
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.m, 4);
  EXPECT_EQ(seen.n, 8);
  EXPECT_EQ(seen.k, 2);
  EXPECT_EQ(seen.ldb, 8);
  EXPECT_EQ(seen.alpha, 1.5f);
  EXPECT_EQ(seen.beta, 0.5f);
  EXPECT_EQ(seen.a, session.memory_);
  EXPECT_EQ(seen.c, session.memory_ + 1024);
  EXPECT_EQ(session.mode_, CUBLAS_POINTER_MODE_HOST);
}

TEST(CublasDispatchTest, ScalarsInDeviceMemory) {
  OneSession session;
  const float values[] = {3.0f, 4.0f};
  std::memcpy(session.memory_ + 2048, values, sizeof values);
  wire::CublasSgemm gemm = Gemm();
  gemm.alpha.address = kBase + 2048;
  gemm.beta.address = kBase + 2052;
  EXPECT_TRUE(Dispatch(session, gemm).status.ok());
  EXPECT_EQ(session.mode_, CUBLAS_POINTER_MODE_DEVICE);
  EXPECT_EQ(seen.alpha, 3.0f);
  EXPECT_EQ(seen.beta, 4.0f);
}

TEST(CublasDispatchTest, WhatReachesOutsideTheSessionIsRefused) {
  OneSession session;
  wire::CublasSgemm gemm = Gemm();
  gemm.C = kBase + kBytes - 124;  // its last element is one too far
  EXPECT_EQ(Dispatch(session, gemm).status.code, CUBLAS_STATUS_INVALID_VALUE);
  gemm = Gemm();
  gemm.A = reinterpret_cast<std::uint64_t>(&session);
  EXPECT_EQ(Dispatch(session, gemm).status.code, CUBLAS_STATUS_INVALID_VALUE);
  gemm = Gemm();
  gemm.alpha.address = gemm.beta.address = 16;
  EXPECT_EQ(Dispatch(session, gemm).status.code, CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(seen.calls, 0);
}

TEST(CublasDispatchTest, InvalidArgumentsAreRefusedBeforeAnythingIsLookedUp) {
  OneSession session;
  for (const auto spoil :
       {+[](wire::CublasSgemm& g) { g.transa = 9; }, +[](wire::CublasSgemm& g) { g.m = -1; },
        +[](wire::CublasSgemm& g) { g.lda = 3; },
        +[](wire::CublasSgemm& g) { g.beta.address = kBase; }}) {
    wire::CublasSgemm gemm = Gemm();
    spoil(gemm);
    EXPECT_EQ(Dispatch(session, gemm).status.code, CUBLAS_STATUS_INVALID_VALUE);
  }
  EXPECT_EQ(seen.calls, 0);
}

TEST(CublasDispatchTest, ArraysOfAddressesAreTheSessions) {
  OneSession session;
  wire::CublasSgetrsBatched solve{.handle = kHandle,
                                  .trans = CUBLAS_OP_N,
                                  .n = 3,
                                  .nrhs = 1,
                                  .Aarray = kBase + 64,
                                  .lda = 3,
                                  .devIpiv = 0,
                                  .Barray = kBase + 128,
                                  .ldb = 3,
                                  .batchSize = 4};
  EXPECT_TRUE(Dispatch(session, solve).status.ok()) << "no pivots, which may be";
  EXPECT_EQ(seen.a, session.memory_ + 64);
  EXPECT_EQ(seen.c, session.memory_ + 128);
  solve.Barray = kBase + kBytes - 3 * sizeof(void*);
  EXPECT_EQ(Dispatch(session, solve).status.code, CUBLAS_STATUS_INVALID_VALUE);
  solve.Barray = 0;
  EXPECT_EQ(Dispatch(session, solve).status.code, CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(seen.calls, 1);
}

TEST(CublasDispatchTest, AnEmptyCallNeedsNoMemory) {
  OneSession session;
  wire::CublasSgemm gemm = Gemm();
  gemm.m = 0;
  gemm.A = gemm.C = 0;
  EXPECT_TRUE(Dispatch(session, gemm).status.ok());
  EXPECT_EQ(seen.calls, 1);
}

TEST(CublasDispatchTest, AForeignHandleIsRefused) {
  OneSession session;
  wire::CublasSgemm gemm = Gemm();
  gemm.handle = kHandle + 1;
  EXPECT_EQ(Dispatch(session, gemm).status.code, CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(seen.calls, 0);
}

TEST(CublasDispatchTest, AFunctionThatTheNodeLacksIsNotSupported) {
  OneSession session;
  const wire::CublasSscal scal{
      .handle = kHandle, .n = 1, .alpha = ByValue(1), .x = kBase, .incx = 1};
  session.functions_.cublasSscal_v2 = nullptr;
  EXPECT_EQ(Dispatch(session, scal).status.code, CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST(CublasDispatchTest, TheLibrarysOwnFailureIsPassedOn) {
  OneSession session;
  const wire::CublasSscal scal{
      .handle = kHandle, .n = 1, .alpha = ByValue(1), .x = kBase, .incx = 1};
  const CallOutcome outcome = Dispatch(session, scal);
  EXPECT_EQ(outcome.status.code, CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_NE(outcome.status.message.find("cublasSscal_v2"), std::string::npos);
}

TEST(CublasDispatchTest, AResultForTheHostIsAnswered) {
  OneSession session;
  const wire::CublasSdotToHost dot{
      .handle = kHandle, .n = 4, .x = kBase, .incx = 1, .y = kBase + 64, .incy = 1};
  const CallOutcome outcome = Dispatch(session, dot);
  EXPECT_TRUE(outcome.is_sync);
  wire::CublasSdotToHostResult result;
  wire::Reader reader(outcome.result);
  reader(result);
  ASSERT_TRUE(reader.done());
  float value = 0;
  std::memcpy(&value, result.result.data(), sizeof value);
  EXPECT_EQ(value, 2.5f);
}

TEST(CublasDispatchTest, AResultForTheDeviceIsWrittenThere) {
  OneSession session;
  const wire::CublasSdot dot{.handle = kHandle,
                             .n = 4,
                             .x = kBase,
                             .incx = 1,
                             .y = kBase + 64,
                             .incy = 1,
                             .result = kBase + 128};
  const CallOutcome outcome = Dispatch(session, dot);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_FALSE(outcome.is_sync);
  EXPECT_EQ(session.mode_, CUBLAS_POINTER_MODE_DEVICE);
  float value = 0;
  std::memcpy(&value, session.memory_ + 128, sizeof value);
  EXPECT_EQ(value, 2.5f);
}

TEST(CublasDispatchTest, TheFunctionTableIsFilledBySymbol) {
  std::vector<std::string> asked;
  const CublasFunctions functions = LoadCublasFunctions([&](const char* symbol) -> void* {
    asked.emplace_back(symbol);
    return asked.back() == "cublasSgemm_v2" ? reinterpret_cast<void*>(&FakeSgemm) : nullptr;
  });
  EXPECT_EQ(functions.cublasSgemm_v2, &FakeSgemm);
  EXPECT_EQ(functions.cublasCreate_v2, nullptr);
  EXPECT_GT(asked.size(), 90u);
}

}  // namespace
}  // namespace torpor::cuda_api
