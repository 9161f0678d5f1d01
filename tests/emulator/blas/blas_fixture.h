#pragma once

#include <cublas_v2.h>
#include <cuda.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/emulator/library/stream_test.h"

#define ASSERT_BLAS(call) ASSERT_EQ((call), CUBLAS_STATUS_SUCCESS)

namespace torpor::emulator {

// A device array of T.
template <typename T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cuMemAlloc(&address_, count_ * kElementBytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address_, values.data(), count_ * kElementBytes), CUDA_SUCCESS);
  }
  ~Array() { cuMemFree(address_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* get() const { return reinterpret_cast<T*>(address_); }
  // Waits for the stream, as a program must.
  std::vector<T> Download(CUstream stream) const {
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    std::vector<T> values(count_);
    EXPECT_EQ(cuMemcpyDtoH(values.data(), address_, count_ * kElementBytes), CUDA_SUCCESS);
    return values;
  }

 private:
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may well be a pointer
  static constexpr std::size_t kElementBytes = sizeof(T);

  const std::size_t count_;
  CUdeviceptr address_ = 0;
};

class BlasTest : public StreamTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StreamTest::SetUp());
    ASSERT_BLAS(cublasCreate(&handle_));
    ASSERT_BLAS(cublasSetStream(handle_, stream_));
  }
  void TearDown() override {
    cublasDestroy(handle_);
    StreamTest::TearDown();
  }

  cublasHandle_t handle_ = nullptr;
};

}  // namespace torpor::emulator
