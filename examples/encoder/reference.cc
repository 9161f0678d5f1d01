#include "examples/encoder/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace torpor::examples::encoder {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // one a token

class Reference {
 public:
  Reference(const Shape& shape, const Weights& weights)
      : shape_(shape),
        at_(weights.at),
        values_(weights.values.data()),
        width_(static_cast<std::size_t>(shape.hidden)) {}

  Row Embedding(const std::vector<int>& tokens) const {
    Rows x = Embed(tokens);
    for (const LayerOf<Tensor>& layer : at_.layers) {
      Add(&x,
          Linear(Attention(Linear(Norm(x, layer.attention_norm_scale, layer.attention_norm_bias),
                                  layer.qkv, layer.qkv_bias, 3 * width_)),
                 layer.projection, layer.projection_bias, width_));
      Rows inner = Linear(Norm(x, layer.inner_norm_scale, layer.inner_norm_bias), layer.up,
                          layer.up_bias, static_cast<std::size_t>(shape_.Inner()));
      for (Row& row : inner) std::transform(row.begin(), row.end(), row.begin(), Gelu);
      Add(&x, Linear(inner, layer.down, layer.down_bias, width_));
    }
    return Mean(Norm(x, at_.final_norm_scale, at_.final_norm_bias));
  }

 private:
  static double Gelu(double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); }

  static void Add(Rows* x, const Rows& y) {
    for (std::size_t t = 0; t < y.size(); ++t) {
      for (std::size_t i = 0; i < y[t].size(); ++i) (*x)[t][i] += y[t][i];
    }
  }

  Row Mean(const Rows& x) const {
    Row mean(width_, 0);
    for (const Row& row : x) {
      for (std::size_t i = 0; i < width_; ++i) {
        mean[i] += row[i] / static_cast<double>(x.size());
      }
    }
    return mean;
  }

  double Value(Tensor tensor, std::size_t at) const {
    return static_cast<double>(values_[tensor.begin + at]);
  }

  Rows Embed(const std::vector<int>& tokens) const {
    Rows x(tokens.size(), Row(width_));
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      for (std::size_t i = 0; i < width_; ++i) {
        x[t][i] = Value(at_.tokens, static_cast<std::size_t>(tokens[t]) * width_ + i) +
                  Value(at_.positions, t * width_ + i);
      }
    }
    return x;
  }

  Rows Norm(const Rows& x, Tensor scale, Tensor bias) const {
    Rows y = x;
    for (Row& row : y) {
      double mean = 0;
      double square = 0;
      for (const double v : row) mean += v / static_cast<double>(width_);
      for (const double v : row) square += (v - mean) * (v - mean);
      const double deviation =
          std::sqrt(square / static_cast<double>(width_) + static_cast<double>(kNormEpsilon));
      for (std::size_t i = 0; i < width_; ++i) {
        row[i] = (row[i] - mean) / deviation * Value(scale, i) + Value(bias, i);
      }
    }
    return y;
  }

  Rows Linear(const Rows& x, Tensor matrix, Tensor bias, std::size_t outputs) const {
    Rows y(x.size(), Row(values_ + bias.begin, values_ + bias.begin + outputs));
    for (std::size_t i = 0; i < x.front().size(); ++i) {
      const float* weights = values_ + matrix.begin + i * outputs;
      for (std::size_t t = 0; t < x.size(); ++t) {
        double* row = y[t].data();
        const double factor = x[t][i];
        for (std::size_t o = 0; o < outputs; ++o)
          row[o] += factor * static_cast<double>(weights[o]);
      }
    }
    return y;
  }

  // Of rows that hold query, key and value side by side.
  Rows Attention(const Rows& qkv) const {
    Rows output(qkv.size(), Row(width_, 0));
    for (std::size_t head = 0; head < width_; head += kHeadWidth) {
      for (std::size_t t = 0; t < qkv.size(); ++t) {
        const Row weights = AttentionWeights(qkv, t, head);
        for (std::size_t u = 0; u < qkv.size(); ++u) {
          for (std::size_t i = head; i < head + kHeadWidth; ++i) {
            output[t][i] += weights[u] * qkv[u][2 * width_ + i];
          }
        }
      }
    }
    return output;
  }

  Row AttentionWeights(const Rows& qkv, std::size_t t, std::size_t head) const {
    Row weights(qkv.size(), 0);
    for (std::size_t u = 0; u < qkv.size(); ++u) {
      for (std::size_t i = head; i < head + kHeadWidth; ++i) {
        weights[u] += qkv[t][i] * qkv[u][width_ + i] / std::sqrt(kHeadWidth);
      }
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& w : weights) sum += w = std::exp(w - largest);
    for (double& w : weights) w /= sum;
    return weights;
  }

  const Shape& shape_;
  const EncoderOf<Tensor>& at_;
  const float* const values_;
  const std::size_t width_;
};

}  // namespace

std::vector<double> ReferenceEmbedding(const Shape& shape, const Weights& weights,
                                       const std::vector<int>& tokens) {
  return Reference(shape, weights).Embedding(tokens);
}

}  // namespace torpor::examples::encoder
