#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace torpor::conformance {

// The first GPU of a driver that is opened by name: NVIDIA's or the emulator's. One thread.
class Gpu {
 public:
  // Null with `error` set if there is no driver, no GPU or no context.
  static std::unique_ptr<Gpu> Open(const std::string& library, std::string& error);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  std::string Name() const;

  // Global memory, zero at first, freed with the Gpu.
  CUdeviceptr Allocate(std::size_t bytes);
  void Upload(CUdeviceptr target, std::span<const std::byte> bytes);
  void Clear(CUdeviceptr target, std::size_t bytes);
  void Download(std::span<std::byte> bytes, CUdeviceptr source);

  // Runs the kernel `name` of a module, PTX or a cubin, with three addresses as its parameters, and
  // waits. Empty, or what went wrong.
  std::string Run(const std::string& image, const char* name, unsigned blocks, unsigned threads,
                  const std::array<CUdeviceptr, 3>& parameters);

 private:
  struct Driver;

  explicit Gpu(std::unique_ptr<Driver> driver);

  std::unique_ptr<Driver> driver_;
  CUdevice device_ = 0;
};

}  // namespace torpor::conformance
