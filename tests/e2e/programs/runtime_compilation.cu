// A kernel that NVRTC compiles for the device's own architecture, as a cubin.
#include <cuda.h>
#include <nvrtc.h>

#include <string>
#include <vector>

#include "tests/e2e/programs/check.h"

static const char kSource[] = R"(
__device__ int calls;
extern "C" __global__ void Square(float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= values[i];
  if (i == 0) ++calls;
}
template <typename T> __global__ void Negate(T* values) { values[threadIdx.x] = -values[threadIdx.x]; }
)";

constexpr int kCount = 1000;

static std::string Architecture() {
  int major = 0;
  int minor = 0;
  CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  return "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor);
}

static std::vector<char> Compile(std::string& negate) {
  nvrtcProgram program = nullptr;
  REQUIRE(nvrtcCreateProgram(&program, kSource, "square.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  REQUIRE(nvrtcAddNameExpression(program, "Negate<float>") == NVRTC_SUCCESS);
  const std::string architecture = Architecture();
  const char* options[] = {architecture.c_str(), "-default-device"};
  REQUIRE(nvrtcCompileProgram(program, 2, options) == NVRTC_SUCCESS);
  const char* name = nullptr;
  REQUIRE(nvrtcGetLoweredName(program, "Negate<float>", &name) == NVRTC_SUCCESS);
  negate = name;
  std::size_t bytes = 0;
  REQUIRE(nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS && bytes > 0);
  std::vector<char> cubin(bytes);
  REQUIRE(nvrtcGetCUBIN(program, cubin.data()) == NVRTC_SUCCESS);
  REQUIRE(nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
  return cubin;
}

static void Launch(CUmodule module, const char* name, float* values) {
  CUfunction function = nullptr;
  REQUIRE(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
  int count = kCount;
  void* arguments[] = {&values, &count};
  REQUIRE(cuLaunchKernel(function, 1, 1, 1, kCount, 1, 1, 0, nullptr, arguments, nullptr) ==
          CUDA_SUCCESS);
}

int main() {
  std::vector<float> values(kCount);
  for (int i = 0; i < kCount; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
  float* device = nullptr;
  CUDA(cudaMalloc(&device, kCount * sizeof(float)));
  CUDA(cudaMemcpy(device, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));

  std::string negate;
  const std::vector<char> cubin = Compile(negate);
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoadData(&module, cubin.data()) == CUDA_SUCCESS);
  Launch(module, "Square", device);
  Launch(module, negate.c_str(), device);

  std::vector<float> result(kCount);
  CUDA(cudaMemcpy(result.data(), device, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < kCount; ++i) REQUIRE(result[i] == -(values[i] * values[i]));
  CUdeviceptr calls = 0;
  REQUIRE(cuModuleGetGlobal(&calls, nullptr, module, "calls") == CUDA_SUCCESS);
  int count = 0;
  CUDA(cudaMemcpy(&count, reinterpret_cast<void*>(calls), sizeof count, cudaMemcpyDeviceToHost));
  REQUIRE(count == 1);
  REQUIRE(cuModuleUnload(module) == CUDA_SUCCESS);
  return Pass();
}
