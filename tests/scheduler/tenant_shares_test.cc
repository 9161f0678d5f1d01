#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "scheduler/scheduler.h"

// Tenants of different weights on one GPU, each with more requests than it can serve: what they get
// of its time.
namespace torpor::scheduler {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr GpuIndex kGpu{0};
constexpr Duration kLongestRun = milliseconds(40);

class TenantSharesTest : public testing::TestWithParam<int> {
 protected:
  TenantSharesTest()
      : scheduler_(
            {MakeSharedQueue(MakeFifoQueue), MakeResidentFirstPlacement(), MakeLruEviction()}) {
    Tell(ExecutorUp{kGpu, 1000});
  }

  // With three functions, the instances of which take `max_in_flight()` requests at a time.
  void AddTenant(std::uint64_t tenant, double weight) {
    weights_[tenant] = weight;
    Tell(TenantSet{TenantId{tenant}, weight});
    for (std::uint64_t i = 0; i < 3; ++i) {
      const InstanceId id{10 * tenant + i};
      Tell(FunctionSet{.function = FunctionId{id.value}, .tenant = TenantId{tenant}});
      Tell(InstanceAdded{id, max_in_flight(), {}, FunctionId{id.value}});
      Tell(GrowthWanted{GrowthId{id.value}, id, 10});
    }
  }
  int max_in_flight() const { return GetParam(); }

  // From now on so many of its requests are always outstanding at each of its instances.
  void Keep(std::uint64_t tenant, int requests) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      for (int j = 0; j < requests; ++j) Arrive(InstanceId{10 * tenant + i});
    }
    is_kept_[tenant] = true;
  }
  // As they end, no others come.
  void Stop(std::uint64_t tenant) { is_kept_[tenant] = false; }

  void Run(Duration time) {
    const TimePoint end = now_ + time;
    while (!ends_.empty() && ends_.begin()->first <= end) {
      const auto [when, request] = *ends_.begin();
      ends_.erase(ends_.begin());
      now_ = when;
      const InstanceId instance = instance_of_.at(request);
      if (is_kept_[TenantOf(instance)]) Arrive(instance);
      Tell(RequestGone{request, Ending::kAnswered});
    }
    now_ = end;
  }

  // An instance of the tenant holds the GPU, outside of any request.
  void HoldIdly(std::uint64_t tenant, Duration time) {
    const RequestId request{next_request_++};
    instance_of_[request] = InstanceId{10 * tenant};
    Tell(RequestArrived{request, InstanceId{10 * tenant}, TimePoint::max(), true});
    now_ += time;
    EndLease(InstanceId{10 * tenant});
  }

  // Seconds of the GPU by weight.
  double Used(std::uint64_t tenant) {
    Duration used = used_[tenant];
    if (held_by_ && TenantOf(*held_by_) == tenant) used += now_ - held_since_;
    return ToSeconds(used) / weights_.at(tenant);
  }

  // How far what they get drifts apart in that time, at most.
  double MostAhead(std::uint64_t first, std::uint64_t second, Duration time) {
    const double before = Used(second) - Used(first);
    double most = 0;
    for (const TimePoint end = now_ + time; now_ < end;) {
      Run(milliseconds(5));
      most = std::max(most, std::abs(Used(second) - Used(first) - before));
    }
    return most;
  }
  // What one request of each makes of it. Where requests join, one may just have begun when its
  // tenant has had its share.
  double Quantum(std::uint64_t first, std::uint64_t second) const {
    const double run = ToSeconds(kLongestRun) * (max_in_flight() > 1 ? 2 : 1);
    return run / weights_.at(first) + run / weights_.at(second);
  }

 private:
  static std::uint64_t TenantOf(InstanceId instance) { return instance.value / 10; }

  void Arrive(InstanceId instance) {
    const RequestId request{next_request_++};
    instance_of_[request] = instance;
    Tell(RequestArrived{request, instance});
  }

  void Tell(const Event& event) {
    std::deque<Event> events{event};
    while (!events.empty()) {
      const Event next = events.front();
      events.pop_front();
      for (const Action& action : scheduler_.OnEvent(next, now_)) {
        if (const auto* const swap_in = std::get_if<SwapIn>(&action)) {
          events.emplace_back(SwapInDone{swap_in->instance, swap_in->gpu});
        } else if (const auto* const grant = std::get_if<Grant>(&action)) {
          OnGrant(*grant);
        } else if (const auto* const revoke = std::get_if<Revoke>(&action)) {
          OnEnd();
          events.emplace_back(LeaseEnded{revoke->instance});
        }
      }
    }
  }
  void OnGrant(const Grant& grant) {
    if (!grant.joins) {
      held_by_ = grant.instance;
      held_since_ = now_;
    }
    const auto run = milliseconds(5 + random_() % 36);
    ends_.emplace(now_ + run, grant.request);
  }
  void OnEnd() {
    used_[TenantOf(*held_by_)] += now_ - held_since_;
    held_by_.reset();
  }
  void EndLease(InstanceId instance) {
    std::erase_if(ends_, [&](const auto& end) { return instance_of_.at(end.second) == instance; });
    OnEnd();
    Tell(LeaseEnded{instance});
  }

  Scheduler scheduler_;
  TimePoint now_{seconds(1)};
  std::mt19937 random_{3};
  std::map<std::uint64_t, double> weights_;
  std::map<std::uint64_t, bool> is_kept_;
  std::set<std::pair<TimePoint, RequestId>> ends_;
  std::map<RequestId, InstanceId> instance_of_;
  std::map<std::uint64_t, Duration> used_;
  std::optional<InstanceId> held_by_;
  TimePoint held_since_{};
  std::uint64_t next_request_ = 1;
};

