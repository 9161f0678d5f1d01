#include "emulator/dnn/convolution.h"

#include <algorithm>

#include "emulator/dnn/onednn_convolution.h"
#include "emulator/dnn/tensor_values.h"
#include "nvidia/cudnn/shapes.h"

namespace torpor::emulator {
namespace {

// Calls visit(index in x, index in w, index in y) for each product in the sums of a convolution.
template <typename Visit>
void ForEachProduct(const ConvolutionShape& s, Visit visit) {
  const int rank = s.convolution.rank;
  const std::int32_t inputs = s.w.dims[1];  // of a group
  const std::int32_t outputs = s.w.dims[0] / s.convolution.groups;
  IndexWalk y_walk(s.y.dims.data(), rank + 2);
  std::size_t y_place = 0;
  do {
    const std::int32_t* const y = y_walk.index().data();
    const std::int32_t group = y[1] / outputs;
    IndexWalk w_walk(s.w.dims.data() + 1, rank + 1);
    std::size_t w_place = static_cast<std::size_t>(y[1]) *
                          (CountOf(AsTensor(s.w)) / static_cast<std::size_t>(s.w.dims[0]));
    do {
      const std::int32_t* const w = w_walk.index().data();
      std::int64_t x_place = std::int64_t{y[0]} * s.x.dims[1] + std::int64_t{group} * inputs + w[0];
      bool inside = true;
      for (int i = 0; i < rank; ++i) {
        const std::int64_t at = std::int64_t{y[i + 2]} * s.convolution.strides[i] -
                                s.convolution.padding[i] +
                                std::int64_t{w[i + 1]} * s.convolution.dilation[i];
        inside = inside && at >= 0 && at < s.x.dims[i + 2];
        x_place = x_place * s.x.dims[i + 2] + at;
      }
      if (inside) visit(static_cast<std::size_t>(x_place), w_place, y_place);
      ++w_place;
    } while (w_walk.Next());
    ++y_place;
  } while (y_walk.Next());
}

// A convolution in the sense of mathematics is a correlation with the mirrored filter.
template <typename T>
std::vector<T> Mirrored(const ConvolutionShape& s, std::vector<T> w) {
  if (s.convolution.mode == CUDNN_CROSS_CORRELATION) return w;
  const std::size_t window =
      w.size() / static_cast<std::size_t>(s.w.dims[0]) / static_cast<std::size_t>(s.w.dims[1]);
  for (auto at = w.begin(); at != w.end(); at += static_cast<std::ptrdiff_t>(window)) {
    std::reverse(at, at + static_cast<std::ptrdiff_t>(window));
  }
  return w;
}

// Double precision by loops: slow, and used by tests and rare programs.
std::vector<double> Forward(const ConvolutionShape& s, const std::vector<double>& x,
                            const std::vector<double>& w) {
  std::vector<double> y(CountOf(s.y));
  ForEachProduct(s, [&](std::size_t i, std::size_t j, std::size_t k) { y[k] += x[i] * w[j]; });
  return y;
}
std::vector<double> BackwardData(const ConvolutionShape& s, const std::vector<double>& w,
                                 const std::vector<double>& dy) {
  std::vector<double> dx(CountOf(s.x));
  ForEachProduct(s, [&](std::size_t i, std::size_t j, std::size_t k) { dx[i] += w[j] * dy[k]; });
  return dx;
}
std::vector<double> BackwardFilter(const ConvolutionShape& s, const std::vector<double>& x,
                                   const std::vector<double>& dy) {
  std::vector<double> dw(CountOf(AsTensor(s.w)));
  ForEachProduct(s, [&](std::size_t i, std::size_t j, std::size_t k) { dw[j] += x[i] * dy[k]; });
  return dw;
}

// Single precision by oneDNN.
std::vector<float> Forward(const ConvolutionShape& s, const std::vector<float>& x,
                           const std::vector<float>& w) {
  return OneDnnForward(s, x, w);
}
std::vector<float> BackwardData(const ConvolutionShape& s, const std::vector<float>& w,
                                const std::vector<float>& dy) {
  return OneDnnBackwardData(s, w, dy);
}
std::vector<float> BackwardFilter(const ConvolutionShape& s, const std::vector<float>& x,
                                  const std::vector<float>& dy) {
  return OneDnnBackwardFilter(s, x, dy);
}

}  // namespace

bool ShapesAgree(const ConvolutionShape& s) {
  DnnDims dims{};
  return DnnOutputDims(s.convolution, s.x, s.w, dims) && s.y.rank == s.x.rank && s.y.dims == dims;
}

template <typename T>
std::vector<T> ConvolveForward(const ConvolutionShape& s, const std::vector<T>& x,
                               const std::vector<T>& w) {
  return Forward(s, x, Mirrored(s, w));
}

template <typename T>
std::vector<T> ConvolveBackwardData(const ConvolutionShape& s, const std::vector<T>& w,
                                    const std::vector<T>& dy) {
  return BackwardData(s, Mirrored(s, w), dy);
}

template <typename T>
std::vector<T> ConvolveBackwardFilter(const ConvolutionShape& s, const std::vector<T>& x,
                                      const std::vector<T>& dy) {
  return Mirrored(s, BackwardFilter(s, x, dy));
}

#define TORPOR_CONVOLUTIONS(T)                                                                   \
  template std::vector<T> ConvolveForward(const ConvolutionShape&, const std::vector<T>&,        \
                                          const std::vector<T>&);                                \
  template std::vector<T> ConvolveBackwardData(const ConvolutionShape&, const std::vector<T>&,   \
                                               const std::vector<T>&);                           \
  template std::vector<T> ConvolveBackwardFilter(const ConvolutionShape&, const std::vector<T>&, \
                                                 const std::vector<T>&);
TORPOR_CONVOLUTIONS(float)
TORPOR_CONVOLUTIONS(double)

}  // namespace torpor::emulator
