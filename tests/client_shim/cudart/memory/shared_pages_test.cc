#include "client_shim/cudart/memory/shared_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace torpor::shim {
namespace {

constexpr std::uint64_t kBytes = 3 * kPageBytes;

char* Map(int flags, int protection = PROT_READ | PROT_WRITE) {
  void* const mapped = mmap(nullptr, kBytes, protection, flags | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(mapped, MAP_FAILED);
  return static_cast<char*>(mapped);
}

std::uint64_t Address(const char* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

TEST(SharedPagesTest, BothAddressesShowTheSameBytes) {
  char* const pages = Map(MAP_PRIVATE);
  char* const block = Map(MAP_SHARED);
  std::memcpy(pages + kPageBytes, "before", sizeof "before");
  ASSERT_TRUE(SharePages(Address(pages), kBytes, Address(block)));
  EXPECT_STREQ(block + kPageBytes, "before");
  block[0] = 'b';
  pages[1] = 'p';
  EXPECT_EQ(pages[0], 'b');
  EXPECT_EQ(block[1], 'p');
  ASSERT_TRUE(UnsharePages(Address(pages), kBytes));
  EXPECT_STREQ(pages + kPageBytes, "before");
  block[0] = 'x';
  EXPECT_EQ(pages[0], 'b') << "no longer shared";
  munmap(pages, kBytes);
  munmap(block, kBytes);
}

TEST(SharedPagesTest, WhatTheProgramHasUnmappedStaysSo) {
  char* const pages = Map(MAP_PRIVATE);
  char* const block = Map(MAP_SHARED);
  pages[0] = 'a';
  ASSERT_TRUE(SharePages(Address(pages), kBytes, Address(block)));
  munmap(pages + kPageBytes, kPageBytes);
  ASSERT_TRUE(UnsharePages(Address(pages), kBytes));
  EXPECT_EQ(pages[0], 'a');
  EXPECT_EQ(msync(pages + kPageBytes, kPageBytes, MS_ASYNC), -1);
  munmap(pages, kBytes);
  munmap(block, kBytes);
}

TEST(SharedPagesTest, OnlyPrivateWritableMemoryIsReplaced) {
  char* const block = Map(MAP_SHARED);
  char* const shared = Map(MAP_SHARED);
  char* const constant = Map(MAP_PRIVATE, PROT_READ);
  char* const gap = Map(MAP_PRIVATE);
  munmap(gap + kPageBytes, kPageBytes);
  char on_stack = 0;
  for (char* pages : {shared, constant, gap, &on_stack - Address(&on_stack) % kPageBytes})
    EXPECT_FALSE(SharePages(Address(pages), kBytes, Address(block)));
  munmap(shared, kBytes);
  munmap(constant, kBytes);
  munmap(gap, kBytes);
  munmap(block, kBytes);
}

}  // namespace
}  // namespace torpor::shim
