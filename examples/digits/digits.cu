// digits: an inference function that recognises handwritten digits. POST /predict with
// {"pixels":[64 numbers 0..16]}, {"images":[[...],...]}, or 64 raw bytes an image as
// application/octet-stream.
#include <algorithm>
#include <string>
#include <vector>

#include "examples/digits/model.h"
#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "examples/service/json_numbers.h"

namespace torpor::examples::digits {
namespace {

constexpr int kMaxImages = 64;

// One block an image, one thread a pixel; every thread computes its pixel of all outputs.
template <int kInputs, int kOutputs>
__global__ void ConvolutionRelu(const float* input, const float* weights, const float* bias,
                                float scale, float* output) {
  __shared__ float padded[kInputs][kSide + 2][kSide + 2];
  const int y = static_cast<int>(threadIdx.y);
  const int x = static_cast<int>(threadIdx.x);
  const int thread = y * kSide + x;
  float* flat = &padded[0][0][0];
  for (int i = thread; i < kInputs * (kSide + 2) * (kSide + 2); i += kPixels) flat[i] = 0;
  __syncthreads();
  for (int c = 0; c < kInputs; ++c) {
    padded[c][y + 1][x + 1] = scale * input[(blockIdx.x * kInputs + c) * kPixels + thread];
  }
  __syncthreads();
  for (int o = 0; o < kOutputs; ++o) {
    float sum = bias[o];
    for (int c = 0; c < kInputs; ++c) {
      for (int k = 0; k < 9; ++k) {
        sum = fmaf(weights[(o * kInputs + c) * 9 + k], padded[c][y + k / 3][x + k % 3], sum);
      }
    }
    output[(blockIdx.x * kOutputs + o) * kPixels + thread] = fmaxf(sum, 0.0F);
  }
}

__global__ void MaxPool(const float* input, float* output, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const int x = i % kPooledSide;
  const int y = i / kPooledSide % kPooledSide;
  const float* corner = input + i / (kPooledSide * kPooledSide) * kPixels + 2 * y * kSide + 2 * x;
  output[i] = fmaxf(fmaxf(corner[0], corner[1]), fmaxf(corner[kSide], corner[kSide + 1]));
}

__global__ void BiasRelu(float* values, const float* bias, int width, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] = fmaxf(values[i] + bias[i % width], 0.0F);
}

// One warp an image: lanes 0..9 hold a class each.
__global__ void BiasSoftmax(const float* logits, const float* bias, float* probabilities) {
  const int lane = static_cast<int>(threadIdx.x);
  const bool used = lane < kClasses;
  const int at = static_cast<int>(blockIdx.x) * kClasses + lane;
  const float logit = used ? logits[at] + bias[lane] : -INFINITY;
  float largest = logit;
  for (int step = 16; step > 0; step /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, step));
  }
  const float power = used ? expf(logit - largest) : 0.0F;
  float sum = power;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
  if (used) probabilities[at] = power / sum;
}

// The network on the GPU. Its methods are called by one thread at a time.
class Model {
 public:
  explicit Model(const std::vector<float>& weights) {
    Check(cublasCreate(&blas_));
    Allocate(&weights_, kWeights);
    Allocate(&images_, kMaxImages * kPixels);
    Allocate(&conv1_, kMaxImages * kConv1 * kPixels);
    Allocate(&conv2_, kMaxImages * kConv2 * kPixels);
    Allocate(&pooled_, kMaxImages * kPooled);
    Allocate(&hidden_, kMaxImages * kHidden);
    Allocate(&logits_, kMaxImages * kClasses);
    Allocate(&probabilities_, kMaxImages * kClasses);
    Check(cudaMemcpy(weights_, weights.data(), kWeights * sizeof(float), cudaMemcpyHostToDevice));
  }

  // `pixels` holds whole images, kMaxImages at most. Returns kClasses probabilities an image.
  std::vector<float> Predict(const std::vector<float>& pixels) {
    const int count = static_cast<int>(pixels.size()) / kPixels;
    Check(cudaMemcpyAsync(images_, pixels.data(), pixels.size() * sizeof(float),
                          cudaMemcpyHostToDevice));
    const dim3 pixel_threads(kSide, kSide);
    ConvolutionRelu<1, kConv1><<<count, pixel_threads>>>(images_, weights_ + kConv1Weights,
                                                         weights_ + kConv1Bias, 1 / kWhite, conv1_);
    ConvolutionRelu<kConv1, kConv2><<<count, pixel_threads>>>(conv1_, weights_ + kConv2Weights,
                                                              weights_ + kConv2Bias, 1.0F, conv2_);
    MaxPool<<<Blocks(count * kPooled), kThreads>>>(conv2_, pooled_, count * kPooled);
    Dense(pooled_, weights_ + kDense1Weights, kPooled, kHidden, count, hidden_);
    BiasRelu<<<Blocks(count * kHidden), kThreads>>>(hidden_, weights_ + kDense1Bias, kHidden,
                                                    count * kHidden);
    Dense(hidden_, weights_ + kDense2Weights, kHidden, kClasses, count, logits_);
    BiasSoftmax<<<count, 32>>>(logits_, weights_ + kDense2Bias, probabilities_);
    Check(cudaGetLastError());
    std::vector<float> probabilities(static_cast<std::size_t>(count) * kClasses);
    Check(cudaMemcpy(probabilities.data(), probabilities_, probabilities.size() * sizeof(float),
                     cudaMemcpyDeviceToHost));
    return probabilities;
  }

