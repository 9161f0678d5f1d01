#pragma once

#include <vector>

#include "emulator/dnn/convolution.h"

// Correlations in single precision by oneDNN, with the orders and results of convolution.h.
namespace torpor::emulator {

std::vector<float> OneDnnForward(const ConvolutionShape& shape, const std::vector<float>& x,
                                 const std::vector<float>& w);
std::vector<float> OneDnnBackwardData(const ConvolutionShape& shape, const std::vector<float>& w,
                                      const std::vector<float>& dy);
std::vector<float> OneDnnBackwardFilter(const ConvolutionShape& shape, const std::vector<float>& x,
                                        const std::vector<float>& dy);

}  // namespace torpor::emulator
