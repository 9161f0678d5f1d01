#include "client_shim/cuda/texture_descriptors.h"

#include <algorithm>
#include <bit>

#include "client_shim/cudart/texture/channel_format.h"

namespace torpor::shim {
namespace {

struct Channel {
  int bits = 0;  // 0 if arrays cannot have such channels
  cudaChannelFormatKind kind = cudaChannelFormatKindNone;
};

Channel ChannelOf(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      return {8, cudaChannelFormatKindUnsigned};
    case CU_AD_FORMAT_UNSIGNED_INT16:
      return {16, cudaChannelFormatKindUnsigned};
    case CU_AD_FORMAT_UNSIGNED_INT32:
      return {32, cudaChannelFormatKindUnsigned};
    case CU_AD_FORMAT_SIGNED_INT8:
      return {8, cudaChannelFormatKindSigned};
    case CU_AD_FORMAT_SIGNED_INT16:
      return {16, cudaChannelFormatKindSigned};
    case CU_AD_FORMAT_SIGNED_INT32:
      return {32, cudaChannelFormatKindSigned};
    case CU_AD_FORMAT_HALF:
      return {16, cudaChannelFormatKindFloat};
    case CU_AD_FORMAT_FLOAT:
      return {32, cudaChannelFormatKindFloat};
    default:
      return {};
  }
}

// The numbers of these enumerations are the same in both APIs.
static_assert(int{CU_TR_ADDRESS_MODE_WRAP} == int{cudaAddressModeWrap} &&
              int{CU_TR_ADDRESS_MODE_BORDER} == int{cudaAddressModeBorder} &&
              int{CU_TR_FILTER_MODE_POINT} == int{cudaFilterModePoint} &&
              int{CU_TR_FILTER_MODE_LINEAR} == int{cudaFilterModeLinear} &&
              int{CU_RES_VIEW_FORMAT_UINT_1X8} == int{cudaResViewFormatUnsignedChar1} &&
              int{CU_RES_VIEW_FORMAT_UNSIGNED_BC7} ==
                  int{cudaResViewFormatUnsignedBlockCompressed7});

bool IsFilter(CUfilter_mode mode) {
  return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

}  // namespace

CUresult ToRuntime(CUarray_format format, unsigned channels, cudaChannelFormatDesc& description) {
  // All formats from here on are compressed, planar or normalised.
  if (format >= CU_AD_FORMAT_BC1_UNORM)
    return Refuse("an array of a compressed, planar or normalised format");
  const auto [bits, kind] = ChannelOf(format);
  if (bits == 0 || (channels != 1 && channels != 2 && channels != 4))
    return CUDA_ERROR_INVALID_VALUE;
  description = {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 2 ? bits : 0,
                 kind};
  return CUDA_SUCCESS;
}

CUresult ToDriver(const cudaChannelFormatDesc& description, CUarray_format& format,
                  unsigned& channels) {
  ChannelFormat found;
  TORPOR_CU_TRY(ToChannelFormat(description, found));
  format = static_cast<CUarray_format>(found.format);
  channels = found.channels;
  return CUDA_SUCCESS;
}

CUresult ToRuntimeArrayFlags(unsigned flags, unsigned& runtime_flags) {
  static_assert(CUDA_ARRAY3D_LAYERED == cudaArrayLayered &&
                CUDA_ARRAY3D_SURFACE_LDST == cudaArraySurfaceLoadStore &&
                CUDA_ARRAY3D_CUBEMAP == cudaArrayCubemap &&
                CUDA_ARRAY3D_TEXTURE_GATHER == cudaArrayTextureGather &&
                CUDA_ARRAY3D_SPARSE == cudaArraySparse &&
                CUDA_ARRAY3D_DEFERRED_MAPPING == cudaArrayDeferredMapping);
  constexpr unsigned kShared = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                               CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                               CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
  constexpr unsigned kGraphics =
      CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
  if ((flags & ~(kShared | kGraphics)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & kGraphics) != 0) return Refuse("an array for graphics or video");
  runtime_flags = flags;
  return CUDA_SUCCESS;
}

CUresult ToRuntime(const CUDA_RESOURCE_DESC& resource, cudaResourceDesc& description) {
  if (resource.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  description = {};
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      description.resType = cudaResourceTypeArray;
      description.res.array.array = AsRuntime(resource.res.array.hArray);
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      description.resType = cudaResourceTypeMipmappedArray;
      description.res.mipmap.mipmap = AsRuntime(resource.res.mipmap.hMipmappedArray);
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& from = resource.res.linear;
      auto& to = description.res.linear;
      description.resType = cudaResourceTypeLinear;
      to.devPtr = At(from.devPtr);
      to.sizeInBytes = from.sizeInBytes;
      return ToRuntime(from.format, from.numChannels, to.desc);
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& from = resource.res.pitch2D;
      auto& to = description.res.pitch2D;
      description.resType = cudaResourceTypePitch2D;
      to.devPtr = At(from.devPtr);
      to.width = from.width;
      to.height = from.height;
      to.pitchInBytes = from.pitchInBytes;
      return ToRuntime(from.format, from.numChannels, to.desc);
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult ToDriver(const cudaResourceDesc& description, CUDA_RESOURCE_DESC& resource) {
  resource = {};
  switch (description.resType) {
    case cudaResourceTypeArray:
      resource.resType = CU_RESOURCE_TYPE_ARRAY;
      resource.res.array.hArray = reinterpret_cast<CUarray>(description.res.array.array);
      return CUDA_SUCCESS;
    case cudaResourceTypeMipmappedArray:
      resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      resource.res.mipmap.hMipmappedArray =
          reinterpret_cast<CUmipmappedArray>(description.res.mipmap.mipmap);
      return CUDA_SUCCESS;
    case cudaResourceTypeLinear: {
      const auto& from = description.res.linear;
      auto& to = resource.res.linear;
      resource.resType = CU_RESOURCE_TYPE_LINEAR;
      to.devPtr = AddressOf(from.devPtr);
      to.sizeInBytes = from.sizeInBytes;
      return ToDriver(from.desc, to.format, to.numChannels);
    }
    case cudaResourceTypePitch2D: {
      const auto& from = description.res.pitch2D;
      auto& to = resource.res.pitch2D;
      resource.resType = CU_RESOURCE_TYPE_PITCH2D;
      to.devPtr = AddressOf(from.devPtr);
      to.width = from.width;
      to.height = from.height;
      to.pitchInBytes = from.pitchInBytes;
      return ToDriver(from.desc, to.format, to.numChannels);
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult ToRuntime(const CUDA_TEXTURE_DESC& texture, cudaTextureDesc& description) {
  constexpr unsigned kKnown = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                              CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
                              CU_TRSF_SEAMLESS_CUBEMAP;
  const auto has = [&](unsigned flag) { return (texture.flags & flag) != 0; };
  if (has(~kKnown) || !IsFilter(texture.filterMode) || !IsFilter(texture.mipmapFilterMode))
    return CUDA_ERROR_INVALID_VALUE;
  description = {};
  for (int i = 0; i < 3; ++i) {
    if (texture.addressMode[i] > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    description.addressMode[i] = static_cast<cudaTextureAddressMode>(texture.addressMode[i]);
  }
  description.filterMode = static_cast<cudaTextureFilterMode>(texture.filterMode);
  description.readMode =
      has(CU_TRSF_READ_AS_INTEGER) ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  description.sRGB = has(CU_TRSF_SRGB);
  std::copy_n(texture.borderColor, 4, description.borderColor);
  description.normalizedCoords = has(CU_TRSF_NORMALIZED_COORDINATES);
  description.maxAnisotropy = texture.maxAnisotropy;
  description.mipmapFilterMode = static_cast<cudaTextureFilterMode>(texture.mipmapFilterMode);
  description.mipmapLevelBias = texture.mipmapLevelBias;
  description.minMipmapLevelClamp = texture.minMipmapLevelClamp;
  description.maxMipmapLevelClamp = texture.maxMipmapLevelClamp;
  description.disableTrilinearOptimization = has(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
  description.seamlessCubemap = has(CU_TRSF_SEAMLESS_CUBEMAP);
  return CUDA_SUCCESS;
}

CUDA_TEXTURE_DESC ToDriver(const cudaTextureDesc& description) {
  CUDA_TEXTURE_DESC texture{};
  for (int i = 0; i < 3; ++i)
    texture.addressMode[i] = static_cast<CUaddress_mode>(description.addressMode[i]);
  texture.filterMode = static_cast<CUfilter_mode>(description.filterMode);
  const auto set = [&](bool is_set, unsigned flag) { texture.flags |= is_set ? flag : 0; };
  set(description.readMode == cudaReadModeElementType, CU_TRSF_READ_AS_INTEGER);
  set(description.normalizedCoords != 0, CU_TRSF_NORMALIZED_COORDINATES);
  set(description.sRGB != 0, CU_TRSF_SRGB);
  set(description.disableTrilinearOptimization != 0, CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
  set(description.seamlessCubemap != 0, CU_TRSF_SEAMLESS_CUBEMAP);
  texture.maxAnisotropy = description.maxAnisotropy;
  texture.mipmapFilterMode = static_cast<CUfilter_mode>(description.mipmapFilterMode);
  texture.mipmapLevelBias = description.mipmapLevelBias;
  texture.minMipmapLevelClamp = description.minMipmapLevelClamp;
  texture.maxMipmapLevelClamp = description.maxMipmapLevelClamp;
  std::copy_n(description.borderColor, 4, texture.borderColor);
  return texture;
}

// Both structures have the same members.
CUresult ToRuntime(const CUDA_RESOURCE_VIEW_DESC& view, cudaResourceViewDesc& description) {
  if (view.format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7) return CUDA_ERROR_INVALID_VALUE;
  description = std::bit_cast<cudaResourceViewDesc>(view);
  return CUDA_SUCCESS;
}

CUDA_RESOURCE_VIEW_DESC ToDriver(const cudaResourceViewDesc& description) {
  return std::bit_cast<CUDA_RESOURCE_VIEW_DESC>(description);
}

}  // namespace torpor::shim