 private:
  static constexpr int kThreads = 128;

  static int Blocks(int threads) { return (threads + kThreads - 1) / kThreads; }

  static void Allocate(float** pointer, std::size_t count) {
    Check(cudaMalloc(pointer, count * sizeof(float)));
  }

  // Row-major output[count][outputs] = input[count][inputs] * weights[inputs][outputs]; cuBLAS
  // is column-major and so sees the transposes.
  void Dense(const float* input, const float* weights, int inputs, int outputs, int count,
             float* output) {
    const float one = 1;
    const float zero = 0;
    Check(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, outputs, count, inputs, &one, weights,
                      outputs, input, inputs, &zero, output, outputs));
  }

  cublasHandle_t blas_ = nullptr;
  float* weights_ = nullptr;
  float* images_ = nullptr;
  float* conv1_ = nullptr;
  float* conv2_ = nullptr;
  float* pooled_ = nullptr;
  float* hidden_ = nullptr;
  float* logits_ = nullptr;
  float* probabilities_ = nullptr;
};

std::string Usage() {
  return std::string(R"(usage: digits [--host ADDRESS] [--port N] [--weights FILE]

Serves a convolutional network for 8x8 handwritten digits.

)") + kEndpointUsage +
         R"(  --weights FILE  default: digits.f32 beside the program

  POST /predict   {"pixels":[64 numbers 0..16]}  ->  {"label":L,"probabilities":[10 numbers]}
                  {"images":[[64 numbers],...]}  ->  {"predictions":[...]}, at most 64 images
                  application/octet-stream, 64 bytes an image  ->  {"predictions":[...]}
  GET /healthz    200 when the model is loaded
)";
}

struct Images {
  std::vector<float> pixels;
  bool single = false;  // asked for as one image, and so answered as one
};

// False when the body is not what the usage says.
bool ReadImages(const HttpRequest& request, Images* images) {
  if (request.content_type == "application/octet-stream") {
    for (const char c : request.body) {
      images->pixels.push_back(static_cast<float>(static_cast<unsigned char>(c)));
    }
  } else if (const auto members = ParseNumbers(request.body)) {
    images->single = members->count("pixels") != 0;
    const auto member = members->find(images->single ? "pixels" : "images");
    if (member == members->end()) return false;
    images->pixels.assign(member->second.begin(), member->second.end());
  }
  const std::size_t count = images->pixels.size() / kPixels;
  return images->pixels.size() % kPixels == 0 && count >= 1 && count <= kMaxImages &&
         (!images->single || count == 1);
}

std::string FormatAnswer(const std::vector<float>& probabilities, bool single) {
  if (single) return FormatPrediction(probabilities.data()) + "\n";
  std::string text = "{\"predictions\":[";
  for (std::size_t i = 0; i < probabilities.size(); i += kClasses) {
    text += (i == 0 ? "" : ",") + FormatPrediction(probabilities.data() + i);
  }
  return text + "]}\n";
}

int Main(int argc, char** argv) {
  Flags known = EndpointFlags();
  known["weights"] = ProgramFolder() + "/digits.f32";
  const Flags flags = ParseFlags(argc, argv, Usage(), known);
  Model model(ReadWeights(flags.at("weights")));
  model.Predict(std::vector<float>(kPixels));  // loads the kernels before the first request
  Serve(flags, InferenceHandler("/predict", [&](const HttpRequest& request) -> HttpResponse {
          Images images;
          if (!ReadImages(request, &images)) {
            return {400, "{\"error\":\"send pixels (64 numbers) or images (1 to 64 of them)\"}\n"};
          }
          return {200, FormatAnswer(model.Predict(images.pixels), images.single)};
        }));
  return 0;
}

}  // namespace
}  // namespace torpor::examples::digits

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("digits", torpor::examples::digits::Main, argc, argv);
}
