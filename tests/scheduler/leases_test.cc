#include "scheduler/leases.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;

class LeasesTest : public PartsTest {
 protected:
  LeasesTest() {
    AddGpu(kHere, 100);
    AddGpu(kThere, 100);
    Add(1, 60);
  }
  void Begin(std::uint64_t id, GpuIndex at) {
    leases_.Begin(instance(id), {{{&instance(id), at}}});
  }
  // Has a lease on the GPU for the request.
  void Lease(std::uint64_t request, std::uint64_t id, GpuIndex at, bool is_implicit = false) {
    Put(instance(id), at);
    queue_.Add({.request = RequestId{request},
                .instance = InstanceId{id},
                .turn = {.arrival = outbox_.now(), .sequence = request},
                .deadline = TimePoint::max(),
                .is_implicit = is_implicit});
    Begin(id, at);
    EXPECT_EQ(Only<Grant>()->request, RequestId{request});
  }

  Leases leases_{
      node_,
      *policy_,
      queue_,
      images_,
      keep_alives_,
      {.implicit_quantum_for_request = milliseconds(5), .implicit_quantum = milliseconds(100)},
      outbox_};
};

TEST_F(LeasesTest, TheLeaseIsGrantedWhenTheImageIsThere) {
  Wait(1, instance(1));
  Begin(1, kHere);
  EXPECT_TRUE(Only<SwapIn>());
  EXPECT_EQ(gpu(kHere).tenant, InstanceId{1});
  EXPECT_EQ(queue_.size(), 0u);
  leases_.Advance();
  EXPECT_TRUE(outbox_.Take().empty());
  images_.OnPresent(instance(1), kHere);
  leases_.Advance();
  EXPECT_EQ(Only<Grant>()->gpu, kHere);
  EXPECT_EQ(instance(1).tenancy.image_source, ImageSource::kHost);
}

TEST_F(LeasesTest, ALeaseIsGrantedForAllShardsAtOnce) {
  Add(2, 60, 1);
  Put(instance(2), kHere);
  Wait(1, instance(2));
  leases_.Begin(instance(2), {{{&instance(2), kHere}, {&instance(3), kThere}}});
  EXPECT_EQ(Only<SwapIn>()->instance, InstanceId{3});
  images_.OnPresent(instance(3), kThere);
  leases_.Advance();
  EXPECT_EQ(Only<Grant>()->secondary_gpus, std::vector<GpuIndex>{kThere});
}

TEST_F(LeasesTest, ATenancyWithoutARequestEnds) {
  const Request request = Wait(1, instance(1));
  Begin(1, kHere);
  queue_.Remove(request);
  leases_.Advance();  // not before the image is there
  EXPECT_FALSE(instance(1).tenancy.is_idle());
  images_.OnPresent(instance(1), kHere);
  leases_.Advance();
  EXPECT_TRUE(instance(1).tenancy.is_idle());
  EXPECT_FALSE(gpu(kHere).tenant);
}

TEST_F(LeasesTest, TheLastRequestTakesTheLeaseWithIt) {
  Lease(1, 1, kHere);
  leases_.TakeBack(RequestId{1});
  EXPECT_TRUE(Only<Revoke>());
  leases_.Revoke(instance(1));  // once
  EXPECT_TRUE(outbox_.Take().empty());
  leases_.End(instance(1));
  EXPECT_FALSE(gpu(kHere).tenant);
  EXPECT_EQ(node_.requests.count(RequestId{1}), 0u);
}

TEST_F(LeasesTest, RequestsUnderALeaseThatEndsAreLost) {
  Lease(1, 1, kHere);
  leases_.End(instance(1));
  EXPECT_TRUE(node_.requests.at(RequestId{1}).is_lost);
}

TEST_F(LeasesTest, RequestsJoinUpToMaxInFlight) {
  instance(1).max_in_flight = 2;
  Lease(1, 1, kHere);
  Wait(2, instance(1));
  Wait(3, instance(1));
  leases_.ServeTenants();
  const auto grant = Only<Grant>();
  ASSERT_TRUE(grant);
  EXPECT_TRUE(grant->joins);
  EXPECT_EQ(instance(1).waiting.size(), 1u);
}

TEST_F(LeasesTest, AnImplicitLeaseLastsItsQuantum) {
  Lease(1, 1, kHere, true);
  const Request request = Wait(2, Add(2, 60));
  EXPECT_FALSE(leases_.MayRevoke(request, instance(1)));
  EXPECT_EQ(Only<WakeUp>()->when, TimePoint(milliseconds(5)));
  Pass(milliseconds(5));
  EXPECT_TRUE(leases_.MayRevoke(request, instance(1)));
}

TEST_F(LeasesTest, AnImplicitLeaseEndsForARequestOfItsOwnInstance) {
  Lease(1, 1, kHere, true);
  Wait(2, instance(1));
  Pass(milliseconds(5));
  leases_.ServeTenants();
  EXPECT_TRUE(Only<Revoke>());
}

TEST_F(LeasesTest, ARunsTimeIsLearnedByWhereTheImageWas) {
  Lease(1, 1, kHere);
  Pass(milliseconds(20));
  leases_.LearnRunTime(instance(1));
  const RunTimes& times = node_.FunctionOf(instance(1)).run_times;
  EXPECT_EQ(times.of(ImageSource::kResident).value(), milliseconds(20));
}

}  // namespace
}  // namespace torpor::scheduler
