#include <gtest/gtest.h>

#include "client_shim/nvrtc/architecture_option.h"

namespace torpor::shim {
namespace {

using Options = std::vector<const char*>;

VirtualOptions Rewrite(const Options& options) {
  return ForVirtualArchitecture(static_cast<int>(options.size()), options.data());
}

TEST(NvrtcOptionsTest, ARealArchitectureBecomesVirtual) {
  for (const char* const option : {"--gpu-architecture=sm_90a", "-arch=sm_90a"}) {
    const VirtualOptions rewritten = Rewrite({"-O3", option});
    EXPECT_TRUE(rewritten.is_changed);
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    EXPECT_EQ(rewritten.options, (std::vector<std::string>{"-O3", name + "=compute_90a"}));
  }
}

TEST(NvrtcOptionsTest, TheValueMayBeTheNextOption) {
  const VirtualOptions rewritten = Rewrite({"-arch", "sm_75", "-DNAME=sm_75", "sm_75"});
  EXPECT_TRUE(rewritten.is_changed);
  EXPECT_EQ(rewritten.options,
            (std::vector<std::string>{"-arch", "compute_75", "-DNAME=sm_75", "sm_75"}));
}

TEST(NvrtcOptionsTest, WhatAsksForPtxStaysAsItIs) {
  EXPECT_FALSE(Rewrite({"--gpu-architecture=compute_75", "-lineinfo"}).is_changed);
  EXPECT_FALSE(Rewrite({}).is_changed);
  EXPECT_FALSE(Rewrite({"-arch"}).is_changed);
}

}  // namespace
}  // namespace torpor::shim
