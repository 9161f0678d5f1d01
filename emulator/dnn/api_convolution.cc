// Convolutions, with gradients and the choice of algorithms.
#include "emulator/dnn/activation.h"
#include "emulator/dnn/convolution.h"
#include "emulator/dnn/handle.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

namespace {

// Reads and checks the descriptors of a convolution.
cudnnStatus_t CheckShape(const DnnConvolution* convolution, const DnnTensor* x, const DnnFilter* w,
                         const DnnTensor* y, ConvolutionShape& shape) {
  if (convolution == nullptr || w == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!DnnIsValid(*convolution) || !DnnIsValid(*w)) return CUDNN_STATUS_BAD_PARAM;
  const DnnTensor filter = AsTensor(*w);
  const cudnnStatus_t status = CheckTensors({x, y, &filter});
  if (status != CUDNN_STATUS_SUCCESS) return status;
  shape = {*convolution, *x, *w, *y};
  if (!ShapesAgree(shape)) return CUDNN_STATUS_BAD_PARAM;
  // cuDNN's own combinations: floating types only go with themselves, and space has two or three
  // dimensions.
  const bool floating =
      x->type != CUDNN_DATA_INT8 && x->type != CUDNN_DATA_UINT8 && x->type != CUDNN_DATA_INT32;
  if (!floating || w->type != x->type || y->type != x->type || convolution->rank > 3) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}

// Answers a query for algorithms with the only one, which needs no workspace.
template <typename Performance>
cudnnStatus_t OnlyAlgorithm(cudnnHandle_t handle, const DnnConvolution* convolution,
                            const DnnTensor* x, const DnnFilter* w, const DnnTensor* y,
                            int requested, int* returned, Performance* performances) {
  return WithHandle(handle, [&](cudnnContext&) {
    if (returned == nullptr || performances == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (requested < 1) return CUDNN_STATUS_BAD_PARAM;
    ConvolutionShape shape;
    const cudnnStatus_t status = CheckShape(convolution, x, w, y, shape);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    *performances = {};
    // Of any direction the second is deterministic.
    performances->algo = static_cast<decltype(performances->algo)>(1);
    performances->status = CUDNN_STATUS_SUCCESS;
    performances->time = -1;  // not measured
    performances->determinism = CUDNN_DETERMINISTIC;
    performances->mathType = static_cast<cudnnMathType_t>(convolution->math_type);
    *returned = 1;
    return CUDNN_STATUS_SUCCESS;
  });
}

// Answers a query for the workspace of a valid convolution: 0 bytes.
cudnnStatus_t NoWorkspace(cudnnHandle_t handle, const DnnConvolution* convolution,
                          const DnnTensor* x, const DnnFilter* w, const DnnTensor* y,
                          std::size_t* bytes) {
  return WithHandle(handle, [&](cudnnContext&) {
    if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    ConvolutionShape shape;
    const cudnnStatus_t status = CheckShape(convolution, x, w, y, shape);
    if (status == CUDNN_STATUS_SUCCESS) *bytes = 0;
    return status;
  });
}

}  // namespace

extern "C" {

// The algorithm and the workspace are ignored, here and below.
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void* x,
                                      const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t, void*, size_t, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
  return WithHandle(handle, [&](cudnnContext& context) {
    ConvolutionShape s;
    const cudnnStatus_t status = CheckShape(convolution, x_desc, w_desc, y_desc, s);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const Blend blend = Blend::Read(alpha, beta, s.y.type);
    const DnnTensor filter = AsTensor(s.w);
    return Queue(context, {ReadExtent(s.x, x), ReadExtent(filter, w), WrittenExtent(s.y, y)}, [=] {
      InTypeOf(s.y.type, [&](auto type) {
        using T = decltype(type);
        const auto made = ConvolveForward(s, LoadTensor<T>(s.x, x), LoadTensor<T>(filter, w));
        StoreTensor(s.y, y, made, blend.alpha, blend.beta);
      });
    });
  });
}

// y = activation(alpha1 conv(x) + alpha2 z + bias).
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnFilterDescriptor_t w_desc, const void* w,
    const cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t, void*, size_t,
    const void* alpha2, const cudnnTensorDescriptor_t z_desc, const void* z,
    const cudnnTensorDescriptor_t bias_desc, const void* bias,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y_desc, void* y) {
  return WithHandle(handle, [&](cudnnContext& context) {
    ConvolutionShape s;
    cudnnStatus_t status = CheckShape(convolution, x_desc, w_desc, y_desc, s);
    if (status == CUDNN_STATUS_SUCCESS) status = CheckTensors({z_desc, bias_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha1 == nullptr || alpha2 == nullptr || activation == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const DnnTensor added = *z_desc;
    const DnnTensor biases = *bias_desc;
    const DnnActivation function = *activation;
    if (!HaveOneShape(added, s.y) || CountOf(biases) != static_cast<std::size_t>(s.y.dims[1])) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    // As cuDNN documents.
    if (function.mode != CUDNN_ACTIVATION_RELU && function.mode != CUDNN_ACTIVATION_IDENTITY) {
      return CUDNN_STATUS_NOT_SUPPORTED;
    }
    const Blend scales = Blend::Read(alpha1, alpha2, s.y.type);
    const DnnTensor filter = AsTensor(s.w);
    const auto work = [=] {
      InTypeOf(s.y.type, [&](auto type) {
        using T = decltype(type);
        auto values = ConvolveForward(s, LoadTensor<T>(s.x, x), LoadTensor<T>(filter, w));
        const auto b = LoadTensor<T>(biases, bias);
        const auto more = scales.beta == 0 ? std::vector<T>() : LoadTensor<T>(added, z);
        const std::size_t channels = b.size();
        const std::size_t space = values.size() / static_cast<std::size_t>(s.y.dims[0]) / channels;
        for (std::size_t i = 0; i < values.size(); ++i) {
          T sum = static_cast<T>(scales.alpha) * values[i] + b[i / space % channels];
          if (!more.empty()) sum += static_cast<T>(scales.beta) * more[i];
          values[i] = Activate(function, sum);
        }
        StoreTensor(s.y, y, values);
      });
    };
    return Queue(context,
                 {ReadExtent(s.x, x), ReadExtent(filter, w), ReadExtent(biases, bias),
                  scales.beta == 0 ? AccessExtent() : ReadExtent(added, z), WrittenExtent(s.y, y)},
                 work);
  });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void* w,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t, void*, size_t,
                                           const void* beta, const cudnnTensorDescriptor_t dx_desc,
                                           void* dx) {
  return WithHandle(handle, [&](cudnnContext& context) {
    ConvolutionShape s;
    const cudnnStatus_t status = CheckShape(convolution, dx_desc, w_desc, dy_desc, s);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const Blend blend = Blend::Read(alpha, beta, s.x.type);
    const DnnTensor filter = AsTensor(s.w);
    return Queue(context, {ReadExtent(s.y, dy), ReadExtent(filter, w), WrittenExtent(s.x, dx)},
                 [=] {
                   InTypeOf(s.x.type, [&](auto type) {
                     using T = decltype(type);
                     const auto made =
                         ConvolveBackwardData(s, LoadTensor<T>(filter, w), LoadTensor<T>(s.y, dy));
                     StoreTensor(s.x, dx, made, blend.alpha, blend.beta);
                   });
                 });
  });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t, void*, size_t,
                                             const void* beta,
                                             const cudnnFilterDescriptor_t dw_desc, void* dw) {
  return WithHandle(handle, [&](cudnnContext& context) {
    ConvolutionShape s;
    const cudnnStatus_t status = CheckShape(convolution, x_desc, dw_desc, dy_desc, s);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const Blend blend = Blend::Read(alpha, beta, s.w.type);
    const DnnTensor filter = AsTensor(s.w);
    return Queue(context, {ReadExtent(s.x, x), ReadExtent(s.y, dy), WrittenExtent(filter, dw)},
                 [=] {
                   InTypeOf(s.w.type, [&](auto type) {
                     using T = decltype(type);
                     const auto made =
                         ConvolveBackwardFilter(s, LoadTensor<T>(s.x, x), LoadTensor<T>(s.y, dy));
                     StoreTensor(filter, dw, made, blend.alpha, blend.beta);
                   });
                 });
  });
}

// The bias gradient sums dy over batch and space.
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const void* beta, const cudnnTensorDescriptor_t db_desc,
                                           void* db) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTensors({dy_desc, db_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const DnnTensor given = *dy_desc;
    const DnnTensor biases = *db_desc;
    if (given.rank < 3 || CountOf(biases) != static_cast<std::size_t>(given.dims[1])) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    const Blend blend = Blend::Read(alpha, beta, biases.type);
    return Queue(context, {ReadExtent(given, dy), WrittenExtent(biases, db)}, [=] {
      InTypeOf(biases.type, [&](auto type) {
        using T = decltype(type);
        const auto values = LoadTensor<T>(given, dy);
        std::vector<T> sums(CountOf(biases));
        const std::size_t space =
            values.size() / static_cast<std::size_t>(given.dims[0]) / sums.size();
        for (std::size_t i = 0; i < values.size(); ++i) sums[i / space % sums.size()] += values[i];
        StoreTensor(biases, db, sums, blend.alpha, blend.beta);
      });
    });
  });
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t, size_t* bytes) {
  return NoWorkspace(handle, convolution, x, w, y, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t, size_t* bytes) {
  return NoWorkspace(handle, convolution, dx, w, dy, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t, size_t* bytes) {
  return NoWorkspace(handle, convolution, x, dw, dy, bytes);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* performances) {
  return OnlyAlgorithm(handle, convolution, x, w, y, requested, returned, performances);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* performances) {
  return OnlyAlgorithm(handle, convolution, x, w, y, requested, returned, performances);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* performances) {
  return OnlyAlgorithm(handle, convolution, dx, w, dy, requested, returned, performances);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* performances) {
  return OnlyAlgorithm(handle, convolution, dx, w, dy, requested, returned, performances);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* performances) {
  return OnlyAlgorithm(handle, convolution, x, dw, dy, requested, returned, performances);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* performances) {
  return OnlyAlgorithm(handle, convolution, x, dw, dy, requested, returned, performances);
}

}  // extern "C"
