// Convolutions by cuDNN's backend API, by engines that the library recommends, and by loops.
#pragma once

#include <cudnn.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tests/e2e/programs/check.h"

#define DNN(call) REQUIRE((call) == CUDNN_STATUS_SUCCESS)

inline constexpr int kImages = 2;
inline constexpr int kInputs = 4;
inline constexpr int kOutputs = 8;
inline constexpr int kGroups = 2;
inline constexpr int kSide = 10;  // of an image, which convolutions keep
inline constexpr int kWindow = 3;

using Values = std::vector<float>;
using Shape = std::vector<int64_t>;

inline const Shape kXShape = {kImages, kInputs, kSide, kSide};
inline const Shape kWShape = {kOutputs, kInputs / kGroups, kWindow, kWindow};
inline const Shape kYShape = {kImages, kOutputs, kSide, kSide};
inline const Shape kBiasShape = {1, kOutputs, 1, 1};

inline size_t Count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return static_cast<size_t>(count);
}

inline Values Numbers(const Shape& shape, int seed) {
  Values numbers(Count(shape));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>((i * 5 + static_cast<size_t>(seed) * 3) % 13) / 13 - 0.5f;
  return numbers;
}

// Numbers of T on the device.
template <typename T>
class Memory {
 public:
  explicit Memory(const Values& values) : count_(values.size()) {
    std::vector<T> converted;
    for (const float value : values) converted.push_back(static_cast<T>(value));
    CUDA(cudaMalloc(&data_, count_ * sizeof(T)));
    CUDA(cudaMemcpy(data_, converted.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Memory() { cudaFree(data_); }
  void* get() const { return data_; }
  Values Download() const {
    std::vector<T> there(count_);
    CUDA(cudaMemcpy(there.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    Values values;
    for (const T value : there) values.push_back(static_cast<float>(value));
    return values;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t kind) {
    DNN(cudnnBackendCreateDescriptor(kind, &real_));
  }
  ~Descriptor() { DNN(cudnnBackendDestroyDescriptor(real_)); }
  Descriptor(Descriptor&& other) noexcept : real_(std::exchange(other.real_, nullptr)) {}

  cudnnBackendDescriptor_t real() const { return real_; }
  template <typename T>
  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const std::vector<T>& elements) {
    DNN(cudnnBackendSetAttribute(real_, name, type, static_cast<int64_t>(elements.size()),
                                 elements.data()));
    return *this;
  }
  template <typename T>
  Descriptor& SetOne(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     T element) {
    DNN(cudnnBackendSetAttribute(real_, name, type, 1, &element));
    return *this;
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return SetOne(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.real());
  }
  Descriptor& Finalize() {
    DNN(cudnnBackendFinalize(real_));
    return *this;
  }

 private:
  cudnnBackendDescriptor_t real_ = nullptr;
};

inline Descriptor Tensor(int64_t id, cudnnDataType_t type, const Shape& shape,
                         bool is_virtual = false) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); --i > 0;) strides[i - 1] = strides[i] * shape[i];
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.SetOne(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, shape)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides)
      .SetOne(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .SetOne(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{16})
      .SetOne(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual)
      .Finalize();
  return tensor;
}

inline Descriptor Convolution() {
  const Shape ones = {1, 1};
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.SetOne(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .SetOne(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
              CUDNN_CROSS_CORRELATION)
      .SetOne(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2})
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, ones)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, ones)
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, ones)
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, ones)
      .Finalize();
  return convolution;
}

inline Descriptor Forward(const Descriptor& x, const Descriptor& w, const Descriptor& y) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, Convolution())
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
      .Finalize();
  return operation;
}
inline Descriptor BackwardData(const Descriptor& dx, const Descriptor& w, const Descriptor& dy) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, Convolution())
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dx)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, dy)
      .SetOne(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1.0f)
      .SetOne(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 0.0f)
      .Finalize();
  return operation;
}
inline Descriptor BackwardFilter(const Descriptor& x, const Descriptor& dw, const Descriptor& dy) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, Convolution())
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, dw)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, dy)
      .Finalize();
  return operation;
}

