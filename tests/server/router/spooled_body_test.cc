#include "server/router/spooled_body.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <optional>

#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

namespace asio = boost::asio;

class SpooledBodyTest : public testing::Test {
 protected:
  SpooledBodyTest() { config_.spool_dir = folder_.path(); }

  SpooledBody& Make(Bytes max_memory) {
    spool_.Configure(config_);
    return body_.emplace(spool_, max_memory);
  }

  template <typename T>
  T Run(asio::awaitable<T> work) {
    std::optional<T> result;
    asio::co_spawn(io_, std::move(work),
                   [&](const std::exception_ptr&, T value) { result = std::move(value); });
    io_.restart();
    io_.run();
    return *std::move(result);
  }
  absl::Status Append(std::string piece) { return Run(body_->Append(std::move(piece))); }
  std::string Piece(std::uint64_t offset) {
    std::string piece = "of before";
    EXPECT_TRUE(Run(body_->Read(offset, piece)).ok());
    return piece;
  }
  std::string Whole() {
    std::string whole;
    while (whole.size() < body_->size()) {
      const std::string piece = Piece(whole.size());
      if (piece.empty()) break;
      whole += piece;
    }
    return whole;
  }

  const TemporaryFolder folder_;
  RouterConfig config_;
  RequestMetrics metrics_;
  asio::io_context io_;
  BodySpool spool_{io_, config_, metrics_};
  std::optional<SpooledBody> body_;
};

TEST_F(SpooledBodyTest, TheFirstPartIsInMemoryAndTheRestOnTheDisk) {
  Make(100);
  const std::string a(60, 'a'), b(40, 'b'), c(30, 'c'), d(5, 'd');
  for (const std::string& piece : {a, b, c, d}) ASSERT_TRUE(Append(piece).ok());
  EXPECT_EQ(spool_.used(), (BodyBytes{.memory = 100, .disk = 35}));
  EXPECT_EQ(body_->size(), 135u);
  EXPECT_EQ(Whole(), a + b + c + d);
  EXPECT_EQ(Whole(), a + b + c + d) << "as often as wanted";
  EXPECT_EQ(Piece(59), "a" + b);
  EXPECT_EQ(Piece(60), b);
  EXPECT_EQ(Piece(99), "b");
  EXPECT_EQ(Piece(120), std::string(10, 'c') + d);
  EXPECT_EQ(Piece(135), "");
}

TEST_F(SpooledBodyTest, PiecesFillTheMemoryExactly) {
  Make(SpooledBody::kPieceBytes + 10);
  EXPECT_EQ(body_->NextPieceBytes(), SpooledBody::kPieceBytes);
  ASSERT_TRUE(Append(std::string(body_->NextPieceBytes(), 'a')).ok());
  EXPECT_EQ(body_->NextPieceBytes(), 10u);
  ASSERT_TRUE(Append(std::string(10, 'b')).ok());
  EXPECT_EQ(body_->NextPieceBytes(), SpooledBody::kPieceBytes);
  EXPECT_EQ(spool_.used().disk, 0u);
}

TEST_F(SpooledBodyTest, WhatIsReadHasAMaximum) {
  Make(SpooledBody::kReadBytes + 100);
  const std::string first(SpooledBody::kReadBytes - 10, 'a'), second(100, 'b');
  const std::string third(SpooledBody::kReadBytes, 'c');
  for (const std::string& piece : {first, second, third, third}) ASSERT_TRUE(Append(piece).ok());
  EXPECT_TRUE(Piece(0) == first + std::string(10, 'b'));
  EXPECT_TRUE(Piece(first.size() + 100) == third);
  EXPECT_TRUE(Whole() == first + second + third + third);
}

TEST_F(SpooledBodyTest, RoomThatAPieceDoesNotUseIsNotTaken) {
  Make(kMiB);
  std::string piece(SpooledBody::kPieceBytes, 'a');
  piece.resize(100);
  ASSERT_TRUE(Append(std::move(piece)).ok());
  EXPECT_EQ(spool_.used().memory, 100u);
}

TEST_F(SpooledBodyTest, WithoutMemoryAllGoesToTheDisk) {
  config_.request_memory = 100;
  Make(kMiB);
  ASSERT_TRUE(Append(std::string(60, 'a')).ok());
  ASSERT_TRUE(Append(std::string(60, 'b')).ok());
  ASSERT_TRUE(Append(std::string(20, 'c')).ok()) << "stays behind what is on the disk";
  EXPECT_EQ(spool_.used(), (BodyBytes{.memory = 60, .disk = 80}));
  EXPECT_EQ(Whole(), std::string(60, 'a') + std::string(60, 'b') + std::string(20, 'c'));
}

TEST_F(SpooledBodyTest, WithoutDiskItIsAnErrorAndTheRoomComesBack) {
  config_.spool_limit = 50;
  Make(20);
  ASSERT_TRUE(Append(std::string(20, 'a')).ok());
  ASSERT_TRUE(Append(std::string(40, 'b')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Append(std::string(11, 'c'))));
  EXPECT_EQ(spool_.used(), (BodyBytes{.memory = 20, .disk = 40}));
  body_.reset();
  EXPECT_EQ(spool_.used(), BodyBytes());
}

TEST_F(SpooledBodyTest, ADiskThatFailsIsAnErrorAndTheRoomComesBack) {
  config_.spool_dir = folder_.Write("taken", "by a file") + "/spool";
  Make(10);
  EXPECT_TRUE(absl::IsUnavailable(Append(std::string(11, 'a'))));
  body_->Clear();
  EXPECT_EQ(spool_.used(), BodyBytes());
  EXPECT_EQ(body_->size(), 0u);
}

}  // namespace
}  // namespace torpor::server
