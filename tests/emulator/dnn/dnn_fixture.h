#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/emulator/library/stream_test.h"

#define ASSERT_DNN(call) ASSERT_EQ((call), CUDNN_STATUS_SUCCESS)

namespace torpor::emulator {

using Dims = std::vector<int>;

inline std::size_t Product(const Dims& dims) {
  std::size_t product = 1;
  for (const int dim : dims) product *= static_cast<std::size_t>(dim);
  return product;
}

inline double ReadAs(cudnnDataType_t type, const char* data, std::size_t i) {
  const auto at = [&](auto element) {
    std::memcpy(&element, data + i * sizeof element, sizeof element);
    return element;
  };
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return at(double{});
    case CUDNN_DATA_HALF:
      return static_cast<float>(at(__half{}));
    case CUDNN_DATA_BFLOAT16:
      return static_cast<float>(at(__nv_bfloat16{}));
    default:
      return at(float{});
  }
}

inline void WriteAs(cudnnDataType_t type, char* data, std::size_t i, double value) {
  const auto put = [&](auto element) {
    std::memcpy(data + i * sizeof element, &element, sizeof element);
  };
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return put(value);
    case CUDNN_DATA_HALF:
      return put(__half(static_cast<float>(value)));
    case CUDNN_DATA_BFLOAT16:
      return put(__nv_bfloat16(static_cast<float>(value)));
    default:
      return put(static_cast<float>(value));
  }
}

inline std::size_t BytesOf(cudnnDataType_t type) {
  if (type == CUDNN_DATA_DOUBLE) return 8;
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2 : 4;
}

// How close results of a type must come to those of double.
inline double ToleranceOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return 1e-12;
    case CUDNN_DATA_HALF:
      return 4e-3;
    case CUDNN_DATA_BFLOAT16:
      return 3e-2;
    default:
      return 2e-5;
  }
}

// A tensor (or, with a format of filters, a filter) on the device, with its descriptor, and its
// values on the host, dense and as the device has them.
class DeviceTensor {
 public:
  DeviceTensor(cudnnDataType_t type, Dims dims, cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW,
               unsigned seed = 0)
      : type_(type), dims_(std::move(dims)), values_(Product(dims_)) {
    const int rank = static_cast<int>(dims_.size());
    EXPECT_EQ(cudnnCreateTensorDescriptor(&tensor_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetTensorNdDescriptorEx(tensor_, format, type, rank, dims_.data()),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreateFilterDescriptor(&filter_), CUDNN_STATUS_SUCCESS);
    (void)cudnnSetFilterNdDescriptor(filter_, type, format, rank, dims_.data());
    strides_.resize(dims_.size());
    EXPECT_EQ(
        cudnnGetTensorNdDescriptor(tensor_, rank, &type_, &rank_, dims_.data(), strides_.data()),
        CUDNN_STATUS_SUCCESS);
    Allocate();
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> number(-1, 1);
    for (double& value : values_) value = seed == 0 ? 0 : number(random);
    Upload();
  }
  ~DeviceTensor() {
    cuMemFree(data_);
    cudnnDestroyTensorDescriptor(tensor_);
    cudnnDestroyFilterDescriptor(filter_);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  cudnnTensorDescriptor_t tensor() const { return tensor_; }
  cudnnFilterDescriptor_t filter() const { return filter_; }
  void* data() const { return reinterpret_cast<void*>(data_); }
  const Dims& dims() const { return dims_; }
  const Dims& strides() const { return strides_; }
  cudnnDataType_t type() const { return type_; }

  std::vector<double>& values() { return values_; }
  const std::vector<double>& values() const { return values_; }
  double operator[](std::size_t i) const { return values_[i]; }

  // Gives the device what was written to values(), which are then as the device has them.
  void Upload() {
    std::vector<char> bytes(bytes_);
    ForEach([&](std::size_t dense, std::size_t place) {
      WriteAs(type_, bytes.data(), place, values_[dense]);
    });
    EXPECT_EQ(cuMemcpyHtoD(data_, bytes.data(), bytes_), CUDA_SUCCESS);
    Download();
  }
  void Download() {
    std::vector<char> bytes(bytes_);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(bytes.data(), data_, bytes_), CUDA_SUCCESS);
    ForEach([&](std::size_t dense, std::size_t place) {
      values_[dense] = ReadAs(type_, bytes.data(), place);
    });
  }

  // Downloads and compares.
  void Expect(const std::vector<double>& expected) {
    Download();
    ASSERT_EQ(expected.size(), values_.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(values_[i], expected[i], ToleranceOf(type_) * (1 + std::fabs(expected[i])))
          << "element " << i;
    }
  }

 private:
  void Allocate() {
    std::size_t last = 0;
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      last += static_cast<std::size_t>(dims_[i] - 1) * static_cast<std::size_t>(strides_[i]);
    }
    bytes_ = (last + 1) * BytesOf(type_);
    EXPECT_EQ(cuMemAlloc(&data_, bytes_), CUDA_SUCCESS);
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    Dims index(dims_.size());
    for (std::size_t dense = 0; dense < values_.size(); ++dense) {
      std::size_t rest = dense;
      std::size_t place = 0;
      for (std::size_t i = dims_.size(); i-- > 0;) {
        const auto dim = static_cast<std::size_t>(dims_[i]);
        place += rest % dim * static_cast<std::size_t>(strides_[i]);
        rest /= dim;
      }
      visit(dense, place);
    }
  }

  cudnnDataType_t type_;
  Dims dims_;
  Dims strides_;
  int rank_ = 0;
  std::vector<double> values_;
  std::size_t bytes_ = 0;
  CUdeviceptr data_ = 0;
  cudnnTensorDescriptor_t tensor_ = nullptr;
  cudnnFilterDescriptor_t filter_ = nullptr;
};

// A scalar of calls on tensors of a type.
class ScalarOf {
 public:
  ScalarOf(cudnnDataType_t type, double value)
      : wide_(value), narrow_(static_cast<float>(value)), is_wide_(type == CUDNN_DATA_DOUBLE) {}
  const void* get() const {
    return is_wide_ ? static_cast<const void*>(&wide_) : static_cast<const void*>(&narrow_);
  }

 private:
  double wide_;
  float narrow_;
  bool is_wide_;
};

inline constexpr cudnnDataType_t kFloatingTypes[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                                     CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};

class DnnTest : public StreamTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StreamTest::SetUp());
    ASSERT_DNN(cudnnCreate(&handle_));
    ASSERT_DNN(cudnnSetStream(handle_, stream_));
  }
  void TearDown() override {
    cudnnDestroy(handle_);
    StreamTest::TearDown();
  }

  cudnnHandle_t handle_ = nullptr;
};

}  // namespace torpor::emulator
