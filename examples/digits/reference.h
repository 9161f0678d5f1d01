#pragma once

#include <vector>

namespace torpor::examples::digits {

// The network on the CPU in plain loops and double precision, written independently of the
// kernels: what their answers are checked against. `pixels` are 0..16.
std::vector<double> ReferenceLogits(const std::vector<float>& weights,
                                    const std::vector<double>& pixels);

std::vector<double> Softmax(const std::vector<double>& logits);

}  // namespace torpor::examples::digits
