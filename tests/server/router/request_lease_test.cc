#include "server/router/request_lease.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include "tests/server/router/fake_broker.h"

namespace torpor::server {
namespace {

class RequestLeaseTest : public testing::Test {
 protected:
  // Runs the coroutine and what it causes until nothing is left to do.
  void Start(boost::asio::awaitable<void> work) {
    is_done_ = false;
    boost::asio::co_spawn(io_, std::move(work),
                          [this](const std::exception_ptr&) { is_done_ = true; });
    Poll();
  }
  void Poll() {
    io_.restart();
    io_.poll();
  }
  void Acquire() { Start(lease_.Acquire(demand_)); }

  const RequestBroker::Demand demand_{.function = "f", .id = "r", .give_up = {}};
  boost::asio::io_context io_;
  FakeBroker broker_;
  LeaseDesk desk_{io_, broker_};
  RequestFailure failure_{[this] { lease_.Wake(); }};
  RequestLease lease_{io_, desk_, failure_};
  bool is_done_ = false;
};

TEST_F(RequestLeaseTest, AcquireEndsWithTheGrant) {
  broker_.answer = nullptr;
  Acquire();
  EXPECT_FALSE(is_done_);
  EXPECT_FALSE(lease_.grant());
  broker_.Answer(1, broker_.SomeGrant());
  Poll();
  EXPECT_TRUE(is_done_);
  ASSERT_TRUE(lease_.grant());
  EXPECT_EQ(lease_.grant()->gpu, GpuIndex{1});
  EXPECT_EQ(broker_.last_id(), "r");
  lease_.Release(scheduler::Ending::kAnswered);
  lease_.Release(scheduler::Ending::kLost);
  EXPECT_EQ(broker_.released(), 1u);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kAnswered), 1u);
}

TEST_F(RequestLeaseTest, ARefusalIsTheRequestsFailure) {
  broker_.answer = [](const std::string&) { return absl::ResourceExhaustedError("queue is full"); };
  Acquire();
  EXPECT_TRUE(is_done_);
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kNotGranted);
  EXPECT_EQ(failure_.detail(), "queue is full");
  EXPECT_FALSE(lease_.grant());
  lease_.Release(scheduler::Ending::kCancelled);
}

TEST_F(RequestLeaseTest, AFailureEndsTheWaitForAGrant) {
  broker_.answer = nullptr;
  Acquire();
  failure_.Set(RequestFailure::Cause::kClientGone, "gone");
  Poll();
  EXPECT_TRUE(is_done_);
  lease_.Release(scheduler::Ending::kCancelled);
  broker_.Answer(1, absl::CancelledError("released"));
  Poll();
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kClientGone);
}

TEST_F(RequestLeaseTest, ALossIsKnownOnceTheLeaseIsConfirmed) {
  Acquire();
  broker_.on_confirm = [this](RequestId request) {
    broker_.Lose(request.value, absl::UnavailableError("its executor died"));
  };
  Start(lease_.Confirm());
  EXPECT_TRUE(is_done_);
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kLeaseLost);
  lease_.Release(scheduler::Ending::kLost);
}

TEST_F(RequestLeaseTest, AnIntactLeaseIsConfirmed) {
  Acquire();
  Start(lease_.Confirm());
  EXPECT_TRUE(is_done_);
  EXPECT_FALSE(failure_);
  lease_.Release(scheduler::Ending::kAnswered);
}

TEST_F(RequestLeaseTest, ASaveThatFailsIsALoss) {
  Acquire();
  Start(lease_.Save(TimePoint::max()));
  EXPECT_TRUE(is_done_);
  EXPECT_FALSE(failure_);
  broker_.on_save = [this](RequestId request) {
    broker_.Lose(request.value, absl::UnavailableError("its memory could not be saved"));
  };
  Start(lease_.Save(TimePoint::max()));
  EXPECT_TRUE(is_done_);
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kLeaseLost);
  lease_.Release(scheduler::Ending::kLost);
}

}  // namespace
}  // namespace torpor::server
