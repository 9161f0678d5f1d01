#include "base/uuid.h"

#include <gtest/gtest.h>

namespace torpor {
namespace {

TEST(Uuid, IsWrittenAsNvidiaSmiDoes) {
  EXPECT_EQ(FormatUuid("\x01\x23\x45\x67\x89\xab\xcd\xef\x10\x32\x54\x76\x98\xba\xdc\xfe"),
            "GPU-01234567-89ab-cdef-1032-547698badcfe");
  EXPECT_EQ(FormatUuid(""), "") << "of a GPU that nobody has described yet";
}

}  // namespace
}  // namespace torpor
