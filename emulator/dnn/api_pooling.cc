// Pooling, with its gradient.
#include <cmath>
#include <limits>

#include "emulator/dnn/handle.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

namespace {

// The descriptors of a pooling.
struct PoolingShape {
  DnnPooling pooling;
  DnnTensor x;
  DnnTensor y;
};

// Reads the descriptors and checks that y has the resulting shape.
cudnnStatus_t CheckShape(const DnnPooling* pooling, const DnnTensor* x, const DnnTensor* y,
                         PoolingShape& shape) {
  if (pooling == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const cudnnStatus_t status = CheckTensors({x, y});
  if (status != CUDNN_STATUS_SUCCESS) return status;
  shape = {*pooling, *x, *y};
  DnnDims dims{};
  if (!DnnOutputDims(*pooling, *x, dims) || y->rank != x->rank || y->dims != dims) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return status;
}

bool IsMaximum(const DnnPooling& pooling) {
  return pooling.mode == CUDNN_POOLING_MAX || pooling.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

// Calls visit(index in y, indices in x under the window) for all elements of y.
template <typename Visit>
void ForEachWindow(const PoolingShape& s, Visit visit) {
  const int rank = s.pooling.rank;
  IndexWalk y_walk(s.y.dims.data(), rank + 2);
  std::size_t y_place = 0;
  std::vector<std::size_t> covered;
  do {
    const std::int32_t* const y = y_walk.index().data();
    covered.clear();
    IndexWalk window(s.pooling.window.data(), rank);
    do {
      std::int64_t place = std::int64_t{y[0]} * s.x.dims[1] + y[1];
      bool inside = true;
      for (int i = 0; i < rank; ++i) {
        const std::int64_t at = std::int64_t{y[i + 2]} * s.pooling.strides[i] -
                                s.pooling.padding[i] + window.index()[static_cast<std::size_t>(i)];
        inside = inside && at >= 0 && at < s.x.dims[i + 2];
        place = place * s.x.dims[i + 2] + at;
      }
      if (inside) covered.push_back(static_cast<std::size_t>(place));
    } while (window.Next());
    visit(y_place, covered);
    ++y_place;
  } while (y_walk.Next());
}

// By how many an average divides.
double Divisor(const PoolingShape& s, std::size_t covered) {
  if (s.pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING) {
    return static_cast<double>(covered);
  }
  double window = 1;
  for (int i = 0; i < s.pooling.rank; ++i) window *= s.pooling.window[i];
  return window;
}

// Returns the first of the largest elements. NaN counts as the largest if NaN is to be propagated;
// otherwise NaN is skipped.
template <typename T>
std::size_t Largest(const PoolingShape& s, const std::vector<T>& x,
                    const std::vector<std::size_t>& covered) {
  std::size_t best = covered.front();
  for (const std::size_t place : covered) {
    if (std::isnan(x[best])) {
      if (s.pooling.nan == CUDNN_PROPAGATE_NAN) return best;
      best = place;
    } else if (x[place] > x[best] ||
               (s.pooling.nan == CUDNN_PROPAGATE_NAN && std::isnan(x[place]))) {
      best = place;
    }
  }
  return best;
}

// Averages count padding or not, by the mode; a maximum over no element is minus infinity.
template <typename T>
std::vector<T> Pool(const PoolingShape& s, const std::vector<T>& x) {
  std::vector<T> y(CountOf(s.y));
  ForEachWindow(s, [&](std::size_t to, const std::vector<std::size_t>& covered) {
    if (IsMaximum(s.pooling)) {
      y[to] = covered.empty() ? -std::numeric_limits<T>::infinity() : x[Largest(s, x, covered)];
      return;
    }
    T sum = 0;
    for (const std::size_t place : covered) sum += x[place];
    y[to] = covered.empty() ? T(0) : sum / static_cast<T>(Divisor(s, covered.size()));
  });
  return y;
}

// A maximum passes its gradient to the largest element; an average spreads it.
template <typename T>
std::vector<T> PoolGradient(const PoolingShape& s, const std::vector<T>& x,
                            const std::vector<T>& dy) {
  std::vector<T> dx(CountOf(s.x));
  ForEachWindow(s, [&](std::size_t from, const std::vector<std::size_t>& covered) {
    if (covered.empty()) return;
    if (IsMaximum(s.pooling)) {
      dx[Largest(s, x, covered)] += dy[from];
      return;
    }
    const T share = dy[from] / static_cast<T>(Divisor(s, covered.size()));
    for (const std::size_t place : covered) dx[place] += share;
  });
  return dx;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
                                  const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                  const void* x, const void* beta,
                                  const cudnnTensorDescriptor_t y_desc, void* y) {
  return WithHandle(handle, [&](cudnnContext& context) {
    PoolingShape s;
    const cudnnStatus_t status = CheckShape(pooling, x_desc, y_desc, s);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const Blend blend = Blend::Read(alpha, beta, s.y.type);
    return Queue(context, {ReadExtent(s.x, x), WrittenExtent(s.y, y)}, [=] {
      InTypeOf(s.y.type, [&](auto type) {
        const auto pooled = Pool(s, LoadTensor<decltype(type)>(s.x, x));
        StoreTensor(s.y, y, pooled, blend.alpha, blend.beta);
      });
    });
  });
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
                                   const void* alpha, const cudnnTensorDescriptor_t y_desc,
                                   const void* y, const cudnnTensorDescriptor_t dy_desc,
                                   const void* dy, const cudnnTensorDescriptor_t x_desc,
                                   const void* x, const void* beta,
                                   const cudnnTensorDescriptor_t dx_desc, void* dx) {
  return WithHandle(handle, [&](cudnnContext& context) {
    PoolingShape s;
    cudnnStatus_t status = CheckShape(pooling, x_desc, y_desc, s);
    if (status == CUDNN_STATUS_SUCCESS) status = CheckTensors({dy_desc, dx_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const DnnTensor dys = *dy_desc;
    const DnnTensor dxs = *dx_desc;
    if (!HaveOneShape(dys, s.y) || !HaveOneShape(dxs, s.x)) return CUDNN_STATUS_BAD_PARAM;
    const Blend blend = Blend::Read(alpha, beta, dxs.type);
    return Queue(
        context,
        {ReadExtent(s.y, y), ReadExtent(dys, dy), ReadExtent(s.x, x), WrittenExtent(dxs, dx)}, [=] {
          InTypeOf(dxs.type, [&](auto type) {
            using T = decltype(type);
            const auto gradient = PoolGradient(s, LoadTensor<T>(s.x, x), LoadTensor<T>(dys, dy));
            StoreTensor(dxs, dx, gradient, blend.alpha, blend.beta);
          });
        });
  });
}

}  // extern "C"
