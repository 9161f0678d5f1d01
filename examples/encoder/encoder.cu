// encoder: an inference function that turns token ids into an embedding by a transformer
// encoder. POST /encode with {"tokens":[1 to 128 ids]}.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "examples/encoder/model.h"
#include "examples/encoder/shape_flags.h"
#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "examples/service/json_numbers.h"

namespace torpor::examples::encoder {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

__device__ float WarpSum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  return value;
}

// The sum over the block, in every thread.
__device__ float BlockSum(float value) {
  __shared__ float partial[kWarps];
  value = WarpSum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += partial[warp];
  __syncthreads();
  return sum;
}

// A block a token.
__global__ void Embed(const int* tokens, const float* table, const float* positions, int hidden,
                      float* x) {
  const float* row = table + static_cast<std::size_t>(tokens[blockIdx.x]) * hidden;
  for (int i = static_cast<int>(threadIdx.x); i < hidden; i += kThreads) {
    const std::size_t at = static_cast<std::size_t>(blockIdx.x) * hidden + i;
    x[at] = row[i] + positions[at];
  }
}

// A block a token.
__global__ void LayerNorm(const float* x, const float* scale, const float* bias, int hidden,
                          float* y) {
  const float* row = x + static_cast<std::size_t>(blockIdx.x) * hidden;
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int i = thread; i < hidden; i += kThreads) sum += row[i];
  const float mean = BlockSum(sum) / static_cast<float>(hidden);
  float squares = 0;
  for (int i = thread; i < hidden; i += kThreads) squares += (row[i] - mean) * (row[i] - mean);
  const float inverse = rsqrtf(BlockSum(squares) / static_cast<float>(hidden) + kNormEpsilon);
  for (int i = thread; i < hidden; i += kThreads) {
    y[static_cast<std::size_t>(blockIdx.x) * hidden + i] =
        (row[i] - mean) * inverse * scale[i] + bias[i];
  }
}

__global__ void AddBias(float* x, const float* bias, int width, int count) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i < count) x[i] += bias[i % width];
}

__global__ void AddBiasGelu(float* x, const float* bias, int width, int count) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= count) return;
  const float v = x[i] + bias[i % width];
  x[i] = 0.5F * v * (1 + erff(v * 0.70710678F));
}

__global__ void AddBiasResidual(float* x, const float* y, const float* bias, int width, int count) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i < count) x[i] += y[i] + bias[i % width];
}

// Attention's weights: a softmax over every row of `columns` scores, a warp a row.
__global__ void AttentionSoftmax(float* scores, int rows, int columns) {
  const int row_index = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row_index >= rows) return;
  float* row = scores + static_cast<std::size_t>(row_index) * columns;
  float largest = -INFINITY;
  for (int i = lane; i < columns; i += 32) largest = fmaxf(largest, row[i]);
  for (int step = 16; step > 0; step /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, step));
  }
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += row[i] = expf(row[i] - largest);
  const float inverse = 1 / WarpSum(sum);
  for (int i = lane; i < columns; i += 32) row[i] *= inverse;
}

__global__ void MeanOverTokens(const float* x, int tokens, int hidden, float* mean) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= hidden) return;
  float sum = 0;
  for (int t = 0; t < tokens; ++t) sum += x[static_cast<std::size_t>(t) * hidden + i];
  mean[i] = sum / static_cast<float>(tokens);
}

// The encoder on the GPU. Its methods are called by one thread at a time.
class Model {
 public:
  Model(const Shape& shape, const Weights& weights)
      : shape_(shape), weights_(Upload(weights)), hidden_(static_cast<std::size_t>(shape.hidden)) {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    Check(cublasCreate(&blas_));
    Check(cublasSetStream(blas_, stream_));
    x_ = Allocate(kMaxTokens * hidden_);
    normed_ = Allocate(kMaxTokens * hidden_);
    qkv_ = Allocate(kMaxTokens * hidden_ * 3);
    scores_ = Allocate(static_cast<std::size_t>(shape.Heads()) * kMaxTokens * kMaxTokens);
    mixed_ = Allocate(kMaxTokens * hidden_);
    inner_ = Allocate(kMaxTokens * hidden_ * 4);
    embedding_ = Allocate(hidden_);
    Check(cudaMalloc(&tokens_, kMaxTokens * sizeof(int)));
    Check(cudaMallocHost(&host_tokens_, kMaxTokens * sizeof(int)));
    Check(cudaMallocHost(&host_embedding_, hidden_ * sizeof(float)));
  }

