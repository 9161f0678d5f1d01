// Local response normalisation across channels, with its gradient.
#include <algorithm>
#include <cmath>

#include "emulator/dnn/handle.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

namespace {

// The channels [first, last] around a channel.
struct Window {
  std::ptrdiff_t first;
  std::ptrdiff_t last;
};

// Normalisation by k + alpha / size * (sum of squares of the neighbouring channels), to the power
// of -beta.
class ResponseNorm {
 public:
  ResponseNorm(const DnnLrn& norm, const DnnTensor& shape)
      : norm_(norm),
        channels_(shape.dims[1]),
        space_(static_cast<std::ptrdiff_t>(CountOf(shape)) / shape.dims[0] / channels_) {}

  // Returns k plus the scaled sum of the squares around each element.
  template <typename T>
  std::vector<T> Scales(const std::vector<T>& x) const {
    std::vector<T> scales(x.size());
    ForEach(x.size(), [&](std::size_t at, const Window& window) {
      T sum = 0;
      Visit(at, window, [&](std::size_t near) { sum += x[near] * x[near]; });
      scales[at] = static_cast<T>(norm_.k) + Share<T>() * sum;
    });
    return scales;
  }

  template <typename T>
  std::vector<T> Forward(const std::vector<T>& x) const {
    std::vector<T> y = Scales(x);
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = x[i] * std::pow(y[i], -static_cast<T>(norm_.beta));
    }
    return y;
  }

  template <typename T>
  std::vector<T> Gradient(const std::vector<T>& x, const std::vector<T>& y,
                          const std::vector<T>& dy) const {
    const std::vector<T> scales = Scales(x);
    std::vector<T> dx(x.size());
    for (std::size_t i = 0; i < dx.size(); ++i) {
      dx[i] = dy[i] * std::pow(scales[i], -static_cast<T>(norm_.beta));
    }
    const T factor = 2 * Share<T>() * static_cast<T>(norm_.beta);
    ForEach(x.size(), [&](std::size_t at, const Window& window) {
      const T weight = factor * dy[at] * y[at] / scales[at];
      Visit(at, window, [&](std::size_t near) { dx[near] -= weight * x[near]; });
    });
    return dx;
  }

 private:
  // The weight of each square.
  template <typename T>
  T Share() const {
    return static_cast<T>(norm_.alpha / norm_.size);
  }

  // Calls each(element, window of channels around it) for all elements.
  template <typename Each>
  void ForEach(std::size_t count, Each each) const {
    const auto behind = static_cast<std::ptrdiff_t>((norm_.size - 1) / 2);
    const auto ahead = static_cast<std::ptrdiff_t>(norm_.size) - behind - 1;
    for (std::size_t at = 0; at < count; ++at) {
      const std::ptrdiff_t channel = static_cast<std::ptrdiff_t>(at) / space_ % channels_;
      each(at, Window{std::max<std::ptrdiff_t>(channel - behind, 0) - channel,
                      std::min(channel + ahead, channels_ - 1) - channel});
    }
  }
  // Calls near(element) for the elements of the window at the same point.
  template <typename Near>
  void Visit(std::size_t at, const Window& window, Near near) const {
    for (std::ptrdiff_t away = window.first; away <= window.last; ++away) {
      near(static_cast<std::size_t>(static_cast<std::ptrdiff_t>(at) + away * space_));
    }
  }

  const DnnLrn norm_;
  const std::ptrdiff_t channels_;
  const std::ptrdiff_t space_;
};

}  // namespace

extern "C" {

cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t norm,
                                          cudnnLRNMode_t, const void* alpha,
                                          const cudnnTensorDescriptor_t x_desc, const void* x,
                                          const void* beta, const cudnnTensorDescriptor_t y_desc,
                                          void* y) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTensors({x_desc, y_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (norm == nullptr || alpha == nullptr || beta == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const DnnTensor xs = *x_desc;
    const DnnTensor ys = *y_desc;
    if (!DnnIsValid(*norm) || xs.rank < 3 || !HaveOneShape(xs, ys)) return CUDNN_STATUS_BAD_PARAM;
    const ResponseNorm by(*norm, xs);
    const Blend blend = Blend::Read(alpha, beta, ys.type);
    return Queue(context, {ReadExtent(xs, x), WrittenExtent(ys, y)}, [=] {
      InTypeOf(ys.type, [&](auto type) {
        const auto made = by.Forward(LoadTensor<decltype(type)>(xs, x));
        StoreTensor(ys, y, made, blend.alpha, blend.beta);
      });
    });
  });
}

cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t norm,
                                           cudnnLRNMode_t, const void* alpha,
                                           const cudnnTensorDescriptor_t y_desc, const void* y,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnTensorDescriptor_t x_desc, const void* x,
                                           const void* beta, const cudnnTensorDescriptor_t dx_desc,
                                           void* dx) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTensors({y_desc, dy_desc, x_desc, dx_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (norm == nullptr || alpha == nullptr || beta == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const DnnTensor ys = *y_desc;
    const DnnTensor dys = *dy_desc;
    const DnnTensor xs = *x_desc;
    const DnnTensor dxs = *dx_desc;
    if (!DnnIsValid(*norm) || xs.rank < 3 || !HaveOneShape(xs, ys) || !HaveOneShape(xs, dys) ||
        !HaveOneShape(xs, dxs)) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    const ResponseNorm by(*norm, xs);
    const Blend blend = Blend::Read(alpha, beta, dxs.type);
    return Queue(
        context,
        {ReadExtent(ys, y), ReadExtent(dys, dy), ReadExtent(xs, x), WrittenExtent(dxs, dx)}, [=] {
          InTypeOf(dxs.type, [&](auto type) {
            using T = decltype(type);
            const auto made =
                by.Gradient(LoadTensor<T>(xs, x), LoadTensor<T>(ys, y), LoadTensor<T>(dys, dy));
            StoreTensor(dxs, dx, made, blend.alpha, blend.beta);
          });
        });
  });
}

}  // extern "C"
