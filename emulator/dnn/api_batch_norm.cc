// Batch normalisation: inference, training, gradients.
#include <cmath>

#include "emulator/dnn/handle.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

namespace {

// Maps an element to one of `count` scales, biases and statistics; each serves `each` elements.
struct Features {
  std::size_t count = 1;
  std::size_t inner = 1;  // elements of one channel of a sample
  std::size_t each = 1;

  // The index of the feature to which an element belongs.
  std::size_t Of(std::size_t element) const { return element / inner % count; }
};

// Checks the tensors of a call and derives the features from mode and shape.
cudnnStatus_t CheckShapes(cudnnBatchNormMode_t mode, const DnnTensor* x, const DnnTensor* y,
                          const DnnTensor* statistics, Features& features) {
  const cudnnStatus_t status = CheckTensors({x, y, statistics});
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (!HaveOneShape(*x, *y) || x->rank < 4) return CUDNN_STATUS_BAD_PARAM;
  const std::size_t sample = CountOf(*x) / static_cast<std::size_t>(x->dims[0]);
  const auto channels = static_cast<std::size_t>(x->dims[1]);
  const bool spatial = mode != CUDNN_BATCHNORM_PER_ACTIVATION;
  features.count = spatial ? channels : sample;
  features.inner = spatial ? sample / channels : 1;
  features.each = CountOf(*x) / features.count;
  return CountOf(*statistics) == features.count ? status : CUDNN_STATUS_BAD_PARAM;
}

// The arguments that inference and training share.
struct ForwardPass {
  Features features;
  DnnTensor x;
  DnnTensor y;
  DnnTensor statistics;  // and scales and biases
  Blend blend;
};

// Reads the arguments into `pass`, or returns why they are invalid.
cudnnStatus_t ReadForwardPass(cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
                              const DnnTensor* x, const DnnTensor* y, const DnnTensor* statistics,
                              ForwardPass& pass) {
  Features features;
  const cudnnStatus_t status = CheckShapes(mode, x, y, statistics, features);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  pass = {features, *x, *y, *statistics, Blend::Read(alpha, beta, x->type)};
  return status;
}

template <typename T>
struct Statistics {
  std::vector<T> mean;
  std::vector<T> variance;  // of these elements, not an estimate of a larger population's
};

// Computes mean and variance of each feature, summed in double precision.
template <typename T>
Statistics<T> Measure(const Features& features, const std::vector<T>& x) {
  Statistics<T> found{std::vector<T>(features.count), std::vector<T>(features.count)};
  std::vector<double> sums(features.count);
  for (std::size_t i = 0; i < x.size(); ++i) sums[features.Of(i)] += x[i];
  const auto each = static_cast<double>(features.each);
  for (double& sum : sums) sum /= each;
  std::vector<double> squares(features.count);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = x[i] - sums[features.Of(i)];
    squares[features.Of(i)] += off * off;
  }
  for (std::size_t f = 0; f < features.count; ++f) {
    found.mean[f] = static_cast<T>(sums[f]);
    found.variance[f] = static_cast<T>(squares[f] / each);
  }
  return found;
}

// Returns (x - mean) / sqrt(variance + epsilon) * scale + bias.
template <typename T>
std::vector<T> Normalise(const Features& features, std::vector<T> x, const Statistics<T>& by,
                         const std::vector<T>& scale, const std::vector<T>& bias, double epsilon) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t f = features.Of(i);
    const T spread = std::sqrt(by.variance[f] + static_cast<T>(epsilon));
    x[i] = (x[i] - by.mean[f]) / spread * scale[f] + bias[f];
  }
  return x;
}

// running = (1 - factor) running + factor now
template <typename T>
void Update(const DnnTensor& shape, void* running, const std::vector<T>& now, double factor) {
  if (running != nullptr) StoreTensor(shape, running, now, factor, 1 - factor);
}

