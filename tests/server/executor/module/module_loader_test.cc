#include "server/executor/module/module_loader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/wire/relocatable_module.h"
#include "tests/nvidia/fatbin_builder.h"
#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

using Image = std::vector<std::uint8_t>;

// One of PTX text of so many bytes; none: without an entry.
Image Fatbin(std::size_t text_bytes) {
  std::vector<TestEntry> entries;
  if (text_bytes > 0) entries.push_back({.payload = std::string(text_bytes, ' ')});
  const std::string bytes = MakeContainer(entries);
  return {bytes.begin(), bytes.end()};
}

class ModuleImageTest : public testing::Test {
 protected:
  absl::Status Load(const Image& image) { return LoadModuleCode(*device_, image).status(); }
  absl::Status LoadParts(const Image& linked, const std::vector<Image>& parts) {
    wire::RelocatableModule module;
    module.linked = linked;
    module.parts.assign(parts.begin(), parts.end());
    return Load(wire::Encoded(module));
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_ = *Device::Open(cuda_.driver(), 0);
  const Image nothing_ = Fatbin(0);
};

TEST_F(ModuleImageTest, AFatbinIsLoadedAsItIs) {
  EXPECT_TRUE(Load(Fatbin(8)).ok());
  EXPECT_TRUE(cuda_.linked().empty());
}

TEST_F(ModuleImageTest, PartsAreLinkedInOrder) {
  ASSERT_TRUE(LoadParts(nothing_, {Fatbin(8), Fatbin(16)}).ok());
  EXPECT_EQ(cuda_.linked(), (std::vector<Image>{Fatbin(8), Fatbin(16)}));
}

TEST_F(ModuleImageTest, MachineCodeForTheDeviceIsTaken) {
  cuda_.AddMachineCode();
  ASSERT_TRUE(LoadParts(Fatbin(8), {Fatbin(16)}).ok());
  EXPECT_TRUE(cuda_.linked().empty());
}

TEST_F(ModuleImageTest, MachineCodeForOtherDevicesIsPassedOver) {
  ASSERT_TRUE(LoadParts(Fatbin(8), {Fatbin(16)}).ok());
  EXPECT_EQ(cuda_.linked(), (std::vector<Image>{Fatbin(16)}));
}

TEST_F(ModuleImageTest, WhatIsNoFatbinNeverReachesTheDriver) {
  Image too_long = Fatbin(8);
  ++too_long[8];
  for (const Image& bad : {Image(), Image(16), too_long}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Load(bad)));
    EXPECT_TRUE(absl::IsInvalidArgument(LoadParts(bad, {Fatbin(8)})));
    EXPECT_TRUE(absl::IsInvalidArgument(LoadParts(nothing_, {Fatbin(8), bad})));
  }
  EXPECT_TRUE(cuda_.linked().empty());
}

TEST_F(ModuleImageTest, AFailedLinkIsAFailure) {
  cuda_.Break(CUDA_ERROR_INVALID_PTX);
  EXPECT_FALSE(LoadParts(nothing_, {Fatbin(8)}).ok());
}

}  // namespace
}  // namespace torpor::executor
