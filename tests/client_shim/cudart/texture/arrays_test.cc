// What arrays, copies of volumes, textures and surfaces send, and what is refused at once.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "client_shim/cudart/overrides.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/array_copy.h"
#include "tests/client_shim/surface/fake_client_core.h"

// cudaMemcpyToArray is, and old programs call it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace torpor::shim {
namespace {

constexpr cudaChannelFormatDesc kShort2 = {16, 16, 0, 0, cudaChannelFormatKindSigned};

class CudartArraysTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.hello.device_base = kDevice;
    core_.hello.host_base = kHost;
    core_.hello.device_bytes = core_.hello.host_bytes = 1 << 20;
    core_.allocations = {{kDevice, kBytes, true}, {kHost, kBytes, false}};
    (void)cudaGetLastError();
  }

  cudaArray_t ClientArray(cudaExtent extent, unsigned flags = 0) {
    cudaArray_t array = nullptr;
    EXPECT_EQ(cudaMalloc3DArray(&array, &kShort2, extent, flags), cudaSuccess);
    EXPECT_EQ(core_.sent.back().call_id, wire::ArrayCheck::kCallId);
    core_.sent.clear();
    return array;
  }
  static cudaPitchedPtr Pitched(std::uint64_t address, std::size_t pitch, std::size_t rows) {
    return {reinterpret_cast<void*>(address), pitch, pitch, rows};
  }
  void AnswerValue(std::uint64_t value) {
    wire::ImageObjectValueResult result;
    result.known_as = value;
    core_.reply.result = wire::Encoded(result);
  }

  FakeClientCore& core_ = FakeClientCore::Get();
};

TEST_F(CudartArraysTest, TellsWhatWasAskedFor) {
  const cudaArray_t array = ClientArray({8, 4, 2}, cudaArrayLayered);
  cudaChannelFormatDesc format{};
  cudaExtent extent{};
  unsigned flags = 0;
  EXPECT_EQ(cudaArrayGetInfo(&format, &extent, &flags, array), cudaSuccess);
  EXPECT_EQ(format.y, 16);
  EXPECT_EQ(extent.depth, 2u);
  EXPECT_EQ(flags, cudaArrayLayered);
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
  EXPECT_EQ(core_.freed.size(), 1u) << "its block";
  EXPECT_EQ(cudaFreeArray(array), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetChannelDesc(&format, array), cudaErrorInvalidResourceHandle);
}

