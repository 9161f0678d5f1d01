// The router's side and torpord's, over a real socket.
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "server/routing/protocol.h"
#include "server/routing/routing_client.h"
#include "server/routing/routing_server.h"
#include "tests/server/links/test_server.h"
#include "tests/server/router/fake_broker.h"

namespace torpor::server {
namespace {

// A value that threads wait for.
template <typename T>
class Awaited {
 public:
  void Set(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    changed_.notify_all();
  }
  T Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return value_.has_value(); });
    return *std::exchange(value_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<T> value_;
};

std::map<std::string, FunctionConfig> OneFunction(const std::string& name) {
  std::map<std::string, FunctionConfig> functions;
  functions[name].name = name;
  functions[name].upstream = "host:1";
  return functions;
}

class RoutingStreamTest : public testing::Test {
 protected:
  void StartTorpord() {
    broker_ = std::make_unique<FakeBroker>();
    broker_->answer = nullptr;
    auto server = RoutingServer::Start(
        socket_path(), {.broker = broker_.get(),
                        .settings = "{\"a\": \"b\"}",
                        .functions = OneFunction("f"),
                        .find_refusal = [this](const auto&) { return refusal_; },
                        .on_attached = [this](const auto& hello) { hello_.Set(hello.pid()); },
                        .on_alive = [this](auto pid) { alive_.Set(pid); },
                        .readiness =
                            [](const std::string& function) {
                              return Readiness{.is_ready = !function.empty(),
                                               .reason = "starting",
                                               .upstreams = {function + ":1"}};
                            },
                        .metrics = [] { return std::string(8 << 20, 'm'); }});
    ASSERT_TRUE(server.ok()) << server.status();
    torpord_ = *std::move(server);
  }
  // As a kill would.
  void StopTorpord() {
    torpord_.reset();
    while (is_attached_.Take()) continue;
  }

  void StartRouter(std::uint32_t protocol = kRoutingProtocol) {
    v1::RouterMessage::Hello hello;
    hello.set_protocol(protocol);
    hello.set_pid(77);
    client_ = RoutingClient::Start(
        socket_path(),
        {.broker = &requests_,
         .inquiry = &inquiry_,
         .hello = hello,
         .on_welcome = [this](const auto& welcome) { welcome_.Set(welcome); },
         .on_functions = [this](const auto& functions) { functions_.Set(functions); },
         .on_attached = [this](bool is_attached) { is_attached_.Set(is_attached); },
         .is_turning = [this] { return hangs_-- <= 0; },
         .on_unwanted = [this](const std::string& why) { unwanted_.Set(why); }});
  }
  RequestId Ask(const std::string& name) {
    const TimePoint now = SteadyClock().Now();
    return requests_.Acquire(
        {.function = "f", .id = name, .give_up = now + std::chrono::hours(1), .arrival = now},
        [this](const absl::StatusOr<RequestGrant>& grant) { grant_.Set(grant.status()); },
        [this](const absl::Status& status) { lost_.Set(status); });
  }
  std::string socket_path() const { return folder_.path("router.sock"); }

