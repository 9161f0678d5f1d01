#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace torpor::executor {

// The attributes and the shape of a launch, as cuLaunchKernelEx takes both. Owns the attributes.
class LaunchAttributes {
 public:
  // `flags` are of wire::LaunchKernel.
  LaunchAttributes(const std::array<std::uint32_t, 3>& grid,
                   const std::array<std::uint32_t, 3>& block, std::uint32_t shared_bytes,
                   std::uint32_t flags, CUstream stream);
  LaunchAttributes(const LaunchAttributes&) = delete;
  LaunchAttributes& operator=(const LaunchAttributes&) = delete;

  const CUlaunchConfig& config() const { return config_; }

 private:
  CUlaunchAttribute& Add(CUlaunchAttributeID id);

  std::array<CUlaunchAttribute, 3> attributes_{};
  CUlaunchConfig config_{};
};

}  // namespace torpor::executor
