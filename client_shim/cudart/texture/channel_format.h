#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace torpor::shim {

// A channel description as commands and the driver have it.
struct ChannelFormat {
  std::uint32_t format = 0;  // a CUarray_format
  std::uint32_t channels = 0;
  std::uint32_t channel_bytes = 0;

  std::uint32_t texel_bytes() const { return channels * channel_bytes; }
};

// cudaErrorInvalidChannelDescriptor for one that arrays cannot have. Channels of 8, 16 and 32 bits
// are supported, all of a texel alike.
cudaError_t ToChannelFormat(const cudaChannelFormatDesc& description, ChannelFormat& format);

}  // namespace torpor::shim
