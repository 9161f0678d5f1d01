#include "server/repository/repository.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace torpor::server {
namespace {

constexpr SessionFiles::Sizes kSizes = {.image = kGiB, .host_arena = 64 * kGiB, .window = kMiB};

TEST(Repository, OnlyForTheKey) {
  Repository repository;
  const SessionKey key = NewSessionKey();
  const SessionKey other = NewSessionKey();
  ASSERT_TRUE(repository.Create(SessionId{1}, key, kSizes).ok());
  EXPECT_TRUE(repository.Find(SessionId{1}, key).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(repository.Find(SessionId{1}, other).status()));
  EXPECT_TRUE(absl::IsNotFound(repository.Find(SessionId{2}, key).status()));
  repository.Remove(SessionId{1});
  EXPECT_TRUE(absl::IsNotFound(repository.Find(SessionId{1}, key).status()));
}

TEST(Repository, CountsWhatImagesOccupy) {
  Repository repository;
  const auto memory = repository.Create(SessionId{1}, NewSessionKey(), kSizes);
  ASSERT_TRUE(memory.ok());
  ASSERT_EQ(pwrite((*memory)->descriptor(wire::SharedMemory::kImage), "x", 1, kMiB), 1);
  EXPECT_EQ(repository.image_bytes(), 4096u);
}

}  // namespace
}  // namespace torpor::server