  std::optional<TemporaryFolder> holder_{std::in_place};
  const TemporaryFolder& folder_ = *holder_;
  SteadyClock clock_;
  StreamBroker requests_{clock_};
  StreamInquiry inquiry_{clock_};
  std::string refusal_;
  Awaited<std::int64_t> hello_;
  Awaited<std::int64_t> alive_;
  std::atomic<int> hangs_ = 0;  // so often the router's loop has not turned when asked
  Awaited<v1::TorpordMessage::Welcome> welcome_;
  Awaited<v1::TorpordMessage::Functions> functions_;
  Awaited<bool> is_attached_;
  Awaited<std::string> unwanted_;
  Awaited<absl::Status> grant_;
  Awaited<absl::Status> lost_;
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<RoutingServer> torpord_;
  std::unique_ptr<RoutingClient> client_;
};

TEST_F(RoutingStreamTest, ARouterIsWelcomedAndItsRequestsAreServed) {
  StartTorpord();
  StartRouter();
  EXPECT_EQ(hello_.Take(), 77);
  const v1::TorpordMessage::Welcome welcome = welcome_.Take();
  EXPECT_EQ(welcome.settings(), "{\"a\": \"b\"}");
  EXPECT_EQ(welcome.functions().functions(0).instances(0).upstream(), "host:1");
  EXPECT_TRUE(is_attached_.Take());
  const RequestId request = Ask("r");
  broker_->WaitForAcquired(1);
  EXPECT_EQ(broker_->last_id(), "r");
  broker_->Answer(1, broker_->SomeGrant());
  EXPECT_EQ(grant_.Take(), absl::OkStatus());
  requests_.Release(request, scheduler::Ending::kAnswered);
  broker_->WaitForReleased(1);
  EXPECT_EQ(broker_->ended(scheduler::Ending::kAnswered), 1u);
}

TEST_F(RoutingStreamTest, TheRouterHearsOfChangedFunctionsAndAsksForTheNode) {
  StartTorpord();
  StartRouter();
  welcome_.Take();
  torpord_->SetFunctions(OneFunction("g"));
  EXPECT_EQ(functions_.Take().functions(0).name(), "g");
  Awaited<std::string> text;
  inquiry_.AskReadiness("", [&](Readiness readiness) { text.Set(std::move(readiness.reason)); });
  EXPECT_EQ(text.Take(), "starting");
  inquiry_.AskReadiness("f", [&](const Readiness& readiness) {
    text.Set(readiness.is_ready ? readiness.upstreams.at(0) : "");
  });
  EXPECT_EQ(text.Take(), "f:1");
  inquiry_.AskMetrics([&](std::string page) { text.Set(std::move(page)); });
  EXPECT_EQ(text.Take().size(), std::size_t{8} << 20) << "beyond gRPC's usual limit";
}

TEST_F(RoutingStreamTest, TorpordHearsThatTheRoutersLoopTurns) {
  StartTorpord();
  StartRouter();
  EXPECT_EQ(alive_.Take(), 77);
  EXPECT_EQ(alive_.Take(), 77);
}

TEST_F(RoutingStreamTest, TorpordHearsNothingOfALoopThatHangs) {
  hangs_ = 2;
  StartTorpord();
  StartRouter();
  EXPECT_EQ(alive_.Take(), 77);
  EXPECT_LT(hangs_, 0) << "it was told before the loop turned";
}

TEST_F(RoutingStreamTest, ARequestIsAskedAgain) {
  StartTorpord();
  StartRouter();
  const RequestId request = Ask("r");
  broker_->WaitForAcquired(1);
  broker_->Answer(1, broker_->SomeGrant());
  EXPECT_EQ(grant_.Take(), absl::OkStatus());
  broker_->answer_again = [] { return absl::UnavailableError("no other instance"); };
  requests_.AskAgain(request);
  EXPECT_EQ(grant_.Take(), absl::UnavailableError("no other instance"));
  EXPECT_EQ(broker_->asked_again(), 1);
  requests_.Release(request, scheduler::Ending::kFailed);
  broker_->WaitForReleased(1);
}

TEST_F(RoutingStreamTest, RequestsOutliveTorpord) {
  StartTorpord();
  StartRouter();
  welcome_.Take();
  EXPECT_TRUE(is_attached_.Take());
  const RequestId waiting = Ask("waits");
  broker_->WaitForAcquired(1);
  StopTorpord();
  EXPECT_EQ(broker_->ended(scheduler::Ending::kCancelled), 1u) << "of the torpord that is gone";
  const RequestId late = Ask("comes meanwhile");
  StartTorpord();
  broker_->WaitForAcquired(2);
  EXPECT_EQ(broker_->last_id(), "comes meanwhile");
  broker_->Answer(1, broker_->SomeGrant());
  EXPECT_EQ(grant_.Take(), absl::OkStatus());
  broker_->Answer(2, absl::UnavailableError("no"));
  EXPECT_EQ(grant_.Take(), absl::UnavailableError("no"));
  requests_.Release(waiting, scheduler::Ending::kAnswered);
  requests_.Release(late, scheduler::Ending::kCancelled);
  broker_->WaitForReleased(2);
}

TEST_F(RoutingStreamTest, ARunningRequestOutlivesTorpordAndItsLeaseMayNot) {
  StartTorpord();
  StartRouter();
  const RequestId request = Ask("r");
  broker_->WaitForAcquired(1);
  RequestGrant grant = broker_->SomeGrant();
  grant.instance = "i";
  broker_->Answer(1, grant);
  EXPECT_EQ(grant_.Take(), absl::OkStatus());
  StopTorpord();
  StartTorpord();
  broker_->WaitForAcquired(1);
  EXPECT_EQ(broker_->demand(1).ran_on, "i");
  broker_->on_confirm = [&](RequestId) { broker_->Lose(1, absl::UnavailableError("gone")); };
  Awaited<bool> confirmed;
  requests_.ConfirmLease(request, [&] { confirmed.Set(true); });
  EXPECT_EQ(lost_.Take().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(confirmed.Take());
  requests_.Release(request, scheduler::Ending::kLost);
  broker_->WaitForReleased(1);
}

TEST_F(RoutingStreamTest, ARouterThatEndsTellsItsLastReleases) {
  StartTorpord();
  StartRouter();
  const RequestId request = Ask("r");
  Ask("never released");
  broker_->WaitForAcquired(2);
  requests_.Release(request, scheduler::Ending::kFailed);
  client_.reset();
  broker_->WaitForReleased(2);
  EXPECT_EQ(broker_->ended(scheduler::Ending::kFailed), 1u);
  EXPECT_EQ(broker_->ended(scheduler::Ending::kCancelled), 1u);
}

TEST_F(RoutingStreamTest, AStrangeRouterIsRefused) {
  refusal_ = "process 77 is not this torpord's router";
  StartTorpord();
  StartRouter();
  EXPECT_EQ(unwanted_.Take(), refusal_);
}

TEST_F(RoutingStreamTest, ARouterOfAnotherProtocolIsRefused) {
  StartTorpord();
  StartRouter(kRoutingProtocol + 1);
  EXPECT_NE(unwanted_.Take().find("another protocol"), std::string::npos);
}

TEST_F(RoutingStreamTest, ARouterWhoseFolderHasGoneEnds) {
  StartRouter();
  holder_.reset();
  EXPECT_NE(unwanted_.Take().find("has gone"), std::string::npos);
}

}  // namespace
}  // namespace torpor::server
