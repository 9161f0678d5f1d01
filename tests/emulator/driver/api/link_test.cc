// cuLink*: relocatable device code.
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {
namespace {

constexpr char kHeader[] = ".version 9.0\n.target sm_75\n.address_size 64\n";
constexpr char kUser[] =
    ".extern .global .u32 shared_value;\n"
    ".visible .entry increase() { .reg .b32 %r<3>; ld.global.u32 %r1, [shared_value];\n"
    "add.u32 %r2, %r1, 1; st.global.u32 [shared_value], %r2; ret; }\n";
constexpr char kOwner[] = ".visible .global .u32 shared_value = 41;\n";

class LinkTest : public CudaTest {
 protected:
  static CUresult AddText(CUlinkState state, const std::string& text, const char* name) {
    std::string ptx = kHeader + text;
    return cuLinkAddData(state, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, name, 0, nullptr,
                         nullptr);
  }
};

TEST_F(LinkTest, PartsBecomeAModule) {
  CUlinkState state = nullptr;
  ASSERT_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
  ASSERT_CUDA(AddText(state, kUser, "user"));
  ASSERT_CUDA(AddText(state, kOwner, "owner"));
  void* image = nullptr;
  std::size_t bytes = 0;
  ASSERT_CUDA(cuLinkComplete(state, &image, &bytes));
  // The image outlives the link in a copy.
  const std::vector<char> copy(static_cast<char*>(image), static_cast<char*>(image) + bytes);
  ASSERT_CUDA(cuLinkDestroy(state));

  CUmodule module = nullptr;
  ASSERT_CUDA(cuModuleLoadData(&module, copy.data()));
  CUfunction function = nullptr;
  ASSERT_CUDA(cuModuleGetFunction(&function, module, "increase"));
  ASSERT_CUDA(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuModuleGetGlobal(&address, &bytes, module, "shared_value"));
  EXPECT_EQ(bytes, sizeof(int));
  int value = 0;
  ASSERT_CUDA(cuMemcpyDtoH(&value, address, sizeof value));
  EXPECT_EQ(value, 42);
}

TEST_F(LinkTest, WhatIsMissingIsInTheCallersLog) {
  std::array<char, 256> log{};
  std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER,
                                         CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  CUlinkState state = nullptr;
  ASSERT_CUDA(cuLinkCreate(2, options.data(), values.data(), &state));
  ASSERT_CUDA(AddText(state, kUser, "user.ptx"));
  void* image = nullptr;
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_ERROR_INVALID_PTX);
  const std::string expected = "cannot link: undefined reference to 'shared_value' in user.ptx\n";
  EXPECT_EQ(log.data(), expected);
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), expected.size());
  ASSERT_CUDA(cuLinkDestroy(state));
  EXPECT_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LinkTest, ALogBufferIsNotOverrun) {
  std::array<char, 8> log{};
  log.fill('x');
  std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                         CU_JIT_ERROR_LOG_BUFFER};
  std::array<void*, 2> values = {reinterpret_cast<void*>(6), log.data()};
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadDataEx(&module, "garbage", 2, options.data(), values.data()),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log.data(), "canno");
  EXPECT_EQ(log[6], 'x');
}

TEST_F(LinkTest, FilesAreLinkedToo) {
  const std::string path = testing::TempDir() + "owner-" + std::to_string(getpid()) + ".ptx";
  std::ofstream(path) << kHeader << kOwner;
  CUlinkState state = nullptr;
  ASSERT_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
  ASSERT_CUDA(cuLinkAddFile(state, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr));
  ASSERT_CUDA(
      cuLinkAddFile(state, CU_JIT_INPUT_LIBRARY, "/lib/libcudadevrt.a", 0, nullptr, nullptr));
  EXPECT_EQ(cuLinkAddFile(state, CU_JIT_INPUT_LIBRARY, "/lib/libother.a", 0, nullptr, nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nowhere", 0, nullptr, nullptr),
            CUDA_ERROR_FILE_NOT_FOUND);
  std::remove(path.c_str());
  void* image = nullptr;
  EXPECT_CUDA(cuLinkComplete(state, &image, nullptr));
  EXPECT_CUDA(cuLinkDestroy(state));
}

TEST_F(LinkTest, AFatbinWithoutPtxIsRefused) {
  std::array<std::uint8_t, 16> empty = {0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0};
  CUlinkState state = nullptr;
  ASSERT_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
  EXPECT_EQ(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, empty.data(), empty.size(), "none", 0,
                          nullptr, nullptr),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  empty[0] = 0;
  EXPECT_EQ(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, empty.data(), empty.size(), "bad", 0,
                          nullptr, nullptr),
            CUDA_ERROR_INVALID_IMAGE);
  EXPECT_CUDA(cuLinkDestroy(state));
}

}  // namespace
}  // namespace torpor::emulator