  // 1 to kMaxTokens ids below the vocabulary. The answer stays valid until the next call.
  const float* Encode(const std::vector<int>& tokens) {
    const int count = static_cast<int>(tokens.size());
    std::copy(tokens.begin(), tokens.end(), host_tokens_);
    Check(cudaMemcpyAsync(tokens_, host_tokens_, tokens.size() * sizeof(int),
                          cudaMemcpyHostToDevice, stream_));
    Embed<<<count, kThreads, 0, stream_>>>(tokens_, weights_.tokens, weights_.positions,
                                           shape_.hidden, x_);
    for (const Layer& layer : weights_.layers) {
      Attention(layer, count);
      FeedForward(layer, count);
    }
    Norm(weights_.final_norm_scale, weights_.final_norm_bias, count);
    MeanOverTokens<<<Blocks(shape_.hidden), kThreads, 0, stream_>>>(normed_, count, shape_.hidden,
                                                                    embedding_);
    Check(cudaGetLastError());
    Check(cudaMemcpyAsync(host_embedding_, embedding_, hidden_ * sizeof(float),
                          cudaMemcpyDeviceToHost, stream_));
    Check(cudaStreamSynchronize(stream_));
    return host_embedding_;
  }

 private:
  using Layer = LayerOf<const float*>;

  static int Blocks(int threads) { return (threads + kThreads - 1) / kThreads; }

  static float* Allocate(std::size_t count) {
    float* pointer = nullptr;
    Check(cudaMalloc(&pointer, count * sizeof(float)));
    return pointer;
  }

  // Each tensor is an allocation of its own, as frameworks have it.
  static EncoderOf<const float*> Upload(const Weights& weights) {
    const auto upload = [&](Tensor tensor) -> const float* {
      float* const copy = Allocate(tensor.count);
      Check(cudaMemcpy(copy, weights.values.data() + tensor.begin, tensor.count * sizeof(float),
                       cudaMemcpyHostToDevice));
      return copy;
    };
    const EncoderOf<Tensor>& at = weights.at;
    EncoderOf<const float*> uploaded;
    uploaded.tokens = upload(at.tokens);
    uploaded.positions = upload(at.positions);
    for (const LayerOf<Tensor>& layer : at.layers) {
      uploaded.layers.push_back(
          {upload(layer.attention_norm_scale), upload(layer.attention_norm_bias), upload(layer.qkv),
           upload(layer.qkv_bias), upload(layer.projection), upload(layer.projection_bias),
           upload(layer.inner_norm_scale), upload(layer.inner_norm_bias), upload(layer.up),
           upload(layer.up_bias), upload(layer.down), upload(layer.down_bias)});
    }
    uploaded.final_norm_scale = upload(at.final_norm_scale);
    uploaded.final_norm_bias = upload(at.final_norm_bias);
    return uploaded;
  }

  void Attention(const Layer& layer, int count) {
    const int width = shape_.hidden;
    Norm(layer.attention_norm_scale, layer.attention_norm_bias, count);
    Linear(normed_, layer.qkv, width, 3 * width, count, qkv_);
    AddBias<<<Blocks(count * 3 * width), kThreads, 0, stream_>>>(qkv_, layer.qkv_bias, 3 * width,
                                                                 count * 3 * width);
    AttentionPerHead(count);
    Linear(mixed_, layer.projection, width, width, count, normed_);
    AddResidual(normed_, layer.projection_bias, count);
  }

  // All heads at once: scores = query key^T / sqrt(head width), mixed = softmax(scores) value.
  void AttentionPerHead(int count) {
    const float scale = 1 / std::sqrt(static_cast<float>(kHeadWidth));
    const int stride = 3 * shape_.hidden;
    const long long square = static_cast<long long>(count) * count;
    const float* query = qkv_;
    const float* key = qkv_ + hidden_;
    const float* value = qkv_ + 2 * hidden_;
    Check(cublasSgemmStridedBatched(blas_, CUBLAS_OP_T, CUBLAS_OP_N, count, count, kHeadWidth,
                                    &scale, key, stride, kHeadWidth, query, stride, kHeadWidth,
                                    &kZero, scores_, count, square, shape_.Heads()));
    const int rows = shape_.Heads() * count;
    AttentionSoftmax<<<(rows + kWarps - 1) / kWarps, kThreads, 0, stream_>>>(scores_, rows, count);
    Check(cublasSgemmStridedBatched(blas_, CUBLAS_OP_N, CUBLAS_OP_N, kHeadWidth, count, count,
                                    &kOne, value, stride, kHeadWidth, scores_, count, square,
                                    &kZero, mixed_, shape_.hidden, kHeadWidth, shape_.Heads()));
  }

