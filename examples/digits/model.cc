#include "examples/digits/model.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "examples/service/json_numbers.h"

namespace torpor::examples::digits {

std::vector<float> ReadWeights(const std::string& path) {
  std::vector<float> weights(kWeights);
  constexpr auto kBytes = static_cast<std::streamsize>(kWeights * sizeof(float));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(weights.data()), kBytes);
  if (file.gcount() != kBytes || file.peek() != std::ifstream::traits_type::eof()) {
    throw std::runtime_error(path + ": not the " + std::to_string(kBytes) + " bytes of weights");
  }
  return weights;
}

std::string FormatPrediction(const float* probabilities) {
  const auto label = std::max_element(probabilities, probabilities + kClasses) - probabilities;
  return "{\"label\":" + std::to_string(label) +
         ",\"probabilities\":" + FormatNumbers(probabilities, kClasses, 5) + "}";
}

}  // namespace torpor::examples::digits