TEST_F(CudartArraysTest, WhatNoArrayCanBeIsRefusedAtOnce) {
  cudaArray_t array = nullptr;
  EXPECT_EQ(cudaMallocArray(&array, nullptr, 4, 4, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocArray(&array, &kShort2, 0, 4, 0), cudaErrorInvalidValue);
  for (const cudaChannelFormatDesc& wrong :
       {cudaChannelFormatDesc{16, 8, 0, 0, cudaChannelFormatKindSigned},
        cudaChannelFormatDesc{16, 0, 16, 0, cudaChannelFormatKindSigned},
        cudaChannelFormatDesc{8, 8, 8, 0, cudaChannelFormatKindUnsigned},
        cudaChannelFormatDesc{8, 0, 0, 0, cudaChannelFormatKindFloat},
        cudaChannelFormatDesc{64, 0, 0, 0, cudaChannelFormatKindSigned},
        cudaChannelFormatDesc{0, 0, 0, 0, cudaChannelFormatKindSigned},
        cudaChannelFormatDesc{-8, 0, 0, 0, cudaChannelFormatKindSigned}})
    EXPECT_EQ(cudaMallocArray(&array, &wrong, 4, 4, 0), cudaErrorInvalidChannelDescriptor);
  EXPECT_EQ(cudaMallocArray(&array, &kShort2, 4, 4, cudaArraySparse), cudaErrorNotSupported);
  EXPECT_EQ(core_.warnings.size(), 1u);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CudartArraysTest, AnArrayWithoutRoomLeavesNothingBehind) {
  core_.reply.status = cudaErrorMemoryAllocation;
  cudaArray_t array = nullptr;
  EXPECT_EQ(cudaMallocArray(&array, &kShort2, 4, 4, 0), cudaErrorMemoryAllocation);
  EXPECT_TRUE(core_.live.empty());
  EXPECT_EQ(core_.freed.size(), 1u);
}

TEST_F(CudartArraysTest, WidthsAreInTexelsWhereAnArrayTakesPart) {
  const cudaArray_t array = ClientArray({8, 4, 3});
  cudaMemcpy3DParms copy{};
  copy.srcPtr = Pitched(kDevice, 64, 5);
  copy.srcPos = {8, 1, 1};
  copy.dstArray = array;
  copy.dstPos = {2, 1, 1};
  copy.extent = {3, 2, 2};
  copy.kind = cudaMemcpyDeviceToDevice;
  ASSERT_EQ(cudaMemcpy3D(&copy), cudaSuccess);
  ExpectBoxIntoArray(core_.Only<wire::Memcpy3D>(), array, {8, 1, 1});
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
}

TEST_F(CudartArraysTest, CopiesThatReachOutAreRefused) {
  const cudaArray_t array = ClientArray({8, 4, 3});
  cudaMemcpy3DParms good{};
  good.srcPtr = Pitched(kDevice, 64, 4);
  good.dstArray = array;
  good.extent = {8, 4, 3};
  good.kind = cudaMemcpyDeviceToDevice;
  for (const auto spoil : std::initializer_list<void (*)(cudaMemcpy3DParms&)>{
           [](cudaMemcpy3DParms& c) { c.dstPos.x = 1; },
           [](cudaMemcpy3DParms& c) { c.dstPos.z = 1; },
           [](cudaMemcpy3DParms& c) { c.extent.width = ~std::size_t{0} / 2; },
           [](cudaMemcpy3DParms& c) { c.srcPtr.pitch = 31; },
           [](cudaMemcpy3DParms& c) { c.srcPtr.pitch = kBytes; },
           [](cudaMemcpy3DParms& c) { c.srcPtr.ysize = 3; },
           [](cudaMemcpy3DParms& c) { c.srcPtr.ptr = nullptr; },
           [](cudaMemcpy3DParms& c) { c.dstPtr = c.srcPtr; },
           [](cudaMemcpy3DParms& c) { c.kind = cudaMemcpyHostToDevice; }}) {
    cudaMemcpy3DParms copy = good;
    spoil(copy);
    EXPECT_EQ(cudaMemcpy3D(&copy), cudaErrorInvalidValue);
  }
  EXPECT_TRUE(core_.sent.empty());
  EXPECT_EQ(cudaMemcpy3D(&good), cudaSuccess);
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
}

TEST_F(CudartArraysTest, BytesGoOnFromRowToRowInAsFewBoxesAsPossible) {
  const cudaArray_t array = ClientArray({8, 6, 0});
  ASSERT_EQ(cudaMemcpyToArray(array, 12, 1, reinterpret_cast<void*>(kDevice), 20 + 64 + 8,
                              cudaMemcpyDeviceToDevice),
            cudaSuccess);
  ASSERT_EQ(core_.sent.size(), 3u);
  const std::uint64_t wanted[3][5] = {// x, y, width, height, offset of the source
                                      {12, 1, 20, 1, 0},
                                      {0, 2, 32, 2, 20},
                                      {0, 4, 8, 1, 84}};
  for (std::size_t i = 0; i < 3; ++i) {
    wire::Memcpy3D copy;
    wire::Reader reader(core_.sent[i].fields);
    reader(copy);
    EXPECT_EQ(copy.dst_position[0], wanted[i][0]);
    EXPECT_EQ(copy.dst_position[1], wanted[i][1]);
    EXPECT_EQ(copy.width, wanted[i][2]);
    EXPECT_EQ(copy.height, wanted[i][3]);
    EXPECT_EQ(copy.src, kDevice + wanted[i][4]);
  }
  core_.sent.clear();
  EXPECT_EQ(cudaMemcpyToArray(array, 12, 5, reinterpret_cast<void*>(kDevice), 21,
                              cudaMemcpyDeviceToDevice),
            cudaErrorInvalidValue);
  EXPECT_TRUE(core_.sent.empty());
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
}

TEST_F(CudartArraysTest, LevelsAreArraysThatCannotBeFreed) {
  cudaMipmappedArray_t mipmapped = nullptr;
  ASSERT_EQ(cudaMallocMipmappedArray(&mipmapped, &kShort2, {9, 4, 0}, 100, 0), cudaSuccess);
  cudaArray_t level = nullptr;
  ASSERT_EQ(cudaGetMipmappedArrayLevel(&level, mipmapped, 3), cudaSuccess);
  cudaExtent extent{};
  EXPECT_EQ(cudaArrayGetInfo(nullptr, &extent, nullptr, level), cudaSuccess);
  EXPECT_EQ(extent.width, 1u);
  EXPECT_EQ(cudaGetMipmappedArrayLevel(&level, mipmapped, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeArray(level), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeMipmappedArray(mipmapped), cudaSuccess);
  EXPECT_EQ(cudaGetChannelDesc(nullptr, level), cudaErrorInvalidValue);
  EXPECT_EQ(cudaArrayGetInfo(nullptr, &extent, nullptr, level), cudaErrorInvalidResourceHandle);
}

TEST_F(CudartArraysTest, ATexturesValueIsTheGpusAndIsPublished) {
  const cudaArray_t array = ClientArray({8, 4, 0});
  AnswerValue(77);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc sampling{};
  sampling.normalizedCoords = 1;
  cudaTextureObject_t texture = 0;
  ASSERT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaSuccess);
  EXPECT_EQ(texture, 77u);
  EXPECT_EQ(core_.settings, std::vector<std::uint32_t>{wire::ImageObjectPublish::kCallId});
  cudaTextureDesc known{};
  EXPECT_EQ(cudaGetTextureObjectTextureDesc(&known, texture), cudaSuccess);
  EXPECT_EQ(known.normalizedCoords, 1);
  cudaResourceViewDesc view{};
  EXPECT_EQ(cudaGetTextureObjectResourceViewDesc(&view, texture), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDestroySurfaceObject(texture), cudaSuccess);
  EXPECT_FALSE(core_.live.empty()) << "a texture is no surface";
  EXPECT_EQ(cudaDestroyTextureObject(texture), cudaSuccess);
  EXPECT_EQ(cudaDestroyTextureObject(texture), cudaSuccess) << "of no object";
  sampling.filterMode = cudaFilterModeLinear;
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaErrorInvalidValue)
      << "a filter between integers";
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
}

