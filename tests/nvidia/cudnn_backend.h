#pragma once

#include <cudnn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

// Operation graphs as a program builds them by cuDNN's backend API, for tests of those who have its
// entries.
namespace torpor {

// A descriptor of the program's.
class Backend {
 public:
  explicit Backend(cudnnBackendDescriptorType_t kind) {
    EXPECT_EQ(cudnnBackendCreateDescriptor(kind, &real_), CUDNN_STATUS_SUCCESS);
  }
  ~Backend() { cudnnBackendDestroyDescriptor(real_); }
  Backend(Backend&& other) noexcept : real_(std::exchange(other.real_, nullptr)) {}
  Backend& operator=(Backend&&) = delete;

  cudnnBackendDescriptor_t real() const { return real_; }

  template <typename T>
  cudnnStatus_t TrySet(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const std::vector<T>& elements) {
    return cudnnBackendSetAttribute(real_, name, type, static_cast<std::int64_t>(elements.size()),
                                    elements.data());
  }
  template <typename T>
  Backend& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T element) {
    EXPECT_EQ(cudnnBackendSetAttribute(real_, name, type, 1, &element), CUDNN_STATUS_SUCCESS)
        << "attribute " << int{name};
    return *this;
  }
  Backend& Set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& elements) {
    EXPECT_EQ(TrySet(name, CUDNN_TYPE_INT64, elements), CUDNN_STATUS_SUCCESS)
        << "attribute " << int{name};
    return *this;
  }
  Backend& Set(cudnnBackendAttributeName_t name, const Backend& other) {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.real());
  }
  cudnnStatus_t TryFinalize() { return cudnnBackendFinalize(real_); }
  Backend Final() && {
    EXPECT_EQ(TryFinalize(), CUDNN_STATUS_SUCCESS);
    return std::move(*this);
  }

  template <typename T>
  std::vector<T> Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    std::int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(real_, name, type, 0, &count, nullptr),
              CUDNN_STATUS_SUCCESS);
    std::vector<T> elements(static_cast<std::size_t>(count));
    EXPECT_EQ(cudnnBackendGetAttribute(real_, name, type, count, &count, elements.data()),
              CUDNN_STATUS_SUCCESS);
    return elements;
  }
  // The attribute's first descriptor.
  Backend Get(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t kind) const {
    Backend got(kind);
    std::int64_t count = 0;
    EXPECT_EQ(
        cudnnBackendGetAttribute(real_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &got.real_),
        CUDNN_STATUS_SUCCESS);
    EXPECT_GE(count, 1);
    return got;
  }

 private:
  cudnnBackendDescriptor_t real_ = nullptr;
};

using Shape = std::vector<std::int64_t>;

inline Shape DenseStrides(const Shape& dims) {
  Shape strides(dims.size(), 1);
  for (std::size_t i = dims.size(); --i > 0;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

inline Backend TensorOf(std::int64_t id, cudnnDataType_t type, const Shape& dims,
                        const Shape& strides, bool is_virtual = false) {
  return std::move(Backend(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                       .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
                       .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
                       .Set(CUDNN_ATTR_TENSOR_STRIDES, strides)
                       .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
                       .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16})
                       .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual))
      .Final();
}
inline Backend TensorOf(std::int64_t id, const Shape& dims, bool is_virtual = false) {
  return TensorOf(id, CUDNN_DATA_FLOAT, dims, DenseStrides(dims), is_virtual);
}

struct Window {
  Shape before = {0, 0};
  Shape after = {0, 0};
  Shape strides = {1, 1};
  Shape dilation = {1, 1};
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnDataType_t compute_type = CUDNN_DATA_FLOAT;
};

inline Backend ConvolutionOf(const Window& window) {
  const auto rank = static_cast<std::int64_t>(window.before.size());
  return std::move(
             Backend(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
                 .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, window.compute_type)
                 .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, window.mode)
                 .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, rank)
                 .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, window.before)
                 .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, window.after)
                 .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, window.dilation)
                 .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, window.strides))
      .Final();
}

inline Backend ForwardOf(const Backend& convolution, const Backend& x, const Backend& w,
                         const Backend& y, float alpha = 1, float beta = 0) {
  return std::move(Backend(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, alpha)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, beta))
      .Final();
}
inline Backend BackwardDataOf(const Backend& convolution, const Backend& dx, const Backend& w,
                              const Backend& dy) {
  return std::move(Backend(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dx)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, dy))
      .Final();
}
inline Backend BackwardFilterOf(const Backend& convolution, const Backend& x, const Backend& dw,
                                const Backend& dy) {
  return std::move(Backend(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, convolution)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, dw)
                       .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, dy))
      .Final();
}

inline Backend FunctionOf(cudnnPointwiseMode_t mode) {
  return std::move(Backend(CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
                       .Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
                       .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT))
      .Final();
}
inline Backend PointwiseOf(cudnnPointwiseMode_t mode, const Backend& x, const Backend* b,
                           const Backend& y, float alpha1 = 1, float alpha2 = 1) {
  Backend operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, FunctionOf(mode))
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, alpha1)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, alpha2);
  if (b != nullptr) operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  return std::move(operation).Final();
}

// Not finalised yet.
inline Backend OpenGraphOf(cudnnHandle_t handle, const std::vector<const Backend*>& operations) {
  std::vector<cudnnBackendDescriptor_t> real;
  real.reserve(operations.size());
  for (const Backend* operation : operations) real.push_back(operation->real());
  Backend graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_EQ(graph.TrySet(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, real),
            CUDNN_STATUS_SUCCESS);
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  return graph;
}
inline Backend GraphOf(cudnnHandle_t handle, const std::vector<const Backend*>& operations) {
  return OpenGraphOf(handle, operations).Final();
}

inline Backend HeuristicOf(const Backend& graph,
                           cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_INSTANT) {
  return std::move(Backend(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
                       .Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
                       .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode));
}

// By the first recommended configuration.
inline Backend PlanOf(const Backend& graph) {
  const Backend heuristic = HeuristicOf(graph).Final();
  const Backend config =
      heuristic.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  return std::move(Backend(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                       .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config))
      .Final();
}

inline Backend PackOf(const std::vector<std::int64_t>& ids, const std::vector<void*>& addresses,
                      void* workspace = nullptr) {
  Backend pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_EQ(pack.TrySet(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses),
            CUDNN_STATUS_SUCCESS);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  return std::move(pack).Final();
}

}  // namespace torpor