// An optional output: no extent if the program passed null.
AccessExtent MaybeWritten(const DnnTensor& tensor, const void* data) {
  return data == nullptr ? AccessExtent() : WrittenExtent(tensor, data);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t statistics_desc, const void* scale, const void* bias,
    const void* mean, const void* variance, double epsilon) {
  return WithHandle(handle, [&](cudnnContext& context) {
    ForwardPass pass;
    const cudnnStatus_t status =
        ReadForwardPass(mode, alpha, beta, x_desc, y_desc, statistics_desc, pass);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return Queue(context,
                 {ReadExtent(pass.x, x), WrittenExtent(pass.y, y),
                  ReadExtent(pass.statistics, scale), ReadExtent(pass.statistics, bias),
                  ReadExtent(pass.statistics, mean), ReadExtent(pass.statistics, variance)},
                 [=] {
                   InTypeOf(pass.y.type, [&](auto type) {
                     using T = decltype(type);
                     const Statistics<T> by{LoadTensor<T>(pass.statistics, mean),
                                            LoadTensor<T>(pass.statistics, variance)};
                     const auto made = Normalise(pass.features, LoadTensor<T>(pass.x, x), by,
                                                 LoadTensor<T>(pass.statistics, scale),
                                                 LoadTensor<T>(pass.statistics, bias), epsilon);
                     StoreTensor(pass.y, y, made, pass.blend.alpha, pass.blend.beta);
                   });
                 });
  });
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t statistics_desc, const void* scale, const void* bias,
    double factor, void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse) {
  return WithHandle(handle, [&](cudnnContext& context) {
    ForwardPass pass;
    const cudnnStatus_t status =
        ReadForwardPass(mode, alpha, beta, x_desc, y_desc, statistics_desc, pass);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const auto work = [=] {
      InTypeOf(pass.y.type, [&](auto type) {
        using T = decltype(type);
        const auto values = LoadTensor<T>(pass.x, x);
        const Statistics<T> found = Measure(pass.features, values);
        StoreTensor(pass.y, y,
                    Normalise(pass.features, values, found, LoadTensor<T>(pass.statistics, scale),
                              LoadTensor<T>(pass.statistics, bias), epsilon),
                    pass.blend.alpha, pass.blend.beta);
        Update(pass.statistics, running_mean, found.mean, factor);
        // The unbiased estimate of the population's variance.
        std::vector<T> estimate = found.variance;
        std::vector<T> inverse = found.variance;
        const auto count = static_cast<T>(pass.features.each);
        for (T& value : estimate) value *= count > 1 ? count / (count - 1) : T(1);
        for (T& value : inverse) value = 1 / std::sqrt(value + static_cast<T>(epsilon));
        Update(pass.statistics, running_variance, estimate, factor);
        if (saved_mean != nullptr) StoreTensor(pass.statistics, saved_mean, found.mean);
        if (saved_inverse != nullptr) StoreTensor(pass.statistics, saved_inverse, inverse);
      });
    };
    return Queue(
        context,
        {ReadExtent(pass.x, x), WrittenExtent(pass.y, y), ReadExtent(pass.statistics, scale),
         ReadExtent(pass.statistics, bias), MaybeWritten(pass.statistics, running_mean),
         MaybeWritten(pass.statistics, running_variance), MaybeWritten(pass.statistics, saved_mean),
         MaybeWritten(pass.statistics, saved_inverse)},
        work);
  });
}

// Without saved statistics the mean and the variance are measured again.
cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_parameters, const void* beta_parameters, const cudnnTensorDescriptor_t x_desc,
    const void* x, const cudnnTensorDescriptor_t dy_desc, const void* dy,
    const cudnnTensorDescriptor_t dx_desc, void* dx, const cudnnTensorDescriptor_t parameters_desc,
    const void* scale, void* d_scale, void* d_bias, double epsilon, const void* saved_mean,
    const void* saved_inverse) {
  return WithHandle(handle, [&](cudnnContext& context) {
    Features features;
    cudnnStatus_t status = CheckShapes(mode, x_desc, dy_desc, parameters_desc, features);
    if (status == CUDNN_STATUS_SUCCESS) status = CheckTensors({dx_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha_data == nullptr || beta_data == nullptr || alpha_parameters == nullptr ||
        beta_parameters == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const DnnTensor xs = *x_desc;
    const DnnTensor dys = *dy_desc;
    const DnnTensor dxs = *dx_desc;
    const DnnTensor each = *parameters_desc;
    if (!HaveOneShape(xs, dxs) || (saved_mean == nullptr) != (saved_inverse == nullptr)) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    const Blend data = Blend::Read(alpha_data, beta_data, xs.type);
    const Blend parameters = Blend::Read(alpha_parameters, beta_parameters, xs.type);
    const auto work = [=] {
      InTypeOf(dxs.type, [&](auto type) {
        using T = decltype(type);
        auto values = LoadTensor<T>(xs, x);
        const auto gradient = LoadTensor<T>(dys, dy);
        const auto scales = LoadTensor<T>(each, scale);
        std::vector<T> mean;
        std::vector<T> inverse;
        if (saved_mean != nullptr) {
          mean = LoadTensor<T>(each, saved_mean);
          inverse = LoadTensor<T>(each, saved_inverse);
        } else {
          Statistics<T> found = Measure(features, values);
          mean = found.mean;
          inverse = found.variance;
          for (T& value : inverse) value = 1 / std::sqrt(value + static_cast<T>(epsilon));
        }
        std::vector<T> bias_gradient(features.count);
        std::vector<T> scale_gradient(features.count);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::size_t f = features.Of(i);
          values[i] = (values[i] - mean[f]) * inverse[f];  // normalised from here on
          bias_gradient[f] += gradient[i];
          scale_gradient[f] += gradient[i] * values[i];
        }
        const auto count = static_cast<T>(features.each);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::size_t f = features.Of(i);
          const T centred =
              gradient[i] - bias_gradient[f] / count - values[i] * scale_gradient[f] / count;
          values[i] = scales[f] * inverse[f] * centred;
        }
        StoreTensor(dxs, dx, values, data.alpha, data.beta);
        StoreTensor(each, d_scale, scale_gradient, parameters.alpha, parameters.beta);
        StoreTensor(each, d_bias, bias_gradient, parameters.alpha, parameters.beta);
      });
    };
    const auto saved = [&](const void* statistic) {
      return statistic == nullptr ? AccessExtent() : ReadExtent(each, statistic);
    };
    return Queue(context,
                 {ReadExtent(xs, x), ReadExtent(dys, dy), WrittenExtent(dxs, dx),
                  ReadExtent(each, scale), WrittenExtent(each, d_scale),
                  WrittenExtent(each, d_bias), saved(saved_mean), saved(saved_inverse)},
                 work);
  });
}

}  // extern "C"
