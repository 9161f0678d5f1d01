// Arrays, textures and surfaces of the driver API: what their copies send, and what is refused at
// once.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <initializer_list>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/array_copy.h"
#include "tests/client_shim/surface/fake_client_core.h"
#include "tests/client_shim/surface/fake_device.h"

namespace torpor::shim {
namespace {

class CudaArraysTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.hello = OneDevice();
    core_.allocations = {{kDevice, kBytes, true}};
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }

  // Of texels of two shorts.
  CUarray Array(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0) {
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {width, height, depth, CU_AD_FORMAT_SIGNED_INT16,
                                                2,     flags};
    CUarray array = nullptr;
    EXPECT_EQ(cuArray3DCreate(&array, &descriptor), CUDA_SUCCESS);
    core_.sent.clear();
    return array;
  }
  static CUDA_MEMCPY3D ToArray(CUarray array) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = kDevice;
    copy.srcPitch = 64;
    copy.srcHeight = 5;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = 12;
    copy.Height = 2;
    copy.Depth = 2;
    return copy;
  }

  FakeClientCore& core_ = FakeClientCore::Get();
};

TEST_F(CudaArraysTest, TellsWhatWasAskedFor) {
  const CUarray array = Array(8, 4, 2, CUDA_ARRAY3D_LAYERED);
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  ASSERT_EQ(cuArray3DGetDescriptor(&whole, array), CUDA_SUCCESS);
  EXPECT_EQ(whole.Depth, 2u);
  EXPECT_EQ(whole.Flags, unsigned{CUDA_ARRAY3D_LAYERED});
  CUDA_ARRAY_DESCRIPTOR flat{};
  ASSERT_EQ(cuArrayGetDescriptor(&flat, array), CUDA_SUCCESS);
  EXPECT_EQ(flat.Width, 8u);
  EXPECT_EQ(flat.Height, 4u);
  EXPECT_EQ(flat.Format, CU_AD_FORMAT_SIGNED_INT16);
  EXPECT_EQ(flat.NumChannels, 2u);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuArrayDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuArrayGetDescriptor(&flat, array), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaArraysTest, WhatNoArrayCanBeIsRefusedAtOnce) {
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR flat = {8, 4, CU_AD_FORMAT_FLOAT, 3};
  EXPECT_EQ(cuArrayCreate(&array, &flat), CUDA_ERROR_INVALID_VALUE);
  flat = {0, 4, CU_AD_FORMAT_FLOAT, 1};
  EXPECT_EQ(cuArrayCreate(&array, &flat), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuArrayCreate(&array, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY3D_DESCRIPTOR whole = {8, 4, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE};
  EXPECT_EQ(cuArray3DCreate(&array, &whole), CUDA_ERROR_NOT_SUPPORTED);
  CUmipmappedArray mipmapped = nullptr;
  EXPECT_EQ(cuMipmappedArrayCreate(&mipmapped, &whole, 2), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CudaArraysTest, LevelsGoWithTheirMipmappedArray) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {9, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray mipmapped = nullptr;
  ASSERT_EQ(cuMipmappedArrayCreate(&mipmapped, &descriptor, 100), CUDA_SUCCESS);
  CUarray level = nullptr;
  ASSERT_EQ(cuMipmappedArrayGetLevel(&level, mipmapped, 3), CUDA_SUCCESS);
  CUDA_ARRAY_DESCRIPTOR flat{};
  ASSERT_EQ(cuArrayGetDescriptor(&flat, level), CUDA_SUCCESS);
  EXPECT_EQ(flat.Width, 1u);
  EXPECT_EQ(cuMipmappedArrayGetLevel(&level, mipmapped, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMipmappedArrayDestroy(mipmapped), CUDA_SUCCESS);
  EXPECT_EQ(cuMipmappedArrayDestroy(mipmapped), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaArraysTest, CopiesOfBoxesAreInBytes) {
  const CUarray array = Array(8, 4, 3);
  CUDA_MEMCPY3D copy = ToArray(array);
  copy.srcXInBytes = 8;
  copy.srcY = copy.srcZ = 1;
  copy.dstXInBytes = 16;
  copy.dstY = copy.dstZ = 1;
  ASSERT_EQ(cuMemcpy3D(&copy), CUDA_SUCCESS);
  ExpectBoxIntoArray(core_.Only<wire::Memcpy3D>(), array, {16, 1, 1});
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
}

TEST_F(CudaArraysTest, RectanglesGoToTheirStream) {
  const CUarray array = Array(8, 4, 0);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcXInBytes = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = kDevice;
  copy.WidthInBytes = 20;
  copy.Height = 3;
  ASSERT_EQ(cuMemcpy2DAsync(&copy, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  const auto sent = core_.Only<wire::Memcpy3D>();
  EXPECT_EQ(sent.stream, FakeClientCore::kPerThreadStream);
  EXPECT_EQ(sent.src_position[0], 4u);
  EXPECT_EQ(sent.dst, kDevice);
  EXPECT_EQ(sent.dst_pitch, 20u) << "rows without gaps where none is said";
  EXPECT_EQ(sent.depth, 1u);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
}

TEST_F(CudaArraysTest, CopiesThatReachOutAreRefused) {
  const CUarray array = Array(8, 4, 3);
  for (const auto spoil : std::initializer_list<void (*)(CUDA_MEMCPY3D&)>{
           [](CUDA_MEMCPY3D& c) { c.dstXInBytes = 2; },
           [](CUDA_MEMCPY3D& c) { c.WidthInBytes = 10; },
           [](CUDA_MEMCPY3D& c) { c.dstXInBytes = 24; }, [](CUDA_MEMCPY3D& c) { c.dstZ = 2; },
           [](CUDA_MEMCPY3D& c) { c.srcPitch = 8; }, [](CUDA_MEMCPY3D& c) { c.srcHeight = 1; },
           [](CUDA_MEMCPY3D& c) { c.srcPitch = kBytes; }, [](CUDA_MEMCPY3D& c) { c.srcDevice = 0; },
           [](CUDA_MEMCPY3D& c) { c.srcLOD = 1; },
           [](CUDA_MEMCPY3D& c) { c.WidthInBytes = ~std::size_t{3}; }}) {
    CUDA_MEMCPY3D copy = ToArray(array);
    spoil(copy);
    EXPECT_EQ(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
  }
  CUDA_MEMCPY3D copy = ToArray(nullptr);
  EXPECT_EQ(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_TRUE(core_.sent.empty());
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
}

TEST_F(CudaArraysTest, OffsetsAreInBytes) {
  const CUarray array = Array(8, 0, 0);
  ASSERT_EQ(cuMemcpyDtoA(array, 12, kDevice, 8), CUDA_SUCCESS);
  const auto sent = core_.Only<wire::Memcpy3D>();
  EXPECT_EQ(sent.dst_position[0], 12u);
  EXPECT_EQ(sent.width, 8u);
  core_.sent.clear();
  EXPECT_EQ(cuMemcpyDtoA(array, 28, kDevice, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(core_.sent.empty());
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
}

TEST_F(CudaArraysTest, ATextureIsTheRuntimesToo) {
  const CUarray array = Array(8, 4, 0);
  wire::ImageObjectValueResult value;
  value.known_as = 77;
  core_.reply.result = wire::Encoded(value);
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC sampling{};
  sampling.flags = CU_TRSF_NORMALIZED_COORDINATES;
  CUtexObject texture = 0;
  EXPECT_EQ(cuTexObjectCreate(&texture, &resource, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuTexObjectCreate(&texture, &resource, &sampling, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(texture, 77u);
  cudaTextureDesc runtime{};
  EXPECT_EQ(cudaGetTextureObjectTextureDesc(&runtime, texture), cudaSuccess);
  EXPECT_EQ(runtime.readMode, cudaReadModeNormalizedFloat);
  CUDA_RESOURCE_DESC told{};
  ASSERT_EQ(cuTexObjectGetResourceDesc(&told, texture), CUDA_SUCCESS);
  EXPECT_EQ(told.res.array.hArray, array);
  CUDA_RESOURCE_VIEW_DESC view{};
  EXPECT_EQ(cuTexObjectGetResourceViewDesc(&view, texture), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuTexObjectDestroy(texture), CUDA_SUCCESS);

  CUsurfObject surface = 0;
  ASSERT_EQ(cuSurfObjectCreate(&surface, &resource), CUDA_SUCCESS);
  ASSERT_EQ(cuSurfObjectGetResourceDesc(&told, surface), CUDA_SUCCESS);
  EXPECT_EQ(told.res.array.hArray, array);
  EXPECT_EQ(cuSurfObjectDestroy(surface), CUDA_SUCCESS);
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {kDevice, CU_AD_FORMAT_FLOAT, 1, 64};
  EXPECT_EQ(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
}

}  // namespace
}  // namespace torpor::shim
