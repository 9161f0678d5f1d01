#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "examples/encoder/model.h"
#include "examples/encoder/reference.h"

namespace torpor::examples::encoder {
namespace {

constexpr Shape kSmall{.layers = 2, .hidden = 64, .vocabulary = 50, .seed = 3};

TEST(EncoderWeightsTest, ComeFromTheSeedAlone) {
  const Weights first = MakeWeights(kSmall);
  const Weights second = MakeWeights(kSmall);
  EXPECT_EQ(first.values, second.values);
  Shape other = kSmall;
  other.seed = 4;
  EXPECT_NE(MakeWeights(other).values, first.values);
}

TEST(EncoderWeightsTest, TensorsFillTheWholeWithoutOverlap) {
  const Weights weights = MakeWeights(kSmall);
  const auto hidden = static_cast<std::size_t>(kSmall.hidden);
  EXPECT_EQ(weights.at.tokens.count, 50 * hidden);
  EXPECT_EQ(weights.at.positions.begin, 50 * hidden);
  EXPECT_EQ(weights.at.layers[0].attention_norm_scale.begin, (50 + kMaxTokens) * hidden);
  const std::size_t layer = 12 * hidden * hidden + 13 * hidden;
  EXPECT_EQ(weights.at.layers[1].qkv.begin - weights.at.layers[0].qkv.begin, layer);
  EXPECT_EQ(weights.values.size(), (50 + kMaxTokens + 2) * hidden + 2 * layer);
}

TEST(EncoderWeightsTest, AreSpreadAsAsked) {
  const Weights weights = MakeWeights(kSmall);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < weights.at.tokens.count; ++i) {
    const auto value = static_cast<double>(weights.values[i]);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(weights.at.tokens.count);
  EXPECT_NEAR(sum / count, 0, 0.05);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.03);
}

TEST(EncoderReferenceTest, OrderAndContextMatter) {
  const Weights weights = MakeWeights(kSmall);
  const auto forward = ReferenceEmbedding(kSmall, weights, {1, 2, 3});
  const auto backward = ReferenceEmbedding(kSmall, weights, {3, 2, 1});
  ASSERT_EQ(forward.size(), 64U);
  double difference = 0;
  double magnitude = 0;
  for (std::size_t i = 0; i < forward.size(); ++i) {
    ASSERT_TRUE(std::isfinite(forward[i]));
    difference = std::max(difference, std::abs(forward[i] - backward[i]));
    magnitude = std::max(magnitude, std::abs(forward[i]));
  }
  EXPECT_GT(difference, 0.05);
  EXPECT_GT(magnitude, 0.5);
  EXPECT_LT(magnitude, 10);
}

// With one token attention's weight is 1, so the scale of the query must not matter.
TEST(EncoderReferenceTest, OneTokenAttendsToItself) {
  Weights weights = MakeWeights(kSmall);
  const auto before = ReferenceEmbedding(kSmall, weights, {7});
  const auto& layer = weights.at.layers[0];
  for (std::size_t row = 0; row < 64; ++row) weights.values[layer.qkv.begin + row * 192] *= 2;
  EXPECT_EQ(ReferenceEmbedding(kSmall, weights, {7}), before);
  EXPECT_NE(ReferenceEmbedding(kSmall, weights, {7, 8}), ReferenceEmbedding(kSmall, weights, {7}));
}

}  // namespace
}  // namespace torpor::examples::encoder
