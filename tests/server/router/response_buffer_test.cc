#include "server/router/response_buffer.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

namespace http = boost::beast::http;

ResponseBuffer::Head HeadOf(unsigned status, const char* length = nullptr) {
  ResponseBuffer::Head head;
  head.result(status);
  head.set("X-Kind", "cat");
  head.set(http::field::connection, "close");
  if (length != nullptr) head.set(http::field::content_length, length);
  return head;
}

TEST(ResponseBufferTest, TheHeadLosesWhatConcernsOneConnection) {
  ResponseBuffer buffer(10, true);
  EXPECT_FALSE(buffer.has_head());
  EXPECT_EQ(buffer.status(), 0u);
  buffer.SetHead(HeadOf(404));
  EXPECT_EQ(buffer.status(), 404u);
  EXPECT_EQ(buffer.head()["X-Kind"], "cat");
  EXPECT_EQ(buffer.head().count(http::field::connection), 0u);
  EXPECT_EQ(buffer.length(), std::nullopt);
}

TEST(ResponseBufferTest, PiecesComeInOrderAndMakeRoom) {
  ResponseBuffer buffer(4, true);
  buffer.SetHead(HeadOf(200));
  buffer.Append("ab");
  EXPECT_FALSE(buffer.IsFull());
  buffer.Append("cd");
  EXPECT_TRUE(buffer.IsFull());
  EXPECT_EQ(buffer.TakePiece(), "ab");
  EXPECT_FALSE(buffer.IsFull());
  buffer.Append("ef");
  EXPECT_EQ(buffer.TakeBody(), "cdef");
  EXPECT_FALSE(buffer.has_pieces());
}

TEST(ResponseBufferTest, AnAnswerOfUnknownLengthPassesThrough) {
  ResponseBuffer buffer(4, true);
  buffer.SetHead(HeadOf(200));
  EXPECT_FALSE(buffer.FitsWhole());
  buffer.Complete(TimePoint());
  EXPECT_TRUE(buffer.FitsWhole());
}

TEST(ResponseBufferTest, AShortAnswerIsKeptWhole) {
  ResponseBuffer buffer(4, true);
  buffer.SetHead(HeadOf(200, "4"));
  EXPECT_EQ(buffer.length(), 4u);
  EXPECT_TRUE(buffer.FitsWhole());
  ResponseBuffer longer(4, true);
  longer.SetHead(HeadOf(200, "5"));
  EXPECT_FALSE(longer.FitsWhole());
}

TEST(ResponseBufferTest, AServerErrorIsKeptAsLongAsThereIsRoom) {
  ResponseBuffer buffer(4, true);
  buffer.SetHead(HeadOf(500));
  EXPECT_TRUE(buffer.FitsWhole());
  buffer.Append("abcd");
  EXPECT_FALSE(buffer.FitsWhole());
}

TEST(ResponseBufferTest, TheAnswerToHeadHasALengthButNoBody) {
  ResponseBuffer buffer(4, false);
  buffer.SetHead(HeadOf(200, "1000"));
  EXPECT_TRUE(buffer.FitsWhole());
  EXPECT_EQ(buffer.length(), 1000u);
}

TEST(ResponseBufferTest, TheEndIsWhenTheLastByteCame) {
  ResponseBuffer buffer(4, true);
  const TimePoint now{std::chrono::seconds(7)};
  EXPECT_EQ(buffer.EndOr(now), now);
  buffer.Complete(TimePoint{std::chrono::seconds(5)});
  EXPECT_EQ(buffer.EndOr(now), TimePoint{std::chrono::seconds(5)});
}

TEST(ResponseBufferTest, TheBeginningGoesOutIfTheWholeDoesNotFit) {
  ResponseBuffer buffer(4, true);
  EXPECT_FALSE(buffer.CanBegin());
  buffer.SetHead(HeadOf(200));
  EXPECT_TRUE(buffer.CanBegin());
  ResponseBuffer fitting(4, true);
  fitting.SetHead(HeadOf(200, "4"));
  EXPECT_FALSE(fitting.CanBegin());
  fitting.Complete(TimePoint());
  EXPECT_TRUE(fitting.CanBegin());
}

TEST(ResponseBufferTest, AnEndThatIsHeldGoesOutWithTheCompletion) {
  ResponseBuffer buffer(4, true, /*holds_end=*/true);
  buffer.SetHead(HeadOf(204));
  EXPECT_FALSE(buffer.CanBegin()) << "there may be no more";
  buffer.Append("ab");
  EXPECT_FALSE(buffer.CanBegin());
  EXPECT_FALSE(buffer.has_pieces());
  buffer.Append("cd");
  EXPECT_TRUE(buffer.CanBegin());
  EXPECT_EQ(buffer.TakeBody(), "ab");
  buffer.Complete(TimePoint());
  EXPECT_EQ(buffer.TakeBody(), "cd");
}

}  // namespace
}  // namespace torpor::server