TEST_P(TenantSharesTest, SharesAreByWeight) {
  AddTenant(1, 3);
  AddTenant(2, 1);
  Keep(1, 2 * max_in_flight());
  Keep(2, 2 * max_in_flight());
  EXPECT_LE(MostAhead(1, 2, seconds(20)), Quantum(1, 2));
  EXPECT_NEAR(Used(1), Used(2), Quantum(1, 2));
}

TEST_P(TenantSharesTest, WhoComesDoesNotCatchUpWithWhoRuns) {
  AddTenant(1, 3);
  AddTenant(2, 1);
  Keep(1, 2 * max_in_flight());
  Run(seconds(100));
  Keep(2, 2 * max_in_flight());
  EXPECT_LE(MostAhead(1, 2, seconds(20)), Quantum(1, 2));
}

TEST_P(TenantSharesTest, WhoComesDoesNotCatchUpWithWhoNeverWaited) {
  AddTenant(1, 1);
  AddTenant(2, 1);
  HoldIdly(1, hours(1));
  Keep(1, 2 * max_in_flight());
  Keep(2, 2 * max_in_flight());
  EXPECT_LE(MostAhead(1, 2, seconds(20)), Quantum(1, 2));
}

TEST_P(TenantSharesTest, IdleTimeGivesNoCredit) {
  AddTenant(1, 1);
  AddTenant(2, 2);
  Keep(1, 2 * max_in_flight());
  Keep(2, 2 * max_in_flight());
  Run(seconds(10));
  Stop(2);
  Run(minutes(10));
  Keep(2, 2 * max_in_flight());
  EXPECT_LE(MostAhead(1, 2, seconds(20)), Quantum(1, 2));
}

TEST_P(TenantSharesTest, AThirdChangesNothingBetweenTheOthers) {
  AddTenant(1, 1);
  AddTenant(2, 2);
  AddTenant(3, 5);
  Keep(1, 2 * max_in_flight());
  Keep(2, 2 * max_in_flight());
  for (int i = 0; i < 5; ++i) {
    Keep(3, max_in_flight());
    EXPECT_LE(MostAhead(1, 2, seconds(3)), Quantum(1, 2));
    Stop(3);
    EXPECT_LE(MostAhead(1, 2, seconds(3)), Quantum(1, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(RequestsInFlight, TenantSharesTest, testing::Values(1, 3));

}  // namespace
}  // namespace torpor::scheduler
