#pragma once

#include <vector>

#include "nvidia/cudnn/descriptors.h"

// Convolutions of dense values: tensors in the order batch, channels, space; filters in the order
// outputs, inputs of a group, space. Single precision by oneDNN, double by loops.
namespace torpor::emulator {

struct ConvolutionShape {
  DnnConvolution convolution;
  DnnTensor x;
  DnnFilter w;
  DnnTensor y;
};

// Whether y has the shape that the others give.
bool ShapesAgree(const ConvolutionShape& shape);

template <typename T>
std::vector<T> ConvolveForward(const ConvolutionShape& shape, const std::vector<T>& x,
                               const std::vector<T>& w);
// The gradient of x, and that of w.
template <typename T>
std::vector<T> ConvolveBackwardData(const ConvolutionShape& shape, const std::vector<T>& w,
                                    const std::vector<T>& dy);
template <typename T>
std::vector<T> ConvolveBackwardFilter(const ConvolutionShape& shape, const std::vector<T>& x,
                                      const std::vector<T>& dy);

}  // namespace torpor::emulator
