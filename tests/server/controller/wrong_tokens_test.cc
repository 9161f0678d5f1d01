#include "server/controller/wrong_tokens.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

class WrongTokensTest : public ControllerHarness {
 protected:
  void SetUp() override { StartExecutor(0); }

  static bool IsRefused(const Client& client) {
    const auto reply = client.link->Take<wire::HelloReply>();
    return reply && reply->error != 0;
  }
  std::vector<Client> Guess(int count) {
    std::vector<Client> clients;
    clients.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) clients.push_back(Hello("guess-" + std::to_string(i)));
    return clients;
  }
  static int CountRefused(const std::vector<Client>& clients) {
    int refused = 0;
    for (const Client& client : clients) refused += IsRefused(client) ? 1 : 0;
    return refused;
  }
};

TEST_F(WrongTokensTest, AreAnsweredTenASecond) {
  const std::vector<Client> guesses = Guess(100);
  EXPECT_EQ(CountRefused(guesses), 1) << "a single mistake is told at once";
  for (int second = 0; second < 9; ++second) {
    loop_.Advance(std::chrono::seconds(1));
    EXPECT_EQ(CountRefused(guesses), 10);
  }
  EXPECT_EQ(counts_.wrong_tokens, 100);
}

TEST_F(WrongTokensTest, ARightTokenDoesNotWait) {
  const std::vector<Client> guesses = Guess(1000);
  Client a = Connect("token-a");
  Serve("a", a);
}

TEST_F(WrongTokensTest, WhoHangsUpHoldsUpNobody) {
  std::vector<Client> guesses = Guess(1000);
  for (const Client& client : guesses) Disconnect(client);
  const Client mistaken = Hello("mistaken");
  loop_.Advance(std::chrono::milliseconds(200));
  EXPECT_TRUE(IsRefused(mistaken));
}

TEST_F(WrongTokensTest, AConnectionIsOneGuess) {
  const std::vector<Client> guesses = Guess(20);
  wire::Hello hello;
  hello.protocol_version = wire::kProtocolVersion;
  hello.token = "token-a";
  Say(guesses.back(), hello);
  EXPECT_TRUE(guesses.back().link->closed);
  loop_.Advance(std::chrono::seconds(5));
  EXPECT_FALSE(IsRefused(guesses.back()));
}

// No guess: a program that was started without its token.
TEST_F(WrongTokensTest, NoTokenIsToldAtOnce) {
  const std::vector<Client> guesses = Guess(20);
  EXPECT_TRUE(IsRefused(Hello("")));
}

}  // namespace
}  // namespace torpor::server
