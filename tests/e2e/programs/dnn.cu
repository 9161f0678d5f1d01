// cuDNN's legacy API: a small network forward and back, with algorithms that the library chose, in
// single and half precision, on a stream and in a graph.
#include <cuda_fp16.h>
#include <cudnn.h>

#include <cmath>
#include <vector>

#include "tests/e2e/programs/check.h"

#define DNN(call) REQUIRE((call) == CUDNN_STATUS_SUCCESS)

namespace {

constexpr int kImages = 2;
constexpr int kInputs = 3;
constexpr int kOutputs = 8;
constexpr int kSide = 12;  // of an image; convolutions keep it, pooling halves it
constexpr int kWindow = 3;
constexpr int kPooled = kSide / 2;

using Values = std::vector<float>;

Values Numbers(size_t count, int seed) {
  Values numbers(count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<float>((i * 5 + static_cast<size_t>(seed) * 3) % 13) / 13 - 0.5f;
  return numbers;
}

// Numbers of T on the device.
template <typename T>
class Memory {
 public:
  explicit Memory(const Values& values) : count_(values.size()) {
    std::vector<T> converted;
    for (const float value : values) converted.push_back(static_cast<T>(value));
    CUDA(cudaMalloc(&data_, count_ * sizeof(T)));
    CUDA(cudaMemcpy(data_, converted.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Memory() { cudaFree(data_); }
  T* get() const { return data_; }
  Values Download() const {
    std::vector<T> there(count_);
    CUDA(cudaMemcpy(there.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    Values values;
    for (const T value : there) values.push_back(static_cast<float>(value));
    return values;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

cudnnTensorDescriptor_t Tensor(cudnnDataType_t type, int n, int c, int h, int w) {
  cudnnTensorDescriptor_t tensor = nullptr;
  DNN(cudnnCreateTensorDescriptor(&tensor));
  DNN(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, type, n, c, h, w));
  return tensor;
}

size_t Place(int n, int c, int h, int w, int channels, int side) {
  return static_cast<size_t>(((n * channels + c) * side + h) * side + w);
}

// Calls visit(place in x, in w, in y) for each product of the convolution.
template <typename Visit>
void ForEachProduct(Visit visit) {
  for (int n = 0; n < kImages; ++n)
    for (int k = 0; k < kOutputs; ++k)
      for (int c = 0; c < kInputs; ++c)
        for (int h = 0; h < kSide; ++h)
          for (int w = 0; w < kSide; ++w)
            for (int r = 0; r < kWindow; ++r)
              for (int s = 0; s < kWindow; ++s) {
                const int row = h + r - 1;
                const int column = w + s - 1;
                if (row < 0 || row >= kSide || column < 0 || column >= kSide) continue;
                visit(Place(n, c, row, column, kInputs, kSide), Place(k, c, r, s, kInputs, kWindow),
                      Place(n, k, h, w, kOutputs, kSide));
              }
}

void ExpectNear(const Values& got, const Values& expected, float tolerance) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    REQUIRE(std::fabs(got[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i])));
}

// What the network makes of x, by loops.
struct Reference {
  Values activated = Values(kImages * kOutputs * kSide * kSide);
  Values pooled = Values(kImages * kOutputs * kPooled * kPooled);
  Values probabilities = Values(kImages * kOutputs * kPooled * kPooled);

  Reference(const Values& x, const Values& w, const Values& bias) {
    ForEachProduct([&](size_t i, size_t j, size_t k) { activated[k] += x[i] * w[j]; });
    for (size_t i = 0; i < activated.size(); ++i)
      activated[i] = std::fmax(0.0f, activated[i] + bias[i / (kSide * kSide) % kOutputs]);
    for (int n = 0; n < kImages; ++n)
      for (int h = 0; h < kPooled; ++h)
        for (int w_place = 0; w_place < kPooled; ++w_place) {
          double sum = 0;
          for (int c = 0; c < kOutputs; ++c) {
            float largest = 0;
            for (int i = 0; i < 4; ++i)
              largest = std::fmax(
                  largest,
                  activated[Place(n, c, 2 * h + i / 2, 2 * w_place + i % 2, kOutputs, kSide)]);
            pooled[Place(n, c, h, w_place, kOutputs, kPooled)] = largest;
            sum += std::exp(double{largest});
          }
          for (int c = 0; c < kOutputs; ++c) {
            const size_t place = Place(n, c, h, w_place, kOutputs, kPooled);
            probabilities[place] = static_cast<float>(std::exp(double{pooled[place]}) / sum);
          }
        }
  }
};

template <typename T>
class Network {
 public:
  Network(cudnnHandle_t handle, cudnnDataType_t type)
      : handle_(handle),
        x_desc_(Tensor(type, kImages, kInputs, kSide, kSide)),
        y_desc_(Tensor(type, kImages, kOutputs, kSide, kSide)),
        pooled_desc_(Tensor(type, kImages, kOutputs, kPooled, kPooled)),
        bias_desc_(Tensor(type, 1, kOutputs, 1, 1)) {
    DNN(cudnnCreateFilterDescriptor(&w_desc_));
    DNN(cudnnSetFilter4dDescriptor(w_desc_, type, CUDNN_TENSOR_NCHW, kOutputs, kInputs, kWindow,
                                   kWindow));
    DNN(cudnnCreateConvolutionDescriptor(&convolution_));
    DNN(cudnnSetConvolution2dDescriptor(convolution_, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT));
    DNN(cudnnSetConvolutionMathType(convolution_, CUDNN_FMA_MATH));
    DNN(cudnnCreatePoolingDescriptor(&pooling_));
    DNN(cudnnSetPooling2dDescriptor(pooling_, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0,
                                    0, 2, 2));
    DNN(cudnnCreateActivationDescriptor(&relu_));
    DNN(cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
    ChooseAlgorithm();
  }
  ~Network() { cudaFree(workspace_); }

  void Forward() {
    const float one = 1;
    const float zero = 0;
    DNN(cudnnConvolutionForward(handle_, &one, x_desc_, x.get(), w_desc_, w.get(), convolution_,
                                algorithm_, workspace_, workspace_bytes_, &zero, y_desc_, y.get()));
    DNN(cudnnAddTensor(handle_, &one, bias_desc_, bias.get(), &one, y_desc_, y.get()));
    DNN(cudnnActivationForward(handle_, relu_, &one, y_desc_, y.get(), &zero, y_desc_, y.get()));
    DNN(cudnnPoolingForward(handle_, pooling_, &one, y_desc_, y.get(), &zero, pooled_desc_,
                            pooled.get()));
    DNN(cudnnSoftmaxForward(handle_, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                            pooled_desc_, pooled.get(), &zero, pooled_desc_, probabilities.get()));
  }

  void Check(float tolerance) const {
    const Reference expected(x.Download(), w.Download(), bias.Download());
    ExpectNear(y.Download(), expected.activated, tolerance);
    ExpectNear(pooled.Download(), expected.pooled, tolerance);
    ExpectNear(probabilities.Download(), expected.probabilities, tolerance);
  }

  // The gradients of the convolution alone, of a y as it is.
  void CheckGradients(float tolerance) {
    const float one = 1;
    const float zero = 0;
    Memory<T> dx{Values(kImages * kInputs * kSide * kSide)};
    Memory<T> dw{Values(kOutputs * kInputs * kWindow * kWindow)};
    Memory<T> db{Values(kOutputs)};
    DNN(cudnnConvolutionBackwardData(handle_, &one, w_desc_, w.get(), y_desc_, y.get(),
                                     convolution_, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr, 0,
                                     &zero, x_desc_, dx.get()));
    DNN(cudnnConvolutionBackwardFilter(handle_, &one, x_desc_, x.get(), y_desc_, y.get(),
                                       convolution_, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, nullptr,
                                       0, &zero, w_desc_, dw.get()));
    DNN(cudnnConvolutionBackwardBias(handle_, &one, y_desc_, y.get(), &zero, bias_desc_, db.get()));
    CUDA(cudaDeviceSynchronize());
    const Values xs = x.Download();
    const Values ws = w.Download();
    const Values ys = y.Download();
    Values of_x(xs.size());
    Values of_w(ws.size());
    Values of_b(kOutputs);
    ForEachProduct([&](size_t i, size_t j, size_t k) {
      of_x[i] += ws[j] * ys[k];
      of_w[j] += xs[i] * ys[k];
    });
    for (size_t i = 0; i < ys.size(); ++i) of_b[i / (kSide * kSide) % kOutputs] += ys[i];
    ExpectNear(dx.Download(), of_x, tolerance);
    ExpectNear(dw.Download(), of_w, tolerance);
    ExpectNear(db.Download(), of_b, tolerance);
  }

  Memory<T> x{Numbers(kImages * kInputs * kSide * kSide, 1)};
  Memory<T> w{Numbers(kOutputs * kInputs * kWindow * kWindow, 2)};
  Memory<T> bias{Numbers(kOutputs, 3)};
  Memory<T> y{Values(kImages * kOutputs * kSide * kSide)};
  Memory<T> pooled{Values(kImages * kOutputs * kPooled * kPooled)};
  Memory<T> probabilities{Values(kImages * kOutputs * kPooled * kPooled)};

 private:
  void ChooseAlgorithm() {
    int dims[4] = {};
    DNN(cudnnGetConvolution2dForwardOutputDim(convolution_, x_desc_, w_desc_, dims, dims + 1,
                                              dims + 2, dims + 3));
    REQUIRE(dims[0] == kImages && dims[1] == kOutputs && dims[2] == kSide && dims[3] == kSide);
    cudnnConvolutionFwdAlgoPerf_t found[8];
    int count = 0;
    DNN(cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_desc_, w_desc_, convolution_, y_desc_, 8,
                                               &count, found));
    REQUIRE(count >= 1 && found[0].status == CUDNN_STATUS_SUCCESS);
    algorithm_ = found[0].algo;
    for (int again = 0; again < 100; ++again) {
      DNN(cudnnGetConvolutionForwardWorkspaceSize(handle_, x_desc_, w_desc_, convolution_, y_desc_,
                                                  algorithm_, &workspace_bytes_));
    }
    if (workspace_bytes_ > 0) CUDA(cudaMalloc(&workspace_, workspace_bytes_));
  }

  cudnnHandle_t handle_;
  cudnnTensorDescriptor_t x_desc_;
  cudnnTensorDescriptor_t y_desc_;
  cudnnTensorDescriptor_t pooled_desc_;
  cudnnTensorDescriptor_t bias_desc_;
  cudnnFilterDescriptor_t w_desc_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnPoolingDescriptor_t pooling_ = nullptr;
  cudnnActivationDescriptor_t relu_ = nullptr;
  cudnnConvolutionFwdAlgo_t algorithm_ = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
};

void OnAStream(cudnnHandle_t handle) {
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  DNN(cudnnSetStream(handle, stream));
  cudaStream_t set = nullptr;
  DNN(cudnnGetStream(handle, &set));
  REQUIRE(set == stream);
  Network<float> network(handle, CUDNN_DATA_FLOAT);
  network.Forward();
  CUDA(cudaStreamSynchronize(stream));
  network.Check(1e-4f);
  network.CheckGradients(1e-3f);
  DNN(cudnnSetStream(handle, nullptr));
  CUDA(cudaStreamDestroy(stream));
}

void InAGraph(cudnnHandle_t handle) {
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  DNN(cudnnSetStream(handle, stream));
  Network<__half> network(handle, CUDNN_DATA_HALF);
  network.Forward();  // whatever the library makes at its first calls
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemset(network.probabilities.get(), 0, 16));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  network.Forward();
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, stream));
  CUDA(cudaStreamSynchronize(stream));
  network.Check(2e-2f);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  DNN(cudnnSetStream(handle, nullptr));
}

void BatchNormalisation(cudnnHandle_t handle) {
  const auto tensor = Tensor(CUDNN_DATA_FLOAT, kImages, kOutputs, kSide, kSide);
  cudnnTensorDescriptor_t features = nullptr;
  DNN(cudnnCreateTensorDescriptor(&features));
  DNN(cudnnDeriveBNTensorDescriptor(features, tensor, CUDNN_BATCHNORM_SPATIAL));
  const Values x = Numbers(kImages * kOutputs * kSide * kSide, 4);
  const Values ones(kOutputs, 1);
  const Values twos(kOutputs, 2);
  Memory<float> from(x);
  Memory<float> to(x);
  Memory<float> scale(twos);
  Memory<float> shift(ones);
  Memory<float> mean{Values(kOutputs, 0.25f)};
  Memory<float> variance(ones);
  const float one = 1;
  const float zero = 0;
  const double epsilon = 1e-5;
  DNN(cudnnBatchNormalizationForwardInference(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, tensor,
                                              from.get(), tensor, to.get(), features, scale.get(),
                                              shift.get(), mean.get(), variance.get(), epsilon));
  CUDA(cudaDeviceSynchronize());
  Values expected = x;
  for (float& value : expected)
    value = (value - 0.25f) / std::sqrt(1 + static_cast<float>(epsilon)) * 2 + 1;
  ExpectNear(to.Download(), expected, 1e-4f);
}

void Refusals(cudnnHandle_t handle) {
  const auto tensor = Tensor(CUDNN_DATA_FLOAT, 1, 1, 4, 4);
  const float one = 1;
  Memory<float> memory{Values(16)};
  REQUIRE(cudnnScaleTensor(handle, nullptr, memory.get(), &one) != CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnScaleTensor(nullptr, tensor, memory.get(), &one) != CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, -1, 4, 4) !=
          CUDNN_STATUS_SUCCESS);
  CUDA(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  cudnnHandle_t handle = nullptr;
  DNN(cudnnCreate(&handle));
  REQUIRE(cudnnGetVersion() >= 90000);
  OnAStream(handle);
  InAGraph(handle);
  BatchNormalisation(handle);
  Refusals(handle);
  DNN(cudnnDestroy(handle));
  return Pass();
}
