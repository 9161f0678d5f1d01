#include "client_shim/cudart/texture/channel_format.h"

#include <cuda.h>

namespace torpor::shim {
namespace {

// The driver's format of a channel; 0 for an unsupported one.
std::uint32_t FormatOf(cudaChannelFormatKind kind, int bits) {
  switch (kind) {
    case cudaChannelFormatKindUnsigned:
      return bits == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
             : bits == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
             : bits == 32 ? CU_AD_FORMAT_UNSIGNED_INT32
                          : 0;
    case cudaChannelFormatKindSigned:
      return bits == 8    ? CU_AD_FORMAT_SIGNED_INT8
             : bits == 16 ? CU_AD_FORMAT_SIGNED_INT16
             : bits == 32 ? CU_AD_FORMAT_SIGNED_INT32
                          : 0;
    case cudaChannelFormatKindFloat:
      return bits == 16 ? CU_AD_FORMAT_HALF : bits == 32 ? CU_AD_FORMAT_FLOAT : 0;
    default:
      return 0;
  }
}

}  // namespace

cudaError_t ToChannelFormat(const cudaChannelFormatDesc& description, ChannelFormat& format) {
  const int bits[4] = {description.x, description.y, description.z, description.w};
  std::uint32_t channels = 0;
  while (channels < 4 && bits[channels] == bits[0] && bits[0] > 0) ++channels;
  for (std::uint32_t i = channels; i < 4; ++i)
    if (bits[i] != 0) return cudaErrorInvalidChannelDescriptor;
  format = {FormatOf(description.f, bits[0]), channels, static_cast<std::uint32_t>(bits[0] / 8)};
  const bool is_known = format.format != 0 && channels != 0 && channels != 3;
  return is_known ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

}  // namespace torpor::shim
