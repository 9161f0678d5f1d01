#pragma once

#include <vector>

#include "examples/encoder/model.h"

namespace torpor::examples::encoder {

// The encoder on the CPU in plain loops and double precision, written independently of the
// kernels: what their answers are checked against. Returns `hidden` numbers.
std::vector<double> ReferenceEmbedding(const Shape& shape, const Weights& weights,
                                       const std::vector<int>& tokens);

}  // namespace torpor::examples::encoder
