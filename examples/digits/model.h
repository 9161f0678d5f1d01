#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace torpor::examples::digits {

// The network that train.py trains: shapes, and where each tensor starts in weights.f32.
inline constexpr int kSide = 8;
inline constexpr int kPixels = kSide * kSide;
inline constexpr int kConv1 = 8;
inline constexpr int kConv2 = 16;
inline constexpr int kPooledSide = kSide / 2;
inline constexpr int kPooled = kConv2 * kPooledSide * kPooledSide;
inline constexpr int kHidden = 48;
inline constexpr int kClasses = 10;
inline constexpr float kWhite = 16.0F;  // the pixels' largest value

inline constexpr std::size_t kConv1Weights = 0;                                  // [8][1][3][3]
inline constexpr std::size_t kConv1Bias = kConv1Weights + kConv1 * 9;            // [8]
inline constexpr std::size_t kConv2Weights = kConv1Bias + kConv1;                // [16][8][3][3]
inline constexpr std::size_t kConv2Bias = kConv2Weights + kConv2 * kConv1 * 9;   // [16]
inline constexpr std::size_t kDense1Weights = kConv2Bias + kConv2;               // [256][48]
inline constexpr std::size_t kDense1Bias = kDense1Weights + kPooled * kHidden;   // [48]
inline constexpr std::size_t kDense2Weights = kDense1Bias + kHidden;             // [48][10]
inline constexpr std::size_t kDense2Bias = kDense2Weights + kHidden * kClasses;  // [10]
inline constexpr std::size_t kWeights = kDense2Bias + kClasses;

// The file's kWeights numbers. Throws std::runtime_error when it is missing or of another size.
std::vector<float> ReadWeights(const std::string& path);

// The answer to one image: {"label":3,"probabilities":[...]}.
std::string FormatPrediction(const float* probabilities);

}  // namespace torpor::examples::digits
