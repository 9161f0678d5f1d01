#include "server/router/upstream_pools.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

class UpstreamPoolsTest : public testing::Test {
 protected:
  boost::asio::io_context io_;
  UpstreamPools pools_{io_};
};

TEST_F(UpstreamPoolsTest, AnAddressHasOnePool) {
  const auto pool = pools_.Find("127.0.0.1:9001");
  EXPECT_TRUE(pool);
  EXPECT_EQ(pools_.Find("127.0.0.1:9001"), pool);
  EXPECT_NE(pools_.Find("127.0.0.1:9002"), pool);
  EXPECT_EQ(pools_.Find("nowhere"), nullptr);
}

TEST_F(UpstreamPoolsTest, APoolThatNobodyNamesGoesOnceNobodyUsesIt) {
  auto used = pools_.Find("127.0.0.1:9001");
  const std::weak_ptr<UpstreamPool> in_use = used;
  const std::weak_ptr<UpstreamPool> unused = pools_.Find("127.0.0.1:9002");
  const std::weak_ptr<UpstreamPool> kept = pools_.Find("127.0.0.1:9003");
  pools_.Keep({"127.0.0.1:9003"});
  EXPECT_TRUE(unused.expired());
  EXPECT_FALSE(kept.expired());
  EXPECT_FALSE(in_use.expired());
  used->Put(used->MakeNew());
  used.reset();
  EXPECT_TRUE(in_use.expired());
  io_.run();  // nothing of it is left to call
}

}  // namespace
}  // namespace torpor::server