  void FeedForward(const Layer& layer, int count) {
    Norm(layer.inner_norm_scale, layer.inner_norm_bias, count);
    Linear(normed_, layer.up, shape_.hidden, shape_.Inner(), count, inner_);
    const int elements = count * shape_.Inner();
    AddBiasGelu<<<Blocks(elements), kThreads, 0, stream_>>>(inner_, layer.up_bias, shape_.Inner(),
                                                            elements);
    Linear(inner_, layer.down, shape_.Inner(), shape_.hidden, count, normed_);
    AddResidual(normed_, layer.down_bias, count);
  }

  void Norm(const float* scale, const float* bias, int count) {
    LayerNorm<<<count, kThreads, 0, stream_>>>(x_, scale, bias, shape_.hidden, normed_);
  }

  void AddResidual(const float* y, const float* bias, int count) {
    const int elements = count * shape_.hidden;
    AddBiasResidual<<<Blocks(elements), kThreads, 0, stream_>>>(x_, y, bias, shape_.hidden,
                                                                elements);
  }

  // Row-major output[count][outputs] = input[count][inputs] * matrix[inputs][outputs]; cuBLAS
  // is column-major and so sees the transposes.
  void Linear(const float* input, const float* matrix, int inputs, int outputs, int count,
              float* output) {
    Check(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, outputs, count, inputs, &kOne, matrix,
                      outputs, input, inputs, &kZero, output, outputs));
  }

  static constexpr float kOne = 1;
  static constexpr float kZero = 0;

  const Shape shape_;
  const EncoderOf<const float*> weights_;
  const std::size_t hidden_;
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  float* x_ = nullptr;       // the residual stream, [tokens][hidden]
  float* normed_ = nullptr;  // [tokens][hidden], and a matrix product's output
  float* qkv_ = nullptr;     // [tokens][3 hidden]
  float* scores_ = nullptr;  // [heads][tokens][tokens]
  float* mixed_ = nullptr;   // attention's output, [tokens][hidden]
  float* inner_ = nullptr;   // [tokens][4 hidden]
  float* embedding_ = nullptr;
  int* tokens_ = nullptr;
  int* host_tokens_ = nullptr;  // pinned, as host_embedding_
  float* host_embedding_ = nullptr;
};

std::string Usage() {
  return std::string(R"(usage: encoder [--host ADDRESS] [--port N] [flags]

Serves a transformer encoder whose weights are made from a seed.

)") + kEndpointUsage +
         kShapeUsage + R"(
  POST /encode    {"tokens":[1 to 128 ids]}  ->  {"embedding":[hidden numbers]}
  GET /healthz    200 when the model is loaded
)";
}

// False unless the body is {"tokens":[...]} with ids that the model knows.
bool ReadTokens(const HttpRequest& request, int vocabulary, std::vector<int>* tokens) {
  const auto members = ParseNumbers(request.body);
  if (!members || members->count("tokens") == 0) return false;
  for (const double id : members->at("tokens")) {
    if (!(id >= 0 && id < vocabulary)) return false;
    tokens->push_back(static_cast<int>(id));
  }
  return !tokens->empty() && tokens->size() <= kMaxTokens;
}

int Main(int argc, char** argv) {
  Flags known = EndpointFlags();
  known.merge(ShapeFlags());
  const Flags flags = ParseFlags(argc, argv, Usage(), known);
  const Shape shape = ShapeFromFlags(flags);
  Model model(shape, MakeWeights(shape));
  model.Encode(std::vector<int>(kMaxTokens));  // loads the kernels before the first request
  Serve(flags, InferenceHandler("/encode", [&](const HttpRequest& request) -> HttpResponse {
          std::vector<int> tokens;
          if (!ReadTokens(request, shape.vocabulary, &tokens)) {
            return {400, "{\"error\":\"send tokens: 1 to 128 ids below the vocabulary's size\"}\n"};
          }
          return {200, FormatEmbedding(model.Encode(tokens), shape.hidden) + "\n"};
        }));
  return 0;
}

}  // namespace
}  // namespace torpor::examples::encoder

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("encoder", torpor::examples::encoder::Main, argc, argv);
}
