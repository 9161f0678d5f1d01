// cuBLASLt: products with epilogues, batches, row-major matrices, half precision, heuristics.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <cmath>
#include <vector>

#include "tests/e2e/programs/check.h"

#define BLAS(call) REQUIRE((call) == CUBLAS_STATUS_SUCCESS)

namespace {

constexpr int kM = 48;
constexpr int kN = 40;
constexpr int kK = 32;
constexpr int kBatch = 3;

template <typename T>
T* Upload(const std::vector<T>& values) {
  T* device = nullptr;
  CUDA(cudaMalloc(&device, values.size() * sizeof(T)));
  CUDA(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

template <typename T>
std::vector<T> Download(const T* device, size_t count) {
  std::vector<T> values(count);
  CUDA(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

std::vector<float> Numbers(size_t count, int seed) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed) * 5) % 11) / 8 - 0.5f;
  return numbers;
}

double Gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

cublasLtMatrixLayout_t Layout(cudaDataType type, int rows, int columns, int leading, bool by_rows,
                              int batch) {
  cublasLtMatrixLayout_t layout = nullptr;
  BLAS(cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                  static_cast<uint64_t>(columns), leading));
  const int32_t order = by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
  const int64_t stride = static_cast<int64_t>(leading) * (by_rows ? rows : columns);
  BLAS(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
  BLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                        sizeof batch));
  BLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                        &stride, sizeof stride));
  return layout;
}

// The best algorithm for a problem, which must exist.
cublasLtMatmulAlgo_t Choose(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                            cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                            cublasLtMatrixLayout_t d, size_t workspace_bytes) {
  cublasLtMatmulPreference_t preference = nullptr;
  BLAS(cublasLtMatmulPreferenceCreate(&preference));
  BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &workspace_bytes, sizeof workspace_bytes));
  cublasLtMatmulHeuristicResult_t results[3];
  int returned = 0;
  for (int again = 0; again < 100; ++again) {
    BLAS(cublasLtMatmulAlgoGetHeuristic(handle, matmul, a, b, d, d, preference, 3, results,
                                        &returned));
  }
  REQUIRE(returned >= 1 && results[0].state == CUBLAS_STATUS_SUCCESS);
  REQUIRE(results[0].workspaceSize <= workspace_bytes);
  BLAS(cublasLtMatmulPreferenceDestroy(preference));
  return results[0].algo;
}

// D = GELU(A^T B + bias) of single precision, by rows or columns, on a stream of its own.
void SinglePrecision(cublasLtHandle_t handle, bool by_rows) {
  const auto a = Numbers(kBatch * kK * kM, 1);
  const auto b = Numbers(kBatch * kK * kN, 2);
  const auto bias = Numbers(kM, 3);
  float* const device_a = Upload(a);
  float* const device_b = Upload(b);
  float* const device_bias = Upload(bias);
  float* const device_d = Upload(std::vector<float>(kBatch * kM * kN));
  void* workspace = nullptr;
  const size_t workspace_bytes = 4 << 20;
  CUDA(cudaMalloc(&workspace, workspace_bytes));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));

  cublasLtMatmulDesc_t matmul = nullptr;
  BLAS(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t transposed = CUBLAS_OP_T;
  // cuBLASLt has no biases for results that are stored by rows, nor takes a pointer to one.
  const cublasLtEpilogue_t epilogue =
      by_rows ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_GELU_BIAS;
  BLAS(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                      sizeof transposed));
  BLAS(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                      sizeof epilogue));
  if (!by_rows)
    BLAS(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &device_bias,
                                        sizeof device_bias));
  const auto layout_a = Layout(CUDA_R_32F, kK, kM, by_rows ? kM : kK, by_rows, kBatch);
  const auto layout_b = Layout(CUDA_R_32F, kK, kN, by_rows ? kN : kK, by_rows, kBatch);
  const auto layout_d = Layout(CUDA_R_32F, kM, kN, by_rows ? kN : kM, by_rows, kBatch);
  const auto algorithm = Choose(handle, matmul, layout_a, layout_b, layout_d, workspace_bytes);
  const float alpha = 0.5f;
  const float beta = 0;
  BLAS(cublasLtMatmul(handle, matmul, &alpha, device_a, layout_a, device_b, layout_b, &beta,
                      device_d, layout_d, device_d, layout_d, &algorithm, workspace,
                      workspace_bytes, stream));
  CUDA(cudaStreamSynchronize(stream));

  const auto d = Download(device_d, kBatch * kM * kN);
  const auto at = [&](const std::vector<float>& x, int batch, int rows, int columns, int i, int j) {
    return double{x[static_cast<size_t>(batch * rows * columns +
                                        (by_rows ? i * columns + j : j * rows + i))]};
  };
  for (int batch = 0; batch < kBatch; ++batch) {
    for (int i = 0; i < kM; ++i) {
      for (int j = 0; j < kN; ++j) {
        double sum = 0;
        for (int k = 0; k < kK; ++k) sum += at(a, batch, kK, kM, k, i) * at(b, batch, kK, kN, k, j);
        const double expected = by_rows ? sum / 2 : Gelu(sum / 2 + bias[static_cast<size_t>(i)]);
        REQUIRE(std::fabs(at(d, batch, kM, kN, i, j) - expected) < 2e-3);
      }
    }
  }
  for (const auto layout : {layout_a, layout_b, layout_d})
    BLAS(cublasLtMatrixLayoutDestroy(layout));
  BLAS(cublasLtMatmulDescDestroy(matmul));
  CUDA(cudaStreamDestroy(stream));
  for (void* memory : {static_cast<void*>(device_a), static_cast<void*>(device_b),
                       static_cast<void*>(device_bias), static_cast<void*>(device_d), workspace})
    CUDA(cudaFree(memory));
}

