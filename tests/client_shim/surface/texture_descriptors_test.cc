// Arrays, textures and surfaces from the driver's words to the runtime's and back.
#include "client_shim/cuda/texture_descriptors.h"

#include <gtest/gtest.h>

#include <tuple>

namespace torpor::shim {
namespace {

constexpr CUdeviceptr kAddress = 0x2000'0000'0000;

TEST(TextureDescriptors, FormatsAndChannelsThereAndBack) {
  for (const auto& [format, bits, kind] :
       {std::tuple{CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
        std::tuple{CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
        std::tuple{CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
        std::tuple{CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
        std::tuple{CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
        std::tuple{CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
        std::tuple{CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
        std::tuple{CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat}}) {
    for (const unsigned channels : {1u, 2u, 4u}) {
      cudaChannelFormatDesc description{};
      ASSERT_EQ(ToRuntime(format, channels, description), CUDA_SUCCESS);
      EXPECT_EQ(description.f, kind);
      EXPECT_EQ(description.x, bits);
      EXPECT_EQ(description.y, channels > 1 ? bits : 0);
      EXPECT_EQ(description.z, channels > 2 ? bits : 0);
      EXPECT_EQ(description.w, channels > 2 ? bits : 0);
      CUarray_format back_format = CU_AD_FORMAT_MAX;
      unsigned back_channels = 0;
      ASSERT_EQ(ToDriver(description, back_format, back_channels), CUDA_SUCCESS);
      EXPECT_EQ(back_format, format);
      EXPECT_EQ(back_channels, channels);
    }
  }
}

TEST(TextureDescriptors, FormatsThatArraysCannotHave) {
  cudaChannelFormatDesc description{};
  for (const unsigned channels : {0u, 3u, 5u})
    EXPECT_EQ(ToRuntime(CU_AD_FORMAT_FLOAT, channels, description), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ToRuntime(static_cast<CUarray_format>(0), 1, description), CUDA_ERROR_INVALID_VALUE);
  for (const CUarray_format format :
       {CU_AD_FORMAT_NV12, CU_AD_FORMAT_UNORM_INT8X1, CU_AD_FORMAT_BC1_UNORM})
    EXPECT_EQ(ToRuntime(format, 1, description), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(TextureDescriptors, FlagsOfArrays) {
  unsigned flags = 0;
  ASSERT_EQ(ToRuntimeArrayFlags(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP, flags), CUDA_SUCCESS);
  EXPECT_EQ(flags, unsigned{cudaArrayLayered | cudaArrayCubemap});
  for (const unsigned refused : {CUDA_ARRAY3D_DEPTH_TEXTURE, CUDA_ARRAY3D_COLOR_ATTACHMENT,
                                 CUDA_ARRAY3D_VIDEO_ENCODE_DECODE})
    EXPECT_EQ(ToRuntimeArrayFlags(refused, flags), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(ToRuntimeArrayFlags(0x8000, flags), CUDA_ERROR_INVALID_VALUE);
}

TEST(TextureDescriptors, ResourcesThereAndBack) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D = {kAddress, CU_AD_FORMAT_SIGNED_INT16, 2, 8, 4, 64};
  cudaResourceDesc description;
  ASSERT_EQ(ToRuntime(resource, description), CUDA_SUCCESS);
  EXPECT_EQ(description.resType, cudaResourceTypePitch2D);
  EXPECT_EQ(description.res.pitch2D.desc.y, 16);
  CUDA_RESOURCE_DESC back;
  ASSERT_EQ(ToDriver(description, back), CUDA_SUCCESS);
  EXPECT_EQ(back.resType, CU_RESOURCE_TYPE_PITCH2D);
  EXPECT_EQ(back.res.pitch2D.devPtr, kAddress);
  EXPECT_EQ(back.res.pitch2D.format, CU_AD_FORMAT_SIGNED_INT16);
  EXPECT_EQ(back.res.pitch2D.numChannels, 2u);
  EXPECT_EQ(back.res.pitch2D.width, 8u);
  EXPECT_EQ(back.res.pitch2D.height, 4u);
  EXPECT_EQ(back.res.pitch2D.pitchInBytes, 64u);

  resource.res.pitch2D.numChannels = 3;
  EXPECT_EQ(ToRuntime(resource, description), CUDA_ERROR_INVALID_VALUE);
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = reinterpret_cast<CUarray>(kAddress);
  ASSERT_EQ(ToRuntime(resource, description), CUDA_SUCCESS);
  EXPECT_EQ(description.res.array.array, reinterpret_cast<cudaArray_t>(kAddress));
  resource.flags = 1;
  EXPECT_EQ(ToRuntime(resource, description), CUDA_ERROR_INVALID_VALUE);
}

TEST(TextureDescriptors, SamplingThereAndBack) {
  CUDA_TEXTURE_DESC texture{};
  texture.addressMode[0] = CU_TR_ADDRESS_MODE_MIRROR;
  texture.addressMode[2] = CU_TR_ADDRESS_MODE_BORDER;
  texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
  texture.maxAnisotropy = 4;
  texture.mipmapLevelBias = 0.5f;
  texture.minMipmapLevelClamp = 1;
  texture.maxMipmapLevelClamp = 3;
  texture.borderColor[3] = 0.25f;
  cudaTextureDesc description;
  ASSERT_EQ(ToRuntime(texture, description), CUDA_SUCCESS);
  EXPECT_EQ(description.addressMode[2], cudaAddressModeBorder);
  EXPECT_EQ(description.filterMode, cudaFilterModeLinear);
  EXPECT_EQ(description.readMode, cudaReadModeNormalizedFloat);
  for (const unsigned flag : {CU_TRSF_READ_AS_INTEGER, CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_SRGB,
                              CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_SEAMLESS_CUBEMAP}) {
    texture.flags = flag;
    ASSERT_EQ(ToRuntime(texture, description), CUDA_SUCCESS);
    EXPECT_EQ(description.readMode == cudaReadModeElementType, flag == CU_TRSF_READ_AS_INTEGER);
    EXPECT_EQ(description.normalizedCoords, flag == CU_TRSF_NORMALIZED_COORDINATES);
    EXPECT_EQ(description.sRGB, flag == CU_TRSF_SRGB);
    const CUDA_TEXTURE_DESC back = ToDriver(description);
    EXPECT_EQ(back.flags, flag);
    EXPECT_EQ(back.addressMode[0], texture.addressMode[0]);
    EXPECT_EQ(back.addressMode[1], texture.addressMode[1]);
    EXPECT_EQ(back.addressMode[2], texture.addressMode[2]);
    EXPECT_EQ(back.filterMode, texture.filterMode);
    EXPECT_EQ(back.maxAnisotropy, texture.maxAnisotropy);
    EXPECT_EQ(back.mipmapFilterMode, texture.mipmapFilterMode);
    EXPECT_EQ(back.mipmapLevelBias, texture.mipmapLevelBias);
    EXPECT_EQ(back.minMipmapLevelClamp, texture.minMipmapLevelClamp);
    EXPECT_EQ(back.maxMipmapLevelClamp, texture.maxMipmapLevelClamp);
    EXPECT_EQ(back.borderColor[3], texture.borderColor[3]);
  }
  texture.flags = 0x80;
  EXPECT_EQ(ToRuntime(texture, description), CUDA_ERROR_INVALID_VALUE);
}

TEST(TextureDescriptors, ViewsThereAndBack) {
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_FLOAT_2X16;
  view.width = 8;
  view.lastMipmapLevel = 2;
  view.lastLayer = 5;
  cudaResourceViewDesc description;
  ASSERT_EQ(ToRuntime(view, description), CUDA_SUCCESS);
  EXPECT_EQ(description.format, cudaResViewFormatHalf2);
  EXPECT_EQ(description.width, 8u);
  EXPECT_EQ(description.lastMipmapLevel, 2u);
  EXPECT_EQ(description.lastLayer, 5u);
  EXPECT_EQ(ToDriver(description).format, view.format);
  view.format = static_cast<CUresourceViewFormat>(CU_RES_VIEW_FORMAT_UNSIGNED_BC7 + 1);
  EXPECT_EQ(ToRuntime(view, description), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace torpor::shim
