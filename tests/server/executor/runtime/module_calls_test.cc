#include "server/executor/runtime/module_calls.h"

#include <driver_types.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

class ModuleCallsTest : public RuntimeTest {
 protected:
  ModuleCalls calls_{{*s_.device, modules_, ownership_, streams_, s_.memory->image(), memory_}};
};

TEST_F(ModuleCallsTest, AModuleThatTheNodeLacksIsSentInPieces) {
  std::vector<std::uint8_t> bytes(16);
  const std::uint32_t magic = 0xBA55ED50;
  const std::uint16_t header_bytes = 16;
  std::memcpy(bytes.data(), &magic, sizeof magic);
  std::memcpy(bytes.data() + 6, &header_bytes, sizeof header_bytes);
  wire::ModuleLoad load;
  load.module = 1;
  load.hash = Sha256(bytes.data(), bytes.size());
  wire::ModuleLoadResult loaded;
  EXPECT_TRUE(calls_.ModuleLoad(load, loaded).ok());
  EXPECT_EQ(loaded.found, 0u);

  wire::ModuleUpload upload;
  upload.hash = load.hash;
  upload.total_bytes = bytes.size();
  upload.payload = wire::Payload::kInline;
  wire::ModuleUploadResult nothing;
  for (std::uint64_t at : {0, 8}) {
    upload.at = at;
    upload.bytes = 8;
    upload.data = std::span(bytes).subspan(at, 8);
    EXPECT_TRUE(calls_.ModuleUpload(upload, nothing).ok());
  }
  EXPECT_TRUE(calls_.ModuleLoad(load, loaded).ok());
  EXPECT_EQ(loaded.found, 1u);
  upload.bytes = 9;
  EXPECT_EQ(calls_.ModuleUpload(upload, nothing).code, cudaErrorInvalidValue);
}

TEST_F(ModuleCallsTest, AKernelGoesWithItsModule) {
  wire::ModuleUse use;
  use.module = 1;
  use.hash = StoreFatbin();
  ASSERT_TRUE(calls_.ModuleUse(use).ok());
  wire::KernelCreate create;
  create.kernel = 2;
  create.module = 1;
  create.name = "record";
  ASSERT_TRUE(calls_.KernelCreate(create).ok());
  wire::FuncGetAttributesResult attributes;
  EXPECT_TRUE(calls_.FuncGetAttributes({2}, attributes).ok());
  EXPECT_EQ(attributes.values.size(), std::size_t{CU_FUNC_ATTRIBUTE_MAX});
  ASSERT_TRUE(calls_.ModuleUnload({1}).ok());
  EXPECT_EQ(calls_.FuncGetAttributes({2}, attributes).code, cudaErrorInvalidDeviceFunction);
}

TEST_F(ModuleCallsTest, UnknownAttributesAreRefused) {
  ASSERT_NO_FATAL_FAILURE(LoadKernel());
  EXPECT_EQ(calls_.FuncSetAttribute({2, -1, 0}).code, cudaErrorInvalidValue);
  EXPECT_EQ(calls_.FuncSetAttribute({2, CU_FUNC_ATTRIBUTE_MAX, 0}).code, cudaErrorInvalidValue);
  EXPECT_EQ(calls_.FuncSetAttribute({9, 0, 0}).code, cudaErrorInvalidDeviceFunction);
}

}  // namespace
}  // namespace torpor::executor