// D = relu(A B + bias) + nothing of half precision, with no algorithm named, in a graph.
void HalfPrecisionInAGraph(cublasLtHandle_t handle) {
  const auto to_half = [](const std::vector<float>& values) {
    std::vector<__half> halves;
    for (const float value : values) halves.push_back(__float2half(value));
    return halves;
  };
  const auto a = Numbers(kM * kK, 1);
  const auto b = Numbers(kK * kN, 2);
  const auto bias = Numbers(kM, 3);
  __half* const device_a = Upload(to_half(a));
  __half* const device_b = Upload(to_half(b));
  __half* const device_bias = Upload(to_half(bias));
  __half* const device_d = Upload(std::vector<__half>(kM * kN));
  cublasLtMatmulDesc_t matmul = nullptr;
  BLAS(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  BLAS(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                      sizeof epilogue));
  BLAS(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &device_bias,
                                      sizeof device_bias));
  const auto layout_a = Layout(CUDA_R_16F, kM, kK, kM, false, 1);
  const auto layout_b = Layout(CUDA_R_16F, kK, kN, kK, false, 1);
  const auto layout_d = Layout(CUDA_R_16F, kM, kN, kM, false, 1);
  const float alpha = 1;
  const float beta = 0;
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  BLAS(cublasLtMatmul(handle, matmul, &alpha, device_a, layout_a, device_b, layout_b, &beta,
                      device_d, layout_d, device_d, layout_d, nullptr, nullptr, 0, stream));
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, stream));
  CUDA(cudaStreamSynchronize(stream));
  const auto d = Download(device_d, kM * kN);
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = bias[static_cast<size_t>(i)];
      for (int k = 0; k < kK; ++k)
        sum += double{a[static_cast<size_t>(k * kM + i)]} * b[static_cast<size_t>(j * kK + k)];
      const double got = __half2float(d[static_cast<size_t>(j * kM + i)]);
      REQUIRE(std::fabs(got - std::fmax(sum, 0.0)) < 1e-2);
    }
  }
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
}

void Refusals(cublasLtHandle_t handle) {
  cublasLtMatmulDesc_t matmul = nullptr;
  BLAS(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto wide = Layout(CUDA_R_32F, 4, 4, 4, false, 1);
  const auto narrow = Layout(CUDA_R_32F, 4, 3, 4, false, 1);
  float* const memory = Upload(std::vector<float>(64));
  const float alpha = 1;
  REQUIRE(cublasLtMatmul(handle, matmul, &alpha, memory, narrow, memory, wide, &alpha, memory, wide,
                         memory, wide, nullptr, nullptr, 0, nullptr) != CUBLAS_STATUS_SUCCESS);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

}  // namespace

int main() {
  cublasLtHandle_t handle = nullptr;
  BLAS(cublasLtCreate(&handle));
  SinglePrecision(handle, false);
  SinglePrecision(handle, true);
  HalfPrecisionInAGraph(handle);
  Refusals(handle);
  // A handle of cuBLAS is one of cuBLASLt.
  cublasHandle_t blas = nullptr;
  BLAS(cublasCreate(&blas));
  SinglePrecision(reinterpret_cast<cublasLtHandle_t>(blas), false);
  BLAS(cublasDestroy(blas));
  BLAS(cublasLtDestroy(handle));
  return Pass();
}