TEST_F(CudartArraysTest, TwoObjectsOfOneValueAreNotToldApart) {
  const cudaArray_t array = ClientArray({8, 4, 0}, cudaArraySurfaceLoadStore);
  AnswerValue(5);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t first = 0;
  cudaSurfaceObject_t second = 0;
  ASSERT_EQ(cudaCreateSurfaceObject(&first, &resource), cudaSuccess);
  EXPECT_EQ(cudaCreateSurfaceObject(&second, &resource), cudaErrorNotSupported);
  EXPECT_EQ(core_.warnings.size(), 1u);
  EXPECT_EQ(cudaDestroySurfaceObject(first), cudaSuccess);
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
  EXPECT_TRUE(core_.live.empty());
}

TEST_F(CudartArraysTest, VolumesAreFilledAtOnceWhereRowsFollowEachOther) {
  ASSERT_EQ(cudaMemset3D(Pitched(kDevice, 64, 4), 7, {32, 4, 3}), cudaSuccess);
  EXPECT_EQ(core_.Only<wire::Memset2D>().height, 12u);
  core_.sent.clear();
  ASSERT_EQ(cudaMemset3D(Pitched(kDevice, 64, 4), 7, {32, 2, 3}), cudaSuccess);
  EXPECT_EQ(core_.sent.size(), 3u);
  core_.sent.clear();
  EXPECT_EQ(cudaMemset3D(Pitched(kDevice, 64, 2), 7, {32, 4, 3}), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset3D(Pitched(kDevice, kBytes, 2), 7, {32, 2, 3}), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace torpor::shim
