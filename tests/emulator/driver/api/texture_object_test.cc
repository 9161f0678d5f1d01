// Texture and surface objects: what they may be of, what they tell, how long they live.
#include <cstring>

#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {
namespace {

// A number that the enumeration does not have.
template <typename Enumeration>
Enumeration Wild(unsigned number) {
  Enumeration value{};
  std::memcpy(&value, &number, sizeof value);
  return value;
}

class TextureObjectTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    description_.Width = description_.Height = 8;
    description_.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    description_.NumChannels = 4;
    description_.Flags = CUDA_ARRAY3D_SURFACE_LDST;
    ASSERT_CUDA(cuArray3DCreate(&array_, &description_));
    resource_.resType = CU_RESOURCE_TYPE_ARRAY;
    resource_.res.array.hArray = array_;
  }
  CUresult Create() { return cuTexObjectCreate(&texture_, &resource_, &sampling_, nullptr); }
  CUresult CreateView(const CUDA_RESOURCE_VIEW_DESC& view) {
    return cuTexObjectCreate(&texture_, &resource_, &sampling_, &view);
  }

  CUDA_ARRAY3D_DESCRIPTOR description_{};
  CUarray array_ = nullptr;
  CUDA_RESOURCE_DESC resource_{};
  CUDA_TEXTURE_DESC sampling_{};
  CUtexObject texture_ = 0;
};

