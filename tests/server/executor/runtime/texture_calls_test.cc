#include "server/executor/runtime/texture_calls.h"

#include <driver_types.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kTexture = 4;

class TextureCallsTest : public RuntimeTest {
 protected:
  // Floats of the session's device memory.
  wire::TextureCreate Linear() const {
    wire::TextureCreate texture;
    texture.texture = kTexture;
    texture.resource = wire::TextureResource::kLinear;
    texture.source = base();
    texture.width = 1024;
    texture.format = CU_AD_FORMAT_FLOAT;
    texture.channels = 1;
    return texture;
  }
  cuda_api::CallStatus ValueOf(std::uint64_t object, std::uint64_t& value) {
    wire::ImageObjectValueResult result;
    cuda_api::CallStatus status = calls_.ImageObjectValue({object}, result);
    value = result.known_as;
    return status;
  }

  SessionArrays arrays_{*s_.device, s_.memory->image()};
  SessionTextures textures_{*s_.device};
  TextureCalls calls_{{*s_.device, textures_, arrays_, memory_, *s_.memory, streams_}};
  std::uint64_t value_ = 0;
};

TEST_F(TextureCallsTest, ATextureReadsMemoryOfTheSession) {
  EXPECT_TRUE(calls_.TextureCreate(Linear()).ok());
  EXPECT_TRUE(ValueOf(kTexture, value_).ok());
  EXPECT_TRUE(s_.cuda.image_objects().contains(value_));
  EXPECT_TRUE(textures_.reads_memory());
  EXPECT_TRUE(calls_.ImageObjectDestroy({kTexture}).ok());
  EXPECT_TRUE(s_.cuda.image_objects().empty());
}

TEST_F(TextureCallsTest, WhatCouldNotBeMadeSaysSoWhenItsValueIsAsked) {
  wire::TextureCreate texture = Linear();
  texture.source = base() + 4 * kMiB;
  EXPECT_TRUE(calls_.TextureCreate(texture).ok());
  EXPECT_FALSE(ValueOf(kTexture, value_).ok());
  EXPECT_TRUE(calls_.SurfaceCreate({5, /*array=*/99, 0}).ok());
  EXPECT_FALSE(ValueOf(5, value_).ok());
}

TEST_F(TextureCallsTest, ATextureIsKnownByItsPublishedValue) {
  ASSERT_TRUE(calls_.TextureCreate(Linear()).ok());
  ASSERT_TRUE(ValueOf(kTexture, value_).ok());
  EXPECT_TRUE(calls_.ImageObjectPublish({kTexture, value_}).ok());
  EXPECT_FALSE(textures_.has_moved());
  EXPECT_FALSE(calls_.ImageObjectPublish({99, value_}).ok());
}

TEST_F(TextureCallsTest, TexturesStayWhereAddressesDo) {
  ASSERT_TRUE(calls_.TextureCreate(Linear()).ok());
  s_.cuda.Break(CUDA_ERROR_UNKNOWN);
  EXPECT_TRUE(calls_.Rebind().ok());
  s_.cuda.Break(CUDA_SUCCESS);
}

}  // namespace
}  // namespace torpor::executor
