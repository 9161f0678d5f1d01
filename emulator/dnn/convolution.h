#pragma once

#include <vector>

#include "nvidia/cudnn/descriptors.h"

// Convolutions of dense values. Tensors are ordered batch, channels, space; filters are ordered
// outputs, inputs of a group, space. Float uses oneDNN, double uses loops.
namespace torpor::emulator {

// The operands' shapes; the gradients have the same shapes.
struct ConvolutionShape {
  DnnConvolution convolution;
  DnnTensor x;
  DnnFilter w;
  DnnTensor y;
};

// Whether y has the shape that x, w and the convolution give.
bool ShapesAgree(const ConvolutionShape& shape);

template <typename T>
std::vector<T> ConvolveForward(const ConvolutionShape& shape, const std::vector<T>& x,
                               const std::vector<T>& w);
// Return the gradient of x and the gradient of w.
template <typename T>
std::vector<T> ConvolveBackwardData(const ConvolutionShape& shape, const std::vector<T>& w,
                                    const std::vector<T>& dy);
template <typename T>
std::vector<T> ConvolveBackwardFilter(const ConvolutionShape& shape, const std::vector<T>& x,
                                      const std::vector<T>& dy);

}  // namespace torpor::emulator
