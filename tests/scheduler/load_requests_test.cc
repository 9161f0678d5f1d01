#include "scheduler/load_requests.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

class LoadRequestsTest : public PartsTest {
 protected:
  LoadRequestsTest() {
    AddGpu(kHere, 100);
    AddGpu(kThere, 100);
    Add(1, 60);
  }
  void Load(std::uint64_t id, std::optional<GpuIndex> at = std::nullopt) {
    loads_.Add(instance(id), at);
    loads_.Serve();
  }

  GpuChoice choice_{node_, *binding_, *placement_, true};
  LoadRequests loads_{node_, choice_, *placement_, images_, keep_alives_, outbox_};
};

TEST_F(LoadRequestsTest, TheImageGoesToTheGpuThatIsNamed) {
  Load(1, kThere);
  EXPECT_EQ(Only<SwapIn>()->gpu, kThere);
  EXPECT_TRUE(instance(1).image.copies.at(kThere).is_for_load);
  loads_.Serve();  // it is forgotten
  EXPECT_TRUE(outbox_.Take().empty());
}

TEST_F(LoadRequestsTest, NothingIsEvictedUntilThereIsRoomForAllOfIt) {
  Put(Add(2, 30), kHere);
  Put(Add(3, 60), kHere);
  instance(3).tenancy.phase = Phase::kLeased;
  instance(3).tenancy.gpu = kHere;
  images_.Rank(instance(3));
  Load(1, kHere);
  EXPECT_TRUE(outbox_.Take().empty());
  EXPECT_TRUE(loads_.IsWanted(instance(1)));
  instance(3).tenancy.phase = Phase::kIdle;
  images_.Rank(instance(3));
  loads_.Serve();
  EXPECT_FALSE(outbox_.Take().empty());
}

TEST_F(LoadRequestsTest, LoadsThatCannotBeAreRefused) {
  Load(1, GpuIndex{7});
  EXPECT_EQ(Only<RefuseLoad>()->reason, LoadRefusal::kNoGpu);
  Add(4, 101);
  Load(4);
  EXPECT_EQ(Only<RefuseLoad>()->reason, LoadRefusal::kTooLarge);
  Add(5, 10, 2);
  Load(5);
  EXPECT_EQ(Only<RefuseLoad>()->reason, LoadRefusal::kTooFewGpus);
}

TEST_F(LoadRequestsTest, WhatARequestHasElsewhereIsRefused) {
  instance(1).tenancy.phase = Phase::kLeased;
  instance(1).tenancy.gpu = kHere;
  Load(1, kThere);
  EXPECT_EQ(Only<RefuseLoad>()->reason, LoadRefusal::kInUse);
  Load(1, kHere);
  EXPECT_TRUE(outbox_.Take().empty());
}

TEST_F(LoadRequestsTest, AllShardsAreSentForOrNone) {
  Add(2, 60, 1);
  gpu(kThere).tenant = InstanceId{9};
  Add(9, 1).tenancy.phase = Phase::kPlacing;
  Load(2);
  EXPECT_TRUE(outbox_.Take().empty());
  gpu(kThere).tenant = {};
  loads_.Serve();
  EXPECT_EQ(outbox_.Take().size(), 2u);
}

TEST_F(LoadRequestsTest, ALoadOfWhatIsThereIsAUse) {
  Put(instance(1), kHere);
  Pass(std::chrono::seconds(1));
  Load(1);
  EXPECT_TRUE(outbox_.Take().empty());
  EXPECT_EQ(instance(1).image.last_used, outbox_.now());
}

TEST_F(LoadRequestsTest, AForgottenLoadIsNotServed) {
  loads_.Add(instance(1), std::nullopt);
  loads_.Forget(instance(1));
  loads_.Serve();
  EXPECT_TRUE(outbox_.Take().empty());
}

}  // namespace
}  // namespace torpor::scheduler