// b may be null.
inline Descriptor Pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b,
                            const Descriptor& y) {
  Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.SetOne(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
      .SetOne(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Finalize();
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (b != nullptr) operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  operation.Finalize();
  return operation;
}

// The configurations that a heuristic recommends.
inline std::vector<Descriptor> Recommended(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .SetOne(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (cudnnBackendFinalize(heuristic.real()) != CUDNN_STATUS_SUCCESS) return {};
  int64_t count = 0;
  DNN(cudnnBackendGetAttribute(heuristic.real(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> real;
  for (int64_t i = 0; i < count; ++i)
    real.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).real());
  DNN(cudnnBackendGetAttribute(heuristic.real(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, real.data()));
  return configs;
}

// A graph and the first of the recommended plans that the library can make.
class Plan {
 public:
  Plan(cudnnHandle_t handle, const std::vector<const Descriptor*>& operations)
      : handle_(handle), plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    std::vector<cudnnBackendDescriptor_t> real;
    for (const Descriptor* operation : operations) real.push_back(operation->real());
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.SetOne(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, real)
        .Finalize();
    bool is_made = false;
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      for (const Descriptor& config : Recommended(graph, mode)) is_made = is_made || Make(config);
    }
    REQUIRE(is_made);
    int64_t bytes = 0;
    int64_t count = 0;
    DNN(cudnnBackendGetAttribute(plan_.real(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes));
    REQUIRE(count == 1 && bytes >= 0);
    if (bytes > 0) CUDA(cudaMalloc(&workspace_, static_cast<size_t>(bytes)));
  }
  ~Plan() { cudaFree(workspace_); }

  void Execute(const std::vector<int64_t>& ids, const std::vector<void*>& addresses) const {
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids)
        .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses)
        .SetOne(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace_)
        .Finalize();
    DNN(cudnnBackendExecute(handle_, plan_.real(), pack.real()));
  }

 private:
  bool Make(const Descriptor& config) {
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (cudnnBackendFinalize(plan.real()) != CUDNN_STATUS_SUCCESS) return false;
    plan_.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config).Finalize();
    return true;
  }

  cudnnHandle_t handle_;
  Descriptor plan_;
  void* workspace_ = nullptr;
};

inline size_t Place(int64_t n, int64_t c, int64_t h, int64_t w, const Shape& shape) {
  return static_cast<size_t>(((n * shape[1] + c) * shape[2] + h) * shape[3] + w);
}

// Calls visit(place in x, in w, in y) for each product of the convolution.
template <typename Visit>
void ForEachProduct(Visit visit) {
  constexpr int kGroupInputs = kInputs / kGroups;
  for (int n = 0; n < kImages; ++n)
    for (int k = 0; k < kOutputs; ++k)
      for (int c = 0; c < kGroupInputs; ++c)
        for (int h = 0; h < kSide; ++h)
          for (int w = 0; w < kSide; ++w)
            for (int tap = 0; tap < kWindow * kWindow; ++tap) {
              const int row = h + tap / kWindow - 1;
              const int column = w + tap % kWindow - 1;
              if (row < 0 || row >= kSide || column < 0 || column >= kSide) continue;
              const int channel = k / (kOutputs / kGroups) * kGroupInputs + c;
              visit(Place(n, channel, row, column, kXShape),
                    Place(k, c, tap / kWindow, tap % kWindow, kWShape), Place(n, k, h, w, kYShape));
            }
}

inline void ExpectNear(const Values& got, const Values& expected, float tolerance) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    REQUIRE(std::fabs(got[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i])));
}

template <typename T>
struct Tensors {
  Memory<T> x{Numbers(kXShape, 1)};
  Memory<T> w{Numbers(kWShape, 2)};
  Memory<T> z{Numbers(kYShape, 3)};
  Memory<T> bias{Numbers(kBiasShape, 4)};
  Memory<T> y{Values(Count(kYShape))};

  Values Product() const {
    const Values xs = x.Download();
    const Values ws = w.Download();
    Values product(Count(kYShape));
    ForEachProduct([&](size_t i, size_t j, size_t k) { product[k] += xs[i] * ws[j]; });
    return product;
  }
};
