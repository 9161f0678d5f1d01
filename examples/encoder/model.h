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

// Where a layer's tensors start in the weights. Matrices are row-major [inputs][outputs].
struct LayerOffsets {
  std::size_t attention_norm_scale, attention_norm_bias;  // [hidden]
  std::size_t qkv, qkv_bias;                              // [hidden][3 hidden]
  std::size_t projection, projection_bias;                // [hidden][hidden]
  std::size_t inner_norm_scale, inner_norm_bias;          // [hidden]
  std::size_t up, up_bias;                                // [hidden][inner]
  std::size_t down, down_bias;                            // [inner][hidden]
};

struct Offsets {
  std::size_t tokens;     // [vocabulary][hidden]
  std::size_t positions;  // [kMaxTokens][hidden]
  std::vector<LayerOffsets> layers;
  std::size_t final_norm_scale, final_norm_bias;  // [hidden]
};

// An encoder's weights, made from its seed: the same numbers on every machine.
struct Weights {
  Offsets at;
  std::vector<float> values;
};
Weights MakeWeights(const Shape& shape);

// The answer to a request: {"embedding":[hidden numbers]}.
std::string FormatEmbedding(const float* values, int hidden);

}  // namespace torpor::examples::encoder
