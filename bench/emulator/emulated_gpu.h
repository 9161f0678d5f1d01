#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "emulator/exec/program.h"

namespace torpor::emulator {

// The benchmarks' kernels (kernels.cu) on the emulated GPU, without a driver before it. A failure
// ends the process.
class EmulatedGpu {
 public:
  EmulatedGpu();
  ~EmulatedGpu();

  // Compiles the kernel for blocks of this shape.
  void Preload(const char* kernel, Dim3 block);

  // `size` elements of device memory, never freed before the GPU is; 0, 1, ... 6, 0, 1, ...
  float* Array(std::size_t size);

  // Waits until the grid is done. `arguments` is laid out as the kernel's parameters.
  template <typename Arguments>
  void Run(const char* kernel, Dim3 grid, Dim3 block, const Arguments& arguments) {
    LaunchConfig config;
    config.grid = grid;
    config.block = block;
    config.parameters = &arguments;
    Launch(kernel, config);
  }

 private:
  void Launch(const char* kernel, const LaunchConfig& config);

  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<Program> program_;
};

}  // namespace torpor::emulator
