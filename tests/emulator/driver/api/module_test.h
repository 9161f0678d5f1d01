#pragma once

#include <cuda.h>

#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {

// Kernels of one loaded module, and their data.
class ModuleTest : public CudaTest {
 protected:
  static std::string ReadFile(const char* path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.is_open()) << path;
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void Load(const std::string& image) { ASSERT_CUDA(cuModuleLoadData(&module_, image.data())); }

  CUfunction Find(const char* name) {
    CUfunction function = nullptr;
    EXPECT_CUDA(cuModuleGetFunction(&function, module_, name));
    return function;
  }

  template <typename T>
  CUdeviceptr Upload(const std::vector<T>& values) {
    CUdeviceptr address = 0;
    EXPECT_CUDA(cuMemAlloc(&address, values.size() * sizeof(T)));
    EXPECT_CUDA(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(T)));
    return address;
  }

  template <typename T>
  std::vector<T> Download(CUdeviceptr address, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_CUDA(cuMemcpyDtoH(values.data(), address, count * sizeof(T)));
    return values;
  }

  // Runs `add` of the module.
  void ExpectThatItAdds() {
    constexpr int kCount = 10'000;
    std::vector<float> a(kCount);
    std::iota(a.begin(), a.end(), 0.0F);
    CUdeviceptr device_a = Upload(a);
    CUdeviceptr device_b = Upload(std::vector<float>(kCount, 0.5F));
    CUdeviceptr device_c = Upload(std::vector<float>(kCount));
    int n = kCount;
    void* values[] = {&device_a, &device_b, &device_c, &n};
    ASSERT_CUDA(cuLaunchKernel(Find("add"), (kCount + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr,
                               values, nullptr));
    const auto c = Download<float>(device_c, kCount);
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(c[i], a[i] + 0.5F);
  }

  CUmodule module_ = nullptr;
};

}  // namespace torpor::emulator
