#include "client_shim/core/commands/printed_output.h"

#include <gtest/gtest.h>

#include <string>

namespace torpor::shim {
namespace {

void Add(PrintedOutput& output, const std::string& text) {
  output.Add({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

TEST(PrintedOutputTest, PrintsOnceInOrder) {
  PrintedOutput output;
  EXPECT_TRUE(output.IsEmpty());
  Add(output, "one\n");
  Add(output, "");
  Add(output, "two\n");
  EXPECT_FALSE(output.IsEmpty());
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  output.Print(file);
  EXPECT_TRUE(output.IsEmpty());
  output.Print(file);
  std::rewind(file);
  char read[32] = {};
  const std::size_t got = std::fread(read, 1, sizeof read, file);
  std::fclose(file);
  EXPECT_EQ(std::string(read, got), "one\ntwo\n");
}

}  // namespace
}  // namespace torpor::shim
