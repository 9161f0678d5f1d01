#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "emulator/exec/program.h"
#include "tests/emulator/exec/fake_device_memory.h"

namespace torpor::emulator {

inline constexpr char kPtxHeader[] = ".version 9.0\n.target sm_90\n.address_size 64\n";

// kernels/NAME.cu, as PTX or as machine code: there are executables for both.
ExecResult<std::unique_ptr<Program>> LoadKernels(const std::string& name, DeviceMemory& memory);
bool KernelsAreMachineCode();

// An array in the fake device, readable by the host, too.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(FakeDeviceMemory& memory, std::size_t size) : memory_(memory), size_(size) {
    data_ = reinterpret_cast<T*>(*memory.Allocate(size * sizeof(T)));
  }
  ~DeviceArray() { memory_.Free(reinterpret_cast<std::uint64_t>(data_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  std::size_t size() const { return size_; }

 private:
  FakeDeviceMemory& memory_;
  std::size_t size_;
  T* data_;
};

class KernelTest : public ::testing::Test {
 protected:
  void Load(const std::string& name) { Take(LoadKernels(name, memory_)); }
  void LoadText(const std::string& ptx) { Take(Program::Load(ptx, memory_, DeviceTraits{})); }

  // A kernel `k` that stores what `body` leaves in %r1 in out[tid]. `before` is the module's text
  // before the kernel.
  void LoadBody(const std::string& body, const std::string& before = "") {
    LoadText(kPtxHeader + before + ".visible .entry k(.param .u64 out)\n{\n" +
             ".reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<9>; .reg .f32 %f<9>;\n" + body +
             "\nld.param.u64 %rd1, [out];\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\n"
             "add.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r1;\nret;\n}\n");
  }

  template <typename... Arguments>
  ExecResult<void> Launch(const std::string& kernel, LaunchConfig config, Arguments... arguments) {
    const KernelInfo* info = program_->FindKernel(kernel);
    if (info == nullptr) return Failure<ExecError>{ExecError::kNotFound, kernel};
    std::vector<std::uint8_t> packed(info->parameter_bytes + 1);
    [[maybe_unused]] std::size_t index = 0;
    (Pack(packed, *info, index, arguments), ...);
    config.parameters = packed.data();
    return program_->Launch(kernel, config);
  }

  template <typename... Arguments>
  void MustRun(const std::string& kernel, Dim3 grid, Dim3 block, Arguments... arguments) {
    LaunchConfig config;
    config.grid = grid;
    config.block = block;
    const auto result = Launch(kernel, config, arguments...);
    ASSERT_TRUE(result) << result.failure().message;
  }

  // What LoadBody's kernel leaves in out[tid] for one warp.
  std::vector<std::uint32_t> RunWarp(const std::string& body, const std::string& before = "") {
    constexpr std::uint32_t kLanes = 32;
    LoadBody(body, before);
    DeviceArray<std::uint32_t> out(memory_, kLanes);
    MustRun("k", {1, 1, 1}, {kLanes, 1, 1}, out.data());
    return {out.data(), out.data() + kLanes};
  }

  template <typename... Arguments>
  void MustFail(ExecError code, const std::string& kernel, Dim3 block, Arguments... arguments) {
    LaunchConfig config;
    config.block = block;
    const auto result = Launch(kernel, config, arguments...);
    ASSERT_FALSE(result) << kernel;
    EXPECT_EQ(result.failure().code, code) << result.failure().message;
    EXPECT_NE(result.failure().message.find(kernel), std::string::npos) << result.failure().message;
    EXPECT_NE(result.failure().message.find("block (0,0,0)"), std::string::npos)
        << result.failure().message;
  }

  FakeDeviceMemory memory_;
  std::unique_ptr<Program> program_;

 private:
  void Take(ExecResult<std::unique_ptr<Program>> loaded) {
    ASSERT_TRUE(loaded) << loaded.failure().message;
    program_ = std::move(*loaded);
  }

  template <typename T>
  static void Pack(std::vector<std::uint8_t>& packed, const KernelInfo& info, std::size_t& index,
                   const T& argument) {
    static_assert(std::is_trivially_copyable_v<T>);
    ASSERT_LT(index, info.parameters.size());
    const auto bytes = std::as_bytes(std::span(&argument, 1));
    ASSERT_EQ(info.parameters[index].size, bytes.size()) << info.name << " " << index;
    std::memcpy(&packed[info.parameters[index].offset], bytes.data(), bytes.size());
    ++index;
  }
};

}  // namespace torpor::emulator
