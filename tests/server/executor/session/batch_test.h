#pragma once

#include <driver_types.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/server/executor/session/batch_builder.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {

inline constexpr std::uint64_t kLease = 5;

// A header alone passes for a fatbin with the fake driver.
inline std::vector<std::uint8_t> EmptyFatbin() {
  std::vector<std::uint8_t> bytes(16);
  const std::uint32_t magic = 0xBA55ED50;
  const std::uint16_t header_bytes = 16;
  std::memcpy(bytes.data(), &magic, sizeof magic);
  std::memcpy(bytes.data() + 6, &header_bytes, sizeof header_bytes);
  return bytes;
}

// The module of the fake driver, whose code uses its variable.
inline std::vector<std::uint8_t> UsingModule() {
  constexpr char kText[] =
      ".visible .global .align 8 .u64 counter;\n"
      ".visible .entry record(.param .u64 value) { st.global.u64 [counter], 1; }";
  return {kText, kText + sizeof kText};
}

// Runs calls of a session under a lease.
class BatchTest : public testing::Test {
 protected:
  explicit BatchTest(AddressMode mode = AddressMode::kMap) : s_({}, mode) {}

  wire::Reply Call(const BatchBuilder& batch) {
    const std::size_t before = s_.replies.replies.size();
    EXPECT_TRUE(s_.Run(batch.Frame(kLease)).ok());
    EXPECT_EQ(s_.replies.replies.size(), before + 1);
    return s_.replies.replies.back();
  }
  // Error of an asynchronous call, as the next answer tells it.
  template <typename Command>
  cudaError_t ErrorOf(const Command& command) {
    return static_cast<cudaError_t>(
        Call(BatchBuilder().Add(command).Add(wire::DeviceSynchronize{})).async_error);
  }
  // Kernel 2 of module 1 is the fake's "record".
  void LoadKernel(const std::vector<std::string>& variables = {},
                  const std::vector<std::uint8_t>& image = EmptyFatbin()) {
    const Sha256Digest digest = Sha256(image.data(), image.size());
    ASSERT_TRUE(s_.modules->Store(digest, s_.memory->tenant(), image).ok());
    wire::ModuleUse use;
    use.module = 1;
    use.hash = digest;
    use.variables = variables;
    wire::KernelCreate create;
    create.kernel = 2;
    create.module = 1;
    create.name = "record";
    ASSERT_TRUE(s_.Run(BatchBuilder().Add(use).Add(create).Frame(kLease)).ok());
  }
  wire::LaunchKernel Launch(const std::uint64_t& value) const {
    wire::LaunchKernel launch;
    launch.kernel = 2;
    launch.grid = launch.block = {1, 1, 1};
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
    return launch;
  }
  std::uint64_t base() const { return s_.identity.device_base; }

  FakeSession s_;
};

}  // namespace torpor::executor
