#include "server/executor/runtime/symbol_calls.h"

#include <driver_types.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

class SymbolCallsTest : public RuntimeTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(LoadKernel({"counter"})); }

  SymbolCalls calls_{{*s_.device, modules_, ownership_, streams_, s_.memory->image(), memory_,
                      marks_, downloads_}};
};

TEST_F(SymbolCallsTest, AVariableIsWrittenMarkedAndRead) {
  const std::uint64_t value = 4711;
  wire::MemcpyToSymbol write;
  write.module = 1;
  write.variable = "counter";
  write.bytes = sizeof value;
  write.data = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
  write.slot = 3;
  write.value = 7;
  EXPECT_TRUE(calls_.MemcpyToSymbol(write).ok());
  EXPECT_EQ(s_.cuda.variable(), 4711u);
  EXPECT_EQ(s_.memory->window().Slot(3)->load(), 7u);

  wire::MemcpyFromSymbol read;
  read.module = 1;
  read.variable = "counter";
  read.bytes = sizeof value;
  read.window_offset = wire::kReplyInline;
  wire::MemcpyFromSymbolResult result;
  ASSERT_TRUE(calls_.MemcpyFromSymbol(read, result).ok());
  ASSERT_EQ(result.data.size(), sizeof value);
  EXPECT_EQ(std::memcmp(result.data.data(), &value, sizeof value), 0);
}

TEST_F(SymbolCallsTest, AVariableIsWrittenFromDeviceMemoryOfTheSession) {
  const std::uint64_t value = 4712;
  std::memcpy(s_.Gpu(64), &value, sizeof value);
  wire::MemcpyToSymbol write;
  write.module = 1;
  write.variable = "counter";
  write.bytes = sizeof value;
  write.device_source = base() + 64;
  EXPECT_TRUE(calls_.MemcpyToSymbol(write).ok());
  EXPECT_EQ(s_.cuda.variable(), 4712u);
  write.device_source = base() + 4 * kMiB;
  EXPECT_EQ(calls_.MemcpyToSymbol(write).code, cudaErrorInvalidValue);
}

TEST_F(SymbolCallsTest, AnAddressIsToldAndPublished) {
  wire::SymbolAddress ask;
  ask.module = 1;
  ask.variable = "counter";
  wire::SymbolAddressResult result;
  ASSERT_TRUE(calls_.SymbolAddress(ask, result).ok());
  EXPECT_EQ(result.bytes, 8u);
  wire::SymbolPublish publish;
  publish.module = 1;
  publish.variable = "counter";
  publish.address = result.address + 0x1000;
  EXPECT_TRUE(calls_.SymbolPublish(publish).ok());
  EXPECT_EQ(modules_.Translate(publish.address), result.address);
  ask.variable = "absent";
  EXPECT_EQ(calls_.SymbolAddress(ask, result).code, cudaErrorInvalidSymbol);
}

}  // namespace
}  // namespace torpor::executor
