#include "server/executor/library/shared_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace torpor::executor {
namespace {

class SharedCacheTest : public testing::Test {
 protected:
  std::shared_ptr<const int> Get(const std::string& key) {
    return cache_.Get(key, [&] { return std::make_shared<const int>(++made_); });
  }
  SharedCache<int> cache_{{.entries = 3, .key_bytes = 100}};
  int made_ = 0;
};

TEST_F(SharedCacheTest, AValueIsMadeOnce) {
  EXPECT_EQ(*Get("a"), 1);
  EXPECT_EQ(*Get("b"), 2);
  EXPECT_EQ(*Get("a"), 1);
  EXPECT_EQ(*Get(std::string("a\0", 2)), 3) << "every byte counts";
}

TEST_F(SharedCacheTest, TheLongestUnusedGoes) {
  for (const char* key : {"a", "b", "c", "a", "d"}) Get(key);
  EXPECT_EQ(cache_.size(), 3U);
  EXPECT_EQ(*Get("a"), 1);
  EXPECT_EQ(*Get("b"), 5) << "made again";
}

TEST_F(SharedCacheTest, KeysHaveABoundTogether) {
  const std::shared_ptr<const int> mine = Get(std::string(60, 'x'));
  Get(std::string(60, 'y'));
  EXPECT_EQ(cache_.size(), 1U);
  EXPECT_EQ(*mine, 1) << "its user keeps the value";
  Get(std::string(200, 'z'));
  EXPECT_EQ(cache_.size(), 1U) << "the present value stays";
}

TEST_F(SharedCacheTest, ThreadsWaitForTheSameValue) {
  std::vector<std::thread> threads(4);
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      for (int i = 0; i < 100; ++i) EXPECT_EQ(*Get("a"), 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made_, 1);
}

}  // namespace
}  // namespace torpor::executor
