#include "server/routing/stream_inquiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/server/routing/manual_clock.h"
#include "tests/server/routing/recording_link.h"

namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StreamInquiryTest : public testing::Test {
 protected:
  std::shared_ptr<RecordingTorpordLink> Attach() {
    auto link = std::make_shared<RecordingTorpordLink>();
    inquiry_.Attach(link);
    return link;
  }
  void AskReadiness() {
    inquiry_.AskReadiness("", [this](Readiness readiness) { readiness_ = std::move(readiness); });
  }
  void Answer(std::uint64_t id, bool is_ready, const std::string& text) {
    v1::TorpordMessage::Answer answer;
    answer.set_inquiry_id(id);
    answer.set_is_ready(is_ready);
    answer.set_text(text);
    inquiry_.OnMessage(answer);
  }

  ManualClock clock_;
  StreamInquiry inquiry_{clock_};
  std::optional<Readiness> readiness_;
};

TEST_F(StreamInquiryTest, TorpordAnswers) {
  const auto link = Attach();
  AskReadiness();
  std::string page;
  inquiry_.AskMetrics([&page](std::string text) { page = std::move(text); });
  ASSERT_EQ(link->sent.size(), 2u);
  EXPECT_EQ(link->sent[1].inquiry().subject(), v1::RouterMessage::Inquiry::METRICS);
  Answer(link->sent[1].inquiry().inquiry_id(), true, "series 1");
  Answer(link->sent[0].inquiry().inquiry_id(), false, "no GPU serves");
  EXPECT_EQ(page, "series 1");
  ASSERT_TRUE(readiness_);
  EXPECT_FALSE(readiness_->is_ready);
  EXPECT_EQ(readiness_->reason, "no GPU serves");
}

TEST_F(StreamInquiryTest, AFunctionIsAskedForByName) {
  const auto link = Attach();
  AskReadiness();
  EXPECT_EQ(link->sent[0].inquiry().function(), "");
  std::optional<Readiness> function;
  inquiry_.AskReadiness("f", [&](Readiness readiness) { function = std::move(readiness); });
  EXPECT_EQ(link->sent[1].inquiry().function(), "f");
  v1::TorpordMessage::Answer answer;
  answer.set_inquiry_id(link->sent[1].inquiry().inquiry_id());
  answer.set_is_ready(true);
  answer.add_upstreams("host:1");
  answer.add_upstreams("host:2");
  inquiry_.OnMessage(answer);
  ASSERT_TRUE(function);
  EXPECT_TRUE(function->is_ready);
  EXPECT_EQ(function->upstreams, (std::vector<std::string>{"host:1", "host:2"}));
  EXPECT_FALSE(readiness_);
}

TEST_F(StreamInquiryTest, AShortAbsenceIsWaitedFor) {
  Attach();
  inquiry_.Detach();
  clock_.Advance(milliseconds(500));
  AskReadiness();
  clock_.Advance(milliseconds(499));
  inquiry_.Expire();
  EXPECT_FALSE(readiness_);
  const auto link = Attach();
  ASSERT_EQ(link->sent.size(), 1u);
  Answer(link->sent[0].inquiry().inquiry_id(), true, "");
  ASSERT_TRUE(readiness_);
  EXPECT_TRUE(readiness_->is_ready);
}

TEST_F(StreamInquiryTest, ALongAbsenceIsTheAnswer) {
  Attach();
  inquiry_.Detach();
  AskReadiness();
  clock_.Advance(seconds(1));
  inquiry_.Expire();
  ASSERT_TRUE(readiness_);
  EXPECT_THAT(readiness_->reason, testing::HasSubstr("away for 1.0 s"));
  readiness_.reset();
  clock_.Advance(seconds(2));
  AskReadiness();
  ASSERT_TRUE(readiness_) << "without a wait";
  EXPECT_FALSE(readiness_->is_ready);
  EXPECT_THAT(readiness_->reason, testing::HasSubstr("away for 3.0 s"));
  std::optional<std::string> page;
  inquiry_.AskMetrics([&page](std::string text) { page = std::move(text); });
  EXPECT_EQ(page, "");
}

TEST_F(StreamInquiryTest, ASilentTorpordIsNotReady) {
  Attach();
  AskReadiness();
  clock_.Advance(seconds(1));
  inquiry_.Expire();
  ASSERT_TRUE(readiness_);
  EXPECT_EQ(readiness_->reason, "torpord does not answer");
}

}  // namespace
}  // namespace torpor::server
