#include "emulator/driver/texture/texture_objects.h"

#include <gtest/gtest.h>

#include "tests/emulator/driver/emulated_device.h"

namespace torpor::emulator {
namespace {

constexpr CUDA_ARRAY3D_DESCRIPTOR kBytes{.Width = 16,
                                         .Height = 4,
                                         .Depth = 0,
                                         .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                         .NumChannels = 1,
                                         .Flags = CUDA_ARRAY3D_SURFACE_LDST};

class TextureObjectsTest : public testing::Test {
 protected:
  CUDA_RESOURCE_DESC MakeArrayResource() {
    auto levels = MakeArrays(kBytes, 1, emulated_.device);
    EXPECT_TRUE(levels.ok());
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = arrays_.Create(levels->front());
    return resource;
  }

  EmulatedDevice emulated_;
  ArrayTable arrays_;
  MipmappedArrayTable mipmapped_arrays_;
  TextureObjects objects_{{arrays_, mipmapped_arrays_, emulated_.space}};
};

TEST_F(TextureObjectsTest, TellsWhatATextureWasMadeOf) {
  const TextureRequest request{.resource = MakeArrayResource(), .texture = {}, .view = {}};
  const auto texture = objects_.CreateTexture(request);
  ASSERT_TRUE(texture.ok());
  const auto found = objects_.FindTexture(*texture);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->resource.res.array.hArray, request.resource.res.array.hArray);
  EXPECT_FALSE(objects_.DestroySurface(*texture));
  EXPECT_TRUE(objects_.DestroyTexture(*texture));
  EXPECT_FALSE(objects_.DestroyTexture(*texture));
}

TEST_F(TextureObjectsTest, SurfacesNeedAnArrayThatIsAlive) {
  const CUDA_RESOURCE_DESC resource = MakeArrayResource();
  const auto surface = objects_.CreateSurface(resource);
  ASSERT_TRUE(surface.ok());
  EXPECT_TRUE(objects_.DestroySurface(*surface));
  arrays_.Destroy(resource.res.array.hArray);
  const auto refused = objects_.CreateSurface(resource);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(TextureObjectsTest, LinearTexturesNeedDeviceMemory) {
  TextureRequest request;
  request.resource.resType = CU_RESOURCE_TYPE_LINEAR;
  request.resource.res.linear = {kWindowBegin, CU_AD_FORMAT_FLOAT, 1, 64};
  EXPECT_FALSE(objects_.CreateTexture(request).ok());
  const auto memory = emulated_.device.AllocateMemory(64, RegionKind::kDevice, nullptr);
  ASSERT_TRUE(memory.ok());
  request.resource.res.linear.devPtr = *memory;
  const auto texture = objects_.CreateTexture(request);
  ASSERT_TRUE(texture.ok());
  EXPECT_TRUE(objects_.DestroyTexture(*texture));
}

}  // namespace
}  // namespace torpor::emulator
