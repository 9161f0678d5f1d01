#include "emulator/driver/context/primary_context.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/emulator/driver/emulated_device.h"

namespace torpor::emulator {
namespace {

// Numbers contexts in order of creation.
class FakeRegistry final : public ContextRegistry {
 public:
  CUcontext AddContext(const std::shared_ptr<Context>& context) override {
    CUcontext handle = reinterpret_cast<CUcontext>(++last_);
    contexts_[handle] = context;
    return handle;
  }
  std::shared_ptr<Context> RemoveContext(CUcontext handle) override {
    auto node = contexts_.extract(handle);
    return node.empty() ? nullptr : node.mapped();
  }
  std::size_t size() const { return contexts_.size(); }

 private:
  std::uintptr_t last_ = 0;
  std::map<CUcontext, std::shared_ptr<Context>> contexts_;
};

class PrimaryContextTest : public testing::Test {
 protected:
  std::shared_ptr<Context> Retain(CUcontext& handle) { return *primary_.Retain(handle); }

  EmulatedDevice emulated_;
  FakeRegistry registry_;
  PrimaryContext primary_{emulated_.device, registry_};
};

TEST_F(PrimaryContextTest, LivesFromTheFirstRetainToTheLastRelease) {
  EXPECT_EQ(primary_.handle(), nullptr);
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  const auto context = Retain(first);
  EXPECT_TRUE(context->primary());
  EXPECT_EQ(Retain(second), context);
  EXPECT_EQ(first, second);
  EXPECT_EQ(primary_.Release(), CUDA_SUCCESS);
  EXPECT_EQ(primary_.handle(), first);
  EXPECT_EQ(primary_.Release(), CUDA_SUCCESS);
  EXPECT_EQ(primary_.handle(), nullptr);
  EXPECT_EQ(registry_.size(), 0U);
  EXPECT_EQ(primary_.Release(), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(PrimaryContextTest, ResetEndsEveryReference) {
  CUcontext handle = nullptr;
  Retain(handle);
  Retain(handle);
  primary_.Reset();
  EXPECT_EQ(registry_.size(), 0U);
  EXPECT_EQ(primary_.Release(), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext next = nullptr;
  Retain(next);
  EXPECT_NE(next, handle);
}

TEST_F(PrimaryContextTest, FlagsOutliveTheContext) {
  CUcontext handle = nullptr;
  const auto context = Retain(handle);
  primary_.SetFlags(CU_CTX_SCHED_SPIN);
  EXPECT_EQ(context->flags(), static_cast<unsigned>(CU_CTX_SCHED_SPIN));
  primary_.Reset();
  EXPECT_EQ(Retain(handle)->flags(), static_cast<unsigned>(CU_CTX_SCHED_SPIN));
  EXPECT_EQ(primary_.flags(), static_cast<unsigned>(CU_CTX_SCHED_SPIN));
}

}  // namespace
}  // namespace torpor::emulator
