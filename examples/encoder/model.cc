#include "examples/encoder/model.h"

#include <cmath>

#include "examples/service/json_numbers.h"

namespace torpor::examples::encoder {
namespace {

// SplitMix64's output function: a hash good enough to be a random number at any index.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

class Generator {
 public:
  Generator(std::uint64_t seed, std::vector<float>* values) : seed_(Mix(seed)), values_(values) {}

  // Appends `count` numbers uniform in `centre` +- `spread`; returns where they are.
  Tensor Add(std::size_t count, double centre, double spread) {
    const std::size_t start = values_->size();
    values_->resize(start + count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = Mix(seed_ ^ (start + i)) >> 11;
      const double unit = static_cast<double>(bits) * 0x1p-52 - 1;
      (*values_)[start + i] = static_cast<float>(centre + spread * unit);
    }
    return {start, count};
  }

  // A matrix that keeps its input's variance.
  Tensor AddMatrix(int inputs, int outputs) {
    return Add(static_cast<std::size_t>(inputs) * static_cast<std::size_t>(outputs), 0,
               std::sqrt(3.0 / inputs));
  }
  Tensor AddScale(int width) { return Add(static_cast<std::size_t>(width), 1, 0.1); }
  Tensor AddBias(int width) { return Add(static_cast<std::size_t>(width), 0, 0.1); }

 private:
  const std::uint64_t seed_;
  std::vector<float>* values_;
};

LayerOf<Tensor> AddLayer(const Shape& shape, Generator* generator) {
  LayerOf<Tensor> at;
  at.attention_norm_scale = generator->AddScale(shape.hidden);
  at.attention_norm_bias = generator->AddBias(shape.hidden);
  at.qkv = generator->AddMatrix(shape.hidden, 3 * shape.hidden);
  at.qkv_bias = generator->AddBias(3 * shape.hidden);
  at.projection = generator->AddMatrix(shape.hidden, shape.hidden);
  at.projection_bias = generator->AddBias(shape.hidden);
  at.inner_norm_scale = generator->AddScale(shape.hidden);
  at.inner_norm_bias = generator->AddBias(shape.hidden);
  at.up = generator->AddMatrix(shape.hidden, shape.Inner());
  at.up_bias = generator->AddBias(shape.Inner());
  at.down = generator->AddMatrix(shape.Inner(), shape.hidden);
  at.down_bias = generator->AddBias(shape.hidden);
  return at;
}

}  // namespace

Weights MakeWeights(const Shape& shape) {
  Weights weights;
  Generator generator(shape.seed, &weights.values);
  const auto hidden = static_cast<std::size_t>(shape.hidden);
  weights.at.tokens = generator.Add(static_cast<std::size_t>(shape.vocabulary) * hidden, 0, 1);
  weights.at.positions = generator.Add(kMaxTokens * hidden, 0, 0.5);
  for (int layer = 0; layer < shape.layers; ++layer) {
    weights.at.layers.push_back(AddLayer(shape, &generator));
  }
  weights.at.final_norm_scale = generator.AddScale(shape.hidden);
  weights.at.final_norm_bias = generator.AddBias(shape.hidden);
  return weights;
}

std::string FormatEmbedding(const float* values, int hidden) {
  return "{\"embedding\":" + FormatNumbers(values, static_cast<std::size_t>(hidden), 5) + "}";
}

}  // namespace torpor::examples::encoder
