#include "server/router/request_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::map<std::string, FunctionConfig> TwoFunctions() {
  std::map<std::string, FunctionConfig> functions;
  for (const char* name : {"digits", "encoder"}) {
    functions[name].name = name;
    functions[name].deadline = std::chrono::milliseconds(80);
  }
  return functions;
}

class RequestMetricsTest : public ::testing::Test {
 protected:
  RequestMetricsTest() { metrics_.SetFunctions(TwoFunctions()); }

  std::string Text() { return metrics_.Render(); }

  RequestMetrics metrics_;
};

TEST_F(RequestMetricsTest, EveryFunctionIsExportedFromTheStart) {
  EXPECT_THAT(Text(), HasSubstr("torpor_requests_total{function=\"digits\",outcome=\"ok\"} 0"));
  EXPECT_THAT(Text(), HasSubstr("torpor_requests_total{function=\"encoder\",outcome=\"lost\"} 0"));
}

TEST_F(RequestMetricsTest, ARequestCountsOnceInEverySeries) {
  RequestRecord request;
  request.function = "digits";
  request.duration = std::chrono::milliseconds(20);
  request.is_granted = true;
  request.source = SwapSource::kHost;
  request.queue = std::chrono::milliseconds(2);
  request.swap = std::chrono::milliseconds(3);
  request.run = std::chrono::milliseconds(15);
  metrics_.OnRequest(request);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("torpor_requests_total{function=\"digits\",outcome=\"ok\"} 1"));
  EXPECT_THAT(text, HasSubstr("torpor_grants_total{function=\"digits\",source=\"host\"} 1"));
  EXPECT_THAT(text, HasSubstr("torpor_deadline_met_total{function=\"digits\"} 1"));
  EXPECT_THAT(text, HasSubstr("torpor_request_duration_seconds_count{function=\"digits\"} 1"));
  EXPECT_THAT(text, HasSubstr("torpor_queue_duration_seconds_sum{function=\"digits\"} 0.002"));
  EXPECT_THAT(text, HasSubstr("torpor_run_duration_seconds_sum{function=\"digits\"} 0.015"));
}

TEST_F(RequestMetricsTest, ALateOrFailedRequestDoesNotMeetItsDeadline) {
  RequestRecord request;
  request.function = "digits";
  request.duration = std::chrono::milliseconds(81);
  metrics_.OnRequest(request);
  request.duration = std::chrono::milliseconds(1);
  request.outcome = RequestOutcome::kLost;
  metrics_.OnRequest(request);
  EXPECT_THAT(Text(), HasSubstr("torpor_deadline_met_total{function=\"digits\"} 0"));
  EXPECT_THAT(Text(), HasSubstr("torpor_queue_duration_seconds_count{function=\"digits\"} 0"));
}

TEST_F(RequestMetricsTest, AChangedDeadlineCountsFromThenOn) {
  RequestRecord request;
  request.function = "digits";
  request.duration = std::chrono::milliseconds(20);
  metrics_.OnRequest(request);
  auto functions = TwoFunctions();
  functions["digits"].deadline = std::chrono::milliseconds(10);
  metrics_.SetFunctions(functions);
  metrics_.OnRequest(request);
  EXPECT_THAT(Text(), HasSubstr("torpor_deadline_met_total{function=\"digits\"} 1"));
}

TEST_F(RequestMetricsTest, FunctionsComeAndGoWithAllTheirSeries) {
  RequestRecord request;
  request.function = "encoder";
  metrics_.OnRequest(request);
  auto functions = TwoFunctions();
  functions.erase("digits");
  functions["speech"].name = "speech";
  metrics_.SetFunctions(functions);
  request.function = "digits";  // in progress until now
  metrics_.OnRequest(request);
  const std::string text = Text();
  EXPECT_THAT(text, Not(HasSubstr("digits")));
  EXPECT_THAT(text, HasSubstr("torpor_requests_total{function=\"encoder\",outcome=\"ok\"} 1"));
  EXPECT_THAT(text, HasSubstr("torpor_requests_total{function=\"speech\",outcome=\"ok\"} 0"));
}

TEST_F(RequestMetricsTest, StrangersNamesNeverBecomeLabels) {
  RequestRecord request;
  request.function = "stranger";
  metrics_.OnRequest(request);
  metrics_.OnUnknownFunction();
  EXPECT_THAT(Text(), Not(HasSubstr("stranger")));
  EXPECT_THAT(Text(), HasSubstr("torpor_unknown_function_requests_total 1"));
}

TEST_F(RequestMetricsTest, BodiesAreCountedByTheirPlace) {
  metrics_.OnBodies({.memory = 1, .disk = 2});
  metrics_.OnBodyLimits({.memory = 3, .disk = 4});
  EXPECT_THAT(Text(), HasSubstr("torpor_request_body_bytes{place=\"disk\"} 2"));
  EXPECT_THAT(Text(), HasSubstr("torpor_request_body_limit_bytes{place=\"memory\"} 3"));
}

TEST_F(RequestMetricsTest, TheRouterTellsWhetherTorpordIsThere) {
  EXPECT_THAT(Text(), HasSubstr("torpor_router_attached 0"));
  metrics_.OnAttached(true);
  EXPECT_THAT(Text(), HasSubstr("torpor_router_attached 1"));
}

}  // namespace
}  // namespace torpor::server
