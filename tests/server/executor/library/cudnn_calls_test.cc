#include "server/executor/library/cudnn_calls.h"

#include <gtest/gtest.h>

#include <cstring>

#include "nvidia/cudnn/shapes.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

// What the fake library was asked.
struct Asked {
  int tensors = 0;
  int calls = 0;
  void* y = nullptr;
  double alpha = 0;
  int columns = 0;  // of a spatial transformer
};
Asked asked;

template <typename Descriptor>
Descriptor Some() {
  return reinterpret_cast<Descriptor>(&asked);
}

cuda_api::CudnnFunctions FakeLibrary() {
  cuda_api::CudnnFunctions f;
  f.cudnnCreate = [](cudnnHandle_t* handle) {
    return *handle = Some<cudnnHandle_t>(), CUDNN_STATUS_SUCCESS;
  };
  f.cudnnDestroy = [](cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; };
  f.cudnnSetStream = [](cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; };
  f.cudnnCreateTensorDescriptor = [](cudnnTensorDescriptor_t* tensor) {
    ++asked.tensors;
    return *tensor = Some<cudnnTensorDescriptor_t>(), CUDNN_STATUS_SUCCESS;
  };
  f.cudnnDestroyTensorDescriptor = [](cudnnTensorDescriptor_t) {
    --asked.tensors;
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnSetTensorNdDescriptor = [](cudnnTensorDescriptor_t, cudnnDataType_t type, int, const int*,
                                    const int*) {
    return type == CUDNN_DATA_BOOLEAN ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
  };
  f.cudnnScaleTensor = [](cudnnHandle_t, const cudnnTensorDescriptor_t, void* y,
                          const void* alpha) {
    ++asked.calls;
    asked.y = y;
    asked.alpha = *static_cast<const double*>(alpha);
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnCreateSpatialTransformerDescriptor = [](cudnnSpatialTransformerDescriptor_t* transformer) {
    return *transformer = Some<cudnnSpatialTransformerDescriptor_t>(), CUDNN_STATUS_SUCCESS;
  };
  f.cudnnDestroySpatialTransformerDescriptor = [](cudnnSpatialTransformerDescriptor_t) {
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnSetSpatialTransformerNdDescriptor = [](cudnnSpatialTransformerDescriptor_t,
                                                cudnnSamplerType_t, cudnnDataType_t, int rank,
                                                const int* dims) {
    asked.columns = dims[rank - 1];
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnSpatialTfGridGeneratorForward =
      [](cudnnHandle_t, const cudnnSpatialTransformerDescriptor_t, const void*, void* grid) {
        ++asked.calls;
        asked.y = grid;
        return CUDNN_STATUS_SUCCESS;
      };
  return f;
}

class CudnnCallsTest : public testing::Test {
 protected:
  CudnnCallsTest() {
    asked = {};
    command_.yDesc = DnnDense(CUDNN_DATA_DOUBLE, CUDNN_TENSOR_NCHW, 4, {2, 3, 4, 5});
    command_.y = base_;
    const double alpha = 0.5;
    std::memcpy(command_.alpha.data(), &alpha, sizeof alpha);
  }
  std::int32_t Scale() {
    cuda_api::CallOutcome outcome;
    EXPECT_TRUE(cuda_api::DispatchCudnn(calls_, wire::CudnnScaleTensor::kCallId,
                                        wire::Encoded(command_), outcome)
                    .ok());
    return outcome.status.code;
  }

  FakeSession s_;
  const std::uint64_t base_ = s_.identity.device_base;
  CudnnPool pool_{FakeLibrary()};
  StreamSet streams_{*s_.device};
  CudnnCalls calls_{pool_, streams_, *s_.memory};
  wire::CudnnScaleTensor command_;
};

TEST_F(CudnnCallsTest, ACallReachesTheLibrary) {
  ASSERT_EQ(Scale(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(asked.y, reinterpret_cast<void*>(base_));
  EXPECT_EQ(asked.alpha, 0.5);
  ASSERT_EQ(Scale(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(asked.tensors, 1) << "one descriptor a value";
}

TEST_F(CudnnCallsTest, ATensorMustBeTheSessionsWhole) {
  const std::uint64_t end = base_ + 4 * kMiB;  // of what is resident
  command_.y = end - DnnBytes(command_.yDesc);
  EXPECT_EQ(Scale(), CUDNN_STATUS_SUCCESS);
  command_.y += 1;
  EXPECT_EQ(Scale(), CUDNN_STATUS_BAD_PARAM);
  command_.y = base_;
  command_.yDesc.strides[0] = INT32_MAX;
  EXPECT_EQ(Scale(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(asked.calls, 1);
}

TEST_F(CudnnCallsTest, InvalidArgumentsNeverReachTheLibrary) {
  command_.yDesc.rank = 9;
  EXPECT_EQ(Scale(), CUDNN_STATUS_BAD_PARAM);
  command_.yDesc.rank = 4;
  command_.yDesc.dims[2] = -1;
  EXPECT_EQ(Scale(), CUDNN_STATUS_BAD_PARAM);
  command_.yDesc.dims[2] = 1;
  command_.yDesc.strides[1] = -8;
  EXPECT_EQ(Scale(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(asked.calls, 0);
  EXPECT_EQ(asked.tensors, 0);
}

TEST_F(CudnnCallsTest, WhatTheLibraryRefusesOrLacksIsNotSupported) {
  command_.yDesc.type = CUDNN_DATA_BOOLEAN;
  EXPECT_EQ(Scale(), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(asked.tensors, 0) << "destroyed again";
  wire::CudnnSetTensor set;
  set.yDesc = DnnDense(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, {1, 1, 1, 1});
  set.y = base_;
  cuda_api::CallOutcome outcome;
  ASSERT_TRUE(cuda_api::DispatchCudnn(calls_, set.kCallId, wire::Encoded(set), outcome).ok());
  EXPECT_EQ(outcome.status.code, CUDNN_STATUS_NOT_SUPPORTED);
  command_.stream = 77;
  EXPECT_EQ(Scale(), CUDNN_STATUS_NOT_INITIALIZED) << "no such stream";
}

TEST_F(CudnnCallsTest, AGridIsAsLargeAsItsTransformerSays) {
  wire::CudnnSpatialTfGridGeneratorForward command;
  command.stDesc = {.type = CUDNN_DATA_FLOAT, .dims = {2, 3, 4, 5}};
  command.theta = base_;
  const std::uint64_t end = base_ + 4 * kMiB;  // of what is resident
  const auto generate = [&] {
    cuda_api::CallOutcome outcome;
    EXPECT_TRUE(
        cuda_api::DispatchCudnn(calls_, command.kCallId, wire::Encoded(command), outcome).ok());
    return outcome.status.code;
  };
  command.grid = end - sizeof(float[2][4][5][2]);
  ASSERT_EQ(generate(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(asked.columns, 5);
  EXPECT_EQ(asked.y, reinterpret_cast<void*>(command.grid));
  command.grid += 1;
  EXPECT_EQ(generate(), CUDNN_STATUS_BAD_PARAM);
  command.grid = base_;
  command.theta = end - sizeof(float[2][2][3]) + 1;
  EXPECT_EQ(generate(), CUDNN_STATUS_BAD_PARAM);
  command.theta = base_;
  command.stDesc.sampler = 1;
  EXPECT_EQ(generate(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(asked.calls, 1);
}

TEST_F(CudnnCallsTest, WithoutALibraryItSaysSo) {
  CudnnPool none{cuda_api::CudnnFunctions()};
  CudnnCalls calls(none, streams_, *s_.memory);
  cuda_api::CallOutcome outcome;
  ASSERT_TRUE(
      cuda_api::DispatchCudnn(calls, command_.kCallId, wire::Encoded(command_), outcome).ok());
  EXPECT_EQ(outcome.status.code, CUDNN_STATUS_NOT_SUPPORTED);
}

}  // namespace
}  // namespace torpor::executor
