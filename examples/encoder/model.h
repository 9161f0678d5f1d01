#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace torpor::examples::encoder {

inline constexpr int kHeadWidth = 64;
inline constexpr int kMaxTokens = 128;
inline constexpr float kNormEpsilon = 1e-5F;

// Which encoder: different shapes and seeds make different functions.
struct Shape {
  int layers = 4;
  int hidden = 256;  // a multiple of kHeadWidth
  int vocabulary = 8192;
  std::uint64_t seed = 1;

  int Heads() const { return hidden / kHeadWidth; }
  int Inner() const { return 4 * hidden; }  // width of the feed-forward part
};

// Where a tensor lies in the weights, counted in floats.
struct Tensor {
  std::size_t begin = 0;
  std::size_t count = 0;
};

// A layer's tensors, as whatever stands for one. Matrices are row-major [inputs][outputs].
template <typename T>
struct LayerOf {
  T attention_norm_scale, attention_norm_bias;  // [hidden]
  T qkv, qkv_bias;                              // [hidden][3 hidden]
  T projection, projection_bias;                // [hidden][hidden]
  T inner_norm_scale, inner_norm_bias;          // [hidden]
  T up, up_bias;                                // [hidden][inner]
  T down, down_bias;                            // [inner][hidden]
};

// An encoder's tensors.
template <typename T>
struct EncoderOf {
  T tokens;     // [vocabulary][hidden]
  T positions;  // [kMaxTokens][hidden]
  std::vector<LayerOf<T>> layers;
  T final_norm_scale, final_norm_bias;  // [hidden]
};

// An encoder's weights, made from its seed: the same numbers on every machine.
struct Weights {
  EncoderOf<Tensor> at;
  std::vector<float> values;
};
Weights MakeWeights(const Shape& shape);

// The answer to a request: {"embedding":[hidden numbers]}.
std::string FormatEmbedding(const float* values, int hidden);

}  // namespace torpor::examples::encoder