TEST_F(TextureObjectTest, TellsWhatItWasMadeOf) {
  sampling_.filterMode = CU_TR_FILTER_MODE_LINEAR;
  ASSERT_CUDA(Create());
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  CUDA_RESOURCE_VIEW_DESC view{};
  EXPECT_CUDA(cuTexObjectGetResourceDesc(&resource, texture_));
  EXPECT_EQ(resource.res.array.hArray, array_);
  EXPECT_CUDA(cuTexObjectGetTextureDesc(&sampling, texture_));
  EXPECT_EQ(sampling.filterMode, CU_TR_FILTER_MODE_LINEAR);
  EXPECT_EQ(cuTexObjectGetResourceViewDesc(&view, texture_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuSurfObjectDestroy(texture_));  // of no surface
  EXPECT_CUDA(cuTexObjectGetTextureDesc(&sampling, texture_));
  EXPECT_CUDA(cuTexObjectDestroy(texture_));
  EXPECT_CUDA(cuTexObjectDestroy(texture_));
  EXPECT_EQ(cuTexObjectGetTextureDesc(&sampling, texture_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(TextureObjectTest, ContradictionsAreRefused) {
  sampling_.filterMode = CU_TR_FILTER_MODE_LINEAR;
  sampling_.flags = CU_TRSF_READ_AS_INTEGER;
  EXPECT_CUDA(Create());  // nothing is filtered between integers
  sampling_.filterMode = CU_TR_FILTER_MODE_POINT;
  sampling_.flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_SRGB;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  sampling_.flags = 0x1000;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  sampling_.flags = 0;
  sampling_.addressMode[1] = Wild<CUaddress_mode>(7);
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  sampling_ = {};
  resource_.res.array.hArray = nullptr;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  resource_.resType = Wild<CUresourcetype>(9);
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(TextureObjectTest, LinearMemoryMustBeThereAndAligned) {
  CUdeviceptr memory = 0;
  ASSERT_CUDA(cuMemAlloc(&memory, 8192));
  resource_ = {};
  resource_.resType = CU_RESOURCE_TYPE_LINEAR;
  auto& linear = resource_.res.linear;
  linear.devPtr = memory;
  linear.format = CU_AD_FORMAT_FLOAT;
  linear.numChannels = 1;
  linear.sizeInBytes = 4096;
  EXPECT_CUDA(Create());
  linear.devPtr = memory + 4;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  linear.devPtr = memory;
  linear.sizeInBytes = size_t{1} << 40;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  linear.sizeInBytes = 3;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  linear.sizeInBytes = 4096;
  linear.numChannels = 3;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  linear.devPtr = 64;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);

  resource_ = {};
  resource_.resType = CU_RESOURCE_TYPE_PITCH2D;
  auto& pitched = resource_.res.pitch2D;
  pitched.devPtr = memory;
  pitched.format = CU_AD_FORMAT_FLOAT;
  pitched.numChannels = 4;
  pitched.width = 16;
  pitched.height = 32;
  pitched.pitchInBytes = 256;
  EXPECT_CUDA(Create());
  pitched.height = 33;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  pitched.height = 4;
  pitched.pitchInBytes = 240;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE) << "less than a row";
  pitched.pitchInBytes = 264;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE) << "not aligned";
  EXPECT_CUDA(cuMemFree(memory));
}

TEST_F(TextureObjectTest, ViewsKeepToTheirResource) {
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
  view.width = view.height = 8;
  sampling_.flags = CU_TRSF_READ_AS_INTEGER;
  EXPECT_CUDA(CreateView(view));
  CUDA_RESOURCE_VIEW_DESC known{};
  EXPECT_CUDA(cuTexObjectGetResourceViewDesc(&known, texture_));
  EXPECT_EQ(known.format, CU_RES_VIEW_FORMAT_UINT_1X32);
  view.format = CU_RES_VIEW_FORMAT_UINT_2X32;
  EXPECT_EQ(CreateView(view), CUDA_ERROR_INVALID_VALUE) << "texels of another size";
  view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
  EXPECT_EQ(CreateView(view), CUDA_ERROR_NOT_SUPPORTED);
  view.format = CU_RES_VIEW_FORMAT_NONE;
  EXPECT_CUDA(CreateView(view));
  view.lastMipmapLevel = 1;
  EXPECT_EQ(CreateView(view), CUDA_ERROR_INVALID_VALUE);
  view.lastMipmapLevel = 0;
  view.lastLayer = 1;
  EXPECT_EQ(CreateView(view), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(TextureObjectTest, TheSlicesOfAVolumeAreNoLayers) {
  description_.Depth = 8;
  CUmipmappedArray volume = nullptr;
  ASSERT_CUDA(cuMipmappedArrayCreate(&volume, &description_, 2));
  resource_.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource_.res.mipmap.hMipmappedArray = volume;
  sampling_.flags = CU_TRSF_NORMALIZED_COORDINATES;
  CUDA_RESOURCE_VIEW_DESC view{};
  view.width = view.height = view.depth = 8;
  view.lastMipmapLevel = 1;
  EXPECT_CUDA(CreateView(view));
  view.firstLayer = view.lastLayer = 7;
  EXPECT_EQ(CreateView(view), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(TextureObjectTest, ViewsOfLayersHaveThemAtEveryLevel) {
  description_.Depth = 8;
  description_.Flags = CUDA_ARRAY3D_LAYERED;
  CUmipmappedArray layered = nullptr;
  ASSERT_CUDA(cuMipmappedArrayCreate(&layered, &description_, 2));
  resource_.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource_.res.mipmap.hMipmappedArray = layered;
  sampling_.flags = CU_TRSF_NORMALIZED_COORDINATES;
  CUDA_RESOURCE_VIEW_DESC view{};
  view.width = view.height = 8;
  view.lastMipmapLevel = 1;
  view.firstLayer = view.lastLayer = 7;
  EXPECT_CUDA(CreateView(view));
  view.lastLayer = 8;
  EXPECT_EQ(CreateView(view), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(TextureObjectTest, SeamlessCubesAreNotSupported) {
  description_.Depth = 6;
  description_.Flags = CUDA_ARRAY3D_CUBEMAP;
  ASSERT_CUDA(cuArray3DCreate(&array_, &description_));
  resource_.res.array.hArray = array_;
  sampling_.flags = CU_TRSF_SEAMLESS_CUBEMAP;
  EXPECT_EQ(Create(), CUDA_ERROR_NOT_SUPPORTED);
  sampling_.flags = 0;
  EXPECT_CUDA(Create());
}

TEST_F(TextureObjectTest, LevelsNeedNormalisedCoordinates) {
  CUmipmappedArray mipmapped = nullptr;
  ASSERT_CUDA(cuMipmappedArrayCreate(&mipmapped, &description_, 3));
  resource_.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource_.res.mipmap.hMipmappedArray = mipmapped;
  EXPECT_EQ(Create(), CUDA_ERROR_INVALID_VALUE);
  sampling_.flags = CU_TRSF_NORMALIZED_COORDINATES;
  EXPECT_CUDA(Create());
}

TEST_F(TextureObjectTest, SurfacesNeedAnArray) {
  CUsurfObject surface = 0;
  ASSERT_CUDA(cuSurfObjectCreate(&surface, &resource_));
  CUDA_RESOURCE_DESC known{};
  EXPECT_CUDA(cuSurfObjectGetResourceDesc(&known, surface));
  EXPECT_EQ(known.res.array.hArray, array_);
  EXPECT_CUDA(cuSurfObjectDestroy(surface));
  EXPECT_CUDA(cuSurfObjectDestroy(surface));  // as a driver does
  EXPECT_CUDA(cuTexObjectDestroy(1234567));
  description_.Flags = 0;
  ASSERT_CUDA(cuArray3DCreate(&array_, &description_));
  resource_.res.array.hArray = array_;
  EXPECT_CUDA(cuSurfObjectCreate(&surface, &resource_));
  EXPECT_CUDA(cuSurfObjectDestroy(surface));
  resource_.res.array.hArray = nullptr;
  EXPECT_EQ(cuSurfObjectCreate(&surface, &resource_), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace torpor::emulator
