#include "examples/digits/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "examples/digits/model.h"

namespace torpor::examples::digits {
namespace {

using Image = std::vector<double>;  // one channel, kSide x kSide

std::size_t PixelIndex(int y, int x) {
  return static_cast<std::size_t>(y) * kSide + static_cast<std::size_t>(x);
}

double At(const Image& image, int y, int x) {
  if (y < 0 || x < 0 || y >= kSide || x >= kSide) return 0;
  return image[PixelIndex(y, x)];
}

std::vector<Image> ConvolutionRelu(const std::vector<Image>& input, const float* weights,
                                   const float* bias, int channels) {
  std::vector<Image> output;
  for (int channel = 0; channel < channels; ++channel) {
    Image image(kPixels, static_cast<double>(bias[channel]));
    for (const Image& source : input) {
      for (int y = 0; y < kSide; ++y) {
        for (int x = 0; x < kSide; ++x) {
          for (int k = 0; k < 9; ++k) {
            image[PixelIndex(y, x)] +=
                static_cast<double>(weights[k]) * At(source, y + k / 3 - 1, x + k % 3 - 1);
          }
        }
      }
      weights += 9;
    }
    for (double& value : image) value = std::max(value, 0.0);
    output.push_back(image);
  }
  return output;
}

std::vector<double> MaxPool(const std::vector<Image>& images) {
  std::vector<double> pooled;
  for (const Image& image : images) {
    for (int y = 0; y < kSide; y += 2) {
      for (int x = 0; x < kSide; x += 2) {
        pooled.push_back(std::max(
            {At(image, y, x), At(image, y, x + 1), At(image, y + 1, x), At(image, y + 1, x + 1)}));
      }
    }
  }
  return pooled;
}

std::vector<double> Dense(const std::vector<double>& input, const float* weights, const float* bias,
                          int outputs) {
  std::vector<double> output(bias, bias + outputs);
  for (const double value : input) {
    for (double& sum : output) sum += value * static_cast<double>(*weights++);
  }
  return output;
}

}  // namespace

std::vector<double> ReferenceLogits(const std::vector<float>& weights,
                                    const std::vector<double>& pixels) {
  const float* w = weights.data();
  Image image = pixels;
  for (double& value : image) value /= static_cast<double>(kWhite);
  const auto first = ConvolutionRelu({image}, w + kConv1Weights, w + kConv1Bias, kConv1);
  const auto second = ConvolutionRelu(first, w + kConv2Weights, w + kConv2Bias, kConv2);
  auto hidden = Dense(MaxPool(second), w + kDense1Weights, w + kDense1Bias, kHidden);
  for (double& value : hidden) value = std::max(value, 0.0);
  return Dense(hidden, w + kDense2Weights, w + kDense2Bias, kClasses);
}

std::vector<double> Softmax(const std::vector<double>& logits) {
  std::vector<double> values = logits;
  const double largest = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value - largest);
  for (double& value : values) value /= sum;
  return values;
}

}  // namespace torpor::examples::digits
