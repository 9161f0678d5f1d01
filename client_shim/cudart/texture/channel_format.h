#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace torpor::shim {

// A channel description in the driver's terms, as in commands.
struct ChannelFormat {
  std::uint32_t format = 0;  // a CUarray_format
  std::uint32_t channels = 0;
  std::uint32_t channel_bytes = 0;

  std::uint32_t texel_bytes() const { return channels * channel_bytes; }
};

// Translates the runtime's description: 1, 2 or 4 equal channels of 8, 16 or 32 bits.
// cudaErrorInvalidChannelDescriptor for any other.
cudaError_t ToChannelFormat(const cudaChannelFormatDesc& description, ChannelFormat& format);

}  // namespace torpor::shim
