// What executors have of the driver they get when they start: no request waits for it to allocate.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/base/temporary_folder.h"
#include "tests/e2e/counted_allocations.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::e2e {
namespace {

// Allocates and frees as a framework without a cache does, also more than one chunk at a time.
constexpr const char* kScript = R"(allocate 0 25000000
upload 0 0 25000000
request
allocate 1 5000
write 1 0 5000
allocate 2 20000000
read 0 0 25000000
write 2 0 20000000
free 1
allocate 3 3000000
write 3 0 3000000
free 2
free 3
)";

class DriverAllocations : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    ASSERT_NO_FATAL_FAILURE(
        node_.StartFunction("layers", {std::string(DRIVEN_DIR) + "/layers_server"}));
    ASSERT_NO_FATAL_FAILURE(
        node_.StartFunction("script", {std::string(DRIVEN_DIR) + "/memory_script_server",
                                       "--script", node_.folder().Write("script", kScript)}));
    ASSERT_NO_FATAL_FAILURE(
        node_.StartFunction("encoder", {std::string(TORPOR_BIN_DIR) + "/examples/encoder"}));
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  // A request to each function, on either GPU.
  void AskAll() {
    for (const char* gpu : {"0", "1"}) {
      Ask(gpu, "layers", "/run", R"({"stride":[1]})");
      Ask(gpu, "script", "/run", R"({"value":[3]})");
      Ask(gpu, "encoder", "/encode", R"({"tokens":[1,2,3]})");
    }
  }

 private:
  void Ask(const char* gpu, const std::string& function, const std::string& path,
           const std::string& body) {
    LoadOnceItsLeaseHasEnded(function, gpu);
    const Reply reply = node_.PostOne("/function/" + function + path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
  }

  void LoadOnceItsLeaseHasEnded(const std::string& function, const char* gpu) {
    node_.WaitUntilIdle();
    node_.Torporctl({"load", function, "--gpu", gpu});
  }

  const TemporaryFolder folder_;

 protected:
  const AllocationCount allocations_{folder_.path() + "/count"};
  // Neither GPU has room for all three functions.
  EmulatedNode node_{
      kTwoLinkedGpus,
      {"layers", "script", "encoder"},
      // Else a function asked on both GPUs moves no more.
      std::string("keep_replicas: false\ncuda_library_dir: ") + COUNTING_DRIVER_DIR + "\n"};
};

TEST_F(DriverAllocations, AreNotOnTheWayOfRequestsSwapsAndMoves) {
  EXPECT_GT(allocations_.Read(), 0U) << "memory is reserved when executors start";
  AskAll();
  const std::uint64_t before = allocations_.Read();
  for (int round = 0; round < 4; ++round) AskAll();
  EXPECT_EQ(allocations_.Read(), before);
}

}  // namespace
}  // namespace torpor::e2e
